"""Text on a terminal: nothing in it may act, and it has a width.

Whatever comes from a conversation may hold escape sequences, which would move the cursor, change
the title or worse. They are shown as `less` shows them: ^[ for escape, <9B> for others.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

MINTED, SHORT = 26, 8
_ALPHABET = frozenset("0123456789abcdefghjkmnpqrstvwxyz")
_DIRECTIONS = frozenset(
    (0x61C, 0x200E, 0x200F, 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
)


def acts(code: int) -> bool:
    """Whether a character does something to a terminal instead of being shown: controls, what
    turns the direction of writing, lone surrogates. Not the line end and the tab."""
    if code < 0xA0:
        return (code < 0x20 and code not in (9, 10)) or code >= 0x7F
    return code in _DIRECTIONS or 0xD800 <= code < 0xE000


class _Shown(dict[int, int | str]):
    """For str.translate: each character that acts, as it is shown. Filled as they come."""

    def __missing__(self, code: int) -> int | str:
        shown: int | str = code
        if acts(code):
            shown = f"<{code:02X}>" if code < 0x100 else f"<U+{code:04X}>"
            if code < 0x20:
                shown = f"^{chr(code + 0x40)}"
        self[code] = shown
        return shown


_SHOWN = _Shown()


def visible(text: str) -> str:
    """Text of several lines, with everything that acts made visible; line ends and tabs stay."""
    return text if text.isprintable() else text.replace("\r\n", "\n").translate(_SHOWN)


def one_line(text: str) -> str:
    """Text on one line, safe to print."""
    text = " ".join(text.split())
    return text if text.isprintable() else text.translate(_SHOWN)


def cells(text: str) -> int:
    """How many columns a terminal needs for a line."""
    return len(text) if text.isascii() else sum(map(_cell, text))


def _cell(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit(text: str, width: int) -> str:
    """A line cut to a width, with an ellipsis if something is missing."""
    if cells(text) <= width:
        return text
    used, kept = 0, ""
    for character in text:
        used += _cell(character)
        if used > width - 1:
            break
        kept += character
    return kept.rstrip() + "…"


def pad(text: str, width: int, right: bool = False) -> str:
    """A line filled up with spaces to a width."""
    space = " " * max(0, width - cells(text))
    return space + text if right else text + space


def short_id(id: str) -> str:
    """The beginning of an id that names its conversation in practice; a foreign one is whole."""
    minted = len(id) == MINTED and _ALPHABET.issuperset(id)
    return id[:SHORT] if minted else one_line(id)


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Short forms that differ from each other."""
    short = {id: short_id(id) for id in ids}
    clashing = len(set(short.values())) < len(short)
    return {id: id for id in short} if clashing else short
