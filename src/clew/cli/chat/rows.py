"""Rows of a terminal, as text with colours: of lines, of a table, of an answer that streams."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from clew.cli.chat.stream import Block, Splitter
from clew.cli.lines import BLANK, Line, line
from clew.cli.registry import load
from clew.cli.screen import Column, Piece, Screen
from clew.cli.styled import StyledWriter
from clew.cli.text import visible

PAINTING = "clew.cli.chat.painting"
"""Loaded when there is something to paint."""
THINKING = "dim italic"
NARROWEST = 20


class _Table(Screen):
    """Takes rows instead of printing them."""

    def __init__(self, width: int, color: bool) -> None:
        super().__init__(io.StringIO(), color)
        self.is_terminal, self.color, self._width = True, color, max(NARROWEST, width)

    @property
    def width(self) -> int:
        return self._width

    @property
    def unicode(self) -> bool:
        return is_unicode()


def is_unicode() -> bool:
    """Whether the terminal takes signs beyond ASCII."""
    return (getattr(sys.stdout, "encoding", None) or "").lower().startswith("utf")


def line_rows(lines: Iterable[Line], width: int, color: bool) -> list[str]:
    """Lines, wrapped."""
    out = io.StringIO()
    StyledWriter(out, width, color).write(lines)
    return out.getvalue().split("\n")[:-1]


def piece_lines(pieces: Iterable[Piece | str]) -> list[Line]:
    """Pieces as lines: a line end in one begins the next."""
    rows: list[list[Piece]] = [[]]
    for piece in pieces:
        text, style = (piece, "") if isinstance(piece, str) else piece
        first, *others = visible(text).split("\n")
        rows[-1].append((first, style))
        rows += [[(other, style)] for other in others]
    return [
        line(_indent(row), *_dedented(row)) if any(t for t, _ in row) else BLANK for row in rows
    ]


def _indent(row: Sequence[Piece]) -> int:
    text = "".join(text for text, _ in row)
    return len(text) - len(text.lstrip(" "))


def _dedented(row: Sequence[Piece]) -> list[Piece]:
    left, kept = _indent(row), list[Piece]()
    for text, style in row:
        taken = min(left, len(text)) if left else 0
        left -= taken
        kept.append((text[taken:], style))
    return kept


def table_rows(
    titles: Sequence[str], rows: Iterable[Sequence[str]], width: int, color: bool
) -> list[str]:
    """A table; its widest column gives way."""
    cells = [[visible(cell).replace("\n", " ") for cell in row] for row in rows]
    widths = [max((len(row[at]) for row in cells), default=0) for at in range(len(titles))]
    widest = widths.index(max(widths, default=0)) if widths else -1
    columns = [Column(title, flexible=at == widest) for at, title in enumerate(titles)]
    screen = _Table(width, color)
    screen.table(columns, cells)
    stream: Any = screen.stream
    return stream.getvalue().split("\n")[:-1]


def markdown_rows(text: str, width: int, color: bool) -> list[str]:
    """A whole text as answers are shown."""
    answer = Answer()
    return answer.add(text, width, color) + answer.end(width, color)


class Answer:
    """An answer that streams: rows that are final, and a tail that is not."""

    def __init__(self, style: str = "") -> None:
        self._style = style
        self._splitter = Splitter()
        self._painters: dict[tuple[int, bool], Any] = {}
        self.begun = False

    def add(self, text: str, width: int, color: bool) -> list[str]:
        """A piece of it; gives the rows that are final now."""
        self.begun = self.begun or bool(text)
        return self._paint(self._splitter.feed(text), width, color)

    def end(self, width: int, color: bool) -> list[str]:
        """It is whole; gives the rows that are left."""
        rows = self._paint(self._splitter.finish(), width, color)
        self._splitter, self.begun = Splitter(), False
        return rows

    def tail(self, width: int, color: bool, most: int) -> list[str]:
        """The rows that are not final, the newest of them."""
        block = self._splitter.tail
        if block is None or most < 1:
            return []
        return self._paint([block], width, color)[-most:]

    def _paint(self, blocks: Iterable[Block], width: int, color: bool) -> list[str]:
        rows: list[str] = []
        for block in blocks:
            rows += self._painter(width, color).rows(block, self._style)
        return rows

    def _painter(self, width: int, color: bool) -> Any:
        if (width, color) not in self._painters:
            painting: Any = load(PAINTING)
            self._painters = {(width, color): painting.Painter(width, color)}
        return self._painters[width, color]
