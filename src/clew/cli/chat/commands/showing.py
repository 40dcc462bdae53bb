"""What several commands of a chat share: lines for the person, and the words behind a command."""

from __future__ import annotations

from collections.abc import Iterable

from clew.cli.chat.api import Chat
from clew.cli.lines import Line
from clew.cli.text import fit, one_line
from clew.errors import InputError
from clew.store.findings import counted

SAID = 60
"""Columns of what is shown of a message."""


def show(chat: Chat, lines: Iterable[Line]) -> None:
    """Lines of a transcript or a receipt."""
    for indent, pieces, _ in lines:
        chat.write(" " * indent, *pieces)


def alone(given: str, name: str) -> None:
    """Refuse what stands behind a command that takes nothing."""
    if given:
        raise InputError(f"/{name} takes nothing behind it; type /{name} alone")


def first_word(given: str) -> tuple[str, str]:
    """The first word, and what follows it."""
    word, _, rest = given.partition(" ")
    return word, rest.strip()


def number(given: str, usage: str) -> int:
    """A number as it is typed, 12 or #12. InputError says how it is given."""
    digits = given.strip().removeprefix("#")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 19 and int(digits)):
        raise InputError(f"{one_line(given) or 'nothing'} is no number; type {usage}")
    return int(digits)


def beginning(text: str, width: int = SAID) -> str:
    """The beginning of a text, on one line."""
    return fit(one_line(text), width) or "(no text)"


def messages(count: int) -> str:
    """3 messages."""
    return counted(count, "message")
