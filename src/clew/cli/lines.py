"""Lines of a transcript, and the two writers that print them: plain here, wrapped in styled.py."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, TextIO

from clew.cli.registry import STYLED, load
from clew.cli.screen import Piece, Screen

WIDEST = 100
"""Columns; longer lines are hard to read."""


class Line(NamedTuple):
    """Pieces of text at an indent; the text holds no line ends and nothing that acts."""

    indent: int
    pieces: tuple[Piece, ...]
    hang: int = 0
    """How much further in the line goes on when it is wrapped."""


BLANK = Line(0, ())


def line(indent: int, *pieces: Piece | str, hang: int = 0) -> Line:
    """A line of pieces; a text alone has no style."""
    styled = tuple((piece, "") if isinstance(piece, str) else piece for piece in pieces)
    return Line(indent, styled, hang)


class Writer(Protocol):
    """Prints lines."""

    def write(self, lines: Iterable[Line]) -> None: ...


class PlainWriter:
    """One line of output for each line: for pipes and files."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def write(self, lines: Iterable[Line]) -> None:
        for indent, pieces, _ in lines:
            self._screen.line(" " * indent, *pieces)


def writer(screen: Screen, stream: TextIO | None = None) -> Writer:
    """The writer for a screen, or for the pager before it."""
    if screen.is_terminal:
        styled: Any = load(STYLED)
        return styled.StyledWriter(stream or screen.stream, screen.width, screen.color)
    return PlainWriter(screen)
