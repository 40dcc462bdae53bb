"""What went wrong, as one line and an exit code.

A URL that somebody put in the wrong place may hold a password: what is printed here is without.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from clew.cli.registry import load
from clew.cli.text import one_line
from clew.errors import (
    Ambiguous,
    ClewError,
    Corrupt,
    InputError,
    NotFound,
    Refused,
    StoreReplaced,
)
from clew.store.engines import NoStore

OK, PROBLEMS, USAGE, NOT_FOUND, REFUSED, STORE, FAULT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 70, 130

_CODES: Sequence[tuple[type[Exception], int]] = (
    (InputError, USAGE), (NotFound, NOT_FOUND), (Refused, REFUSED), (ClewError, STORE),
    (OSError, STORE),
)  # fmt: skip
_HINTS: Sequence[tuple[type[Exception], str]] = (
    (Ambiguous, ""), (NotFound, "`clew list` shows what is there"), (Corrupt, ""),
    (StoreReplaced, ""),
)  # fmt: skip
REDACTION = "clew.domain.redaction"
"""Loaded only when something went wrong."""


def code_of(error: Exception) -> int:
    """The exit code of an error."""
    if isinstance(error, NoStore):
        return NOT_FOUND
    if isinstance(error, click.UsageError):
        return USAGE
    return next((code for kind, code in _CODES if isinstance(error, kind)), FAULT)


def report(error: Exception, as_json: bool) -> int:
    """Print an error, one line; gives the exit code."""
    code = code_of(error)
    message = without_password(_message(error, code))
    if as_json:
        print(json.dumps(_fields(error, message, code)), file=sys.stderr)
    else:
        print(f"clew: {message}", file=sys.stderr)
    return code


def without_password(text: str) -> str:
    """A text in which no URL shows its password."""
    return load(REDACTION).without_passwords(text)


def trace(error: Exception) -> str:
    """Where an error came from."""
    return without_password("".join(load("traceback").format_exception(error)))


def _fields(error: Exception, message: str, code: int) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "error": type(error).__name__, "message": message, "exit_code": code,
        "retryable": isinstance(error, ClewError) and error.retryable,
    }  # fmt: skip
    if isinstance(error, Ambiguous):
        fields["candidates"] = list(error.candidates)
    return fields


def _message(error: Exception, code: int) -> str:
    if isinstance(error, click.UsageError):
        return _usage(error)
    if isinstance(error, OSError) and not isinstance(error, ClewError):
        where = f"{error.filename}: " if error.filename else ""
        return one_line(f"{where}{error.strerror or error}; check the path and its permissions")
    text = one_line(str(error))
    if code == FAULT:
        return (
            f"this should not happen ({type(error).__name__}: {text}); please report it, with what "
            f"CLEW_DEBUG=1 prints"
        )
    notes = [one_line(note) for note in getattr(error, "__notes__", ())]
    if notes:
        text = f"{text.rstrip('.')} ({', '.join(notes)})"
    hint = next((hint for kind, hint in _HINTS if isinstance(error, kind)), "")
    return f"{text.rstrip('.')}; {hint}" if hint else text


def _usage(error: click.UsageError) -> str:
    text = one_line(error.format_message()).rstrip(".")
    if not text:
        text = "this needs more arguments"
    text = text[0].lower() + text[1:]
    if ";" in text or error.ctx is None:
        return text
    return f"{text}; see `{error.ctx.command_path} --help`"
