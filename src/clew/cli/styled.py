"""Prints the lines of a transcript on a terminal: wrapped, coloured, and each row by itself.

Not with Rich, whose widths are not ours (`text.cell`), and which takes half as long to load as a
screen of messages takes to print.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import TextIO

from clew.cli.lines import WIDEST, Line
from clew.cli.screen import Piece, painted
from clew.cli.text import CLUSTER, cell, isolated

NARROWEST = 10
HANG = 2
"""How much further in a line at the left edge goes on: there, only a new line begins."""


class StyledWriter:
    """Wraps at the width of the terminal, and keeps the indent of a line in what follows."""

    def __init__(self, stream: TextIO, width: int, color: bool) -> None:
        self._stream, self._color = stream, color
        self._width = min(width, WIDEST)

    def write(self, lines: Iterable[Line]) -> None:
        """Print, as the lines come."""
        for indent, pieces, hang in lines:
            indent = margin = min(indent, self._width // 3)
            further = indent + (hang or (0 if indent else HANG))
            first, later = (max(NARROWEST, self._width - taken) for taken in (indent, further))
            for row in wrapped(pieces, first, later):
                text = "".join(painted(isolated(text), style, self._color) for text, style in row)
                self._stream.write(" " * margin + text + "\n" if row else "\n")
                margin = further


def wrapped(pieces: Sequence[Piece], width: int, later: int) -> Iterator[list[Piece]]:
    """Pieces of a line, as a row of at most `width` columns, and others of at most `later`."""
    plain = "".join(text for text, _ in pieces).rstrip()
    for start, end in _rows(plain, width, later):
        yield _slice(pieces, start, end)


def _rows(plain: str, width: int, later: int) -> Iterator[tuple[int, int]]:
    """Where each row of a text begins and ends; blanks between two rows are in neither."""
    start = 0
    while (reach := _reach(plain, start, width)) < len(plain):
        stop = _break(plain, start, reach)
        end = start + len(plain[start:stop].rstrip())
        if end > start:  # else nothing but an indent wider than the screen
            yield start, end
        start, width = next(at for at in count(stop) if plain[at] != " "), later
    yield start, len(plain)


def _reach(plain: str, start: int, width: int) -> int:
    """Behind the last character that has room."""
    most = plain[start : start + width * CLUSTER]
    if most[:width].isascii() and (most[width:].isascii() or cell(most[width])):
        return start + min(width, len(most))
    used = 0
    for at, character in enumerate(most, start):
        used += cell(character)
        if used > width:
            return at
    return start + len(most)


_WIDE = re.compile(r"[\u2e80-\ufe00\uff00-\uffef\U00020000-\U0003ffff]")
"""Scripts without blanks: a row may end behind any of their characters."""


def _break(plain: str, start: int, reach: int) -> int:
    """Where a row that has room up to `reach` ends best: at a blank or behind a wide character, but
    not in the blanks it begins with."""
    begin = start + len(plain[start:reach]) - len(plain[start:reach].lstrip(" "))
    wide = max((found.end() for found in _WIDE.finditer(plain, begin, reach)), default=-1)
    best = max(plain.rfind(" ", begin, reach + 1), wide)
    return best if best > begin else reach


def _slice(pieces: Sequence[Piece], start: int, end: int) -> list[Piece]:
    found: list[Piece] = []
    place = 0
    for text, style in pieces:
        if part := text[max(0, start - place) : max(0, end - place)]:
            found.append((part, style))
        place += len(text)
    return found
