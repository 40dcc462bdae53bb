"""Texts of configuration files to plain data, with the line of each key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

from clew.config.place import LARGEST
from clew.config.problems import ConfigError, Fault, Origin
from clew.config.scan import Key, lines_of

_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_TOLD = re.compile(r"[A-Z][\w '=\[\]/,-]*")
"""What Python's reader says without repeating the text."""
_QUOTES = 'a text needs quotes, and a backslash in "..." is written twice'
_NO_TOML = "This is no TOML; is a quote or a bracket not closed, here or before?"
_HINTS = {
    "Invalid value": _QUOTES,
    "Unescaped '\\' in a string": "write it twice, or use '...'",
    "Cannot overwrite a value": "the key is there twice",
    "Invalid initial character for a key part": "a key needs quotes for other signs than letters, "
    "digits, '-' and '_'",
}


class Document(NamedTuple):
    """A file that was read."""

    path: Path
    data: dict[str, Any]
    lines: dict[Key, int]

    def origin(self, key: Key) -> Origin:
        """Where a key, or the nearest thing around it, stands."""
        while key and key not in self.lines:
            key = key[:-1]
        return Origin(str(self.path), self.lines.get(key))


def toml(path: Path) -> Document | None:
    """A TOML file; None when there is none. ConfigError for one that cannot be read."""
    return _document(path, _toml)


def json_file(path: Path) -> Document | None:
    """A JSON file with an object in it, likewise."""
    return _document(path, _json)


def _document(path: Path, parse: Callable[[Path, str], dict[str, Any]]) -> Document | None:
    text = _text(path)
    if text is None:
        return None
    try:
        return Document(path, parse(path, text), lines_of(text))
    except RecursionError:
        raise _error(path, "is nested too deeply") from None


def _text(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _error(path, f"cannot be read: {error.strerror}") from None
    if len(data) > LARGEST:
        raise _error(path, f"is larger than {LARGEST:,} bytes; is it a configuration at all?")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _error(path, "is not UTF-8; save it as that", line) from None


def _toml(path: Path, text: str) -> dict[str, Any]:
    tomllib: Any = import_module("tomllib")  # most have no file
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found, message = _PLACE.search(str(error)), _PLACE.sub("", str(error))
        end = text.count("\n") + 1, len(text) - text.rfind("\n")
        line, column = (int(found[1]), int(found[2])) if found and found[1] else end
        hint = _HINTS.get(message, "")
        told = message if hint or _TOLD.fullmatch(message) else _NO_TOML
    raise _error(path, f"{told}{hint and '; '}{hint}", line, column)


def _json(path: Path, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except json.JSONDecodeError as error:
        text = f"this is no JSON: {error.msg}; comments, and commas before a bracket, are none"
        raise _error(path, text, error.lineno, error.colno) from None
    except ValueError:
        raise _error(path, "this is no JSON: a number is too long") from None
    if not isinstance(found, dict):
        raise _error(path, 'is no object; write {"mcpServers": {...}}')
    return cast(dict[str, Any], found)


def _error(path: Path, text: str, line: int | None = None, column: int | None = None) -> Exception:
    return ConfigError([Fault(Origin(str(path), line, column), "", text)])
