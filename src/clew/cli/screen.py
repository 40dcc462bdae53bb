"""Where text goes: a terminal with colours, or a pipe without."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TextIO

from clew.cli.text import cells, fit, isolated, pad

_CODES = {
    "bold": 1, "dim": 2, "italic": 3, "underline": 4, "reverse": 7, "red": 31, "green": 32,
    "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36,
}  # fmt: skip

NARROWEST = 12
"""Columns that a cell of a table keeps."""

Piece = tuple[str, str]
"""Text and its style: words of `_CODES`; "" is plain."""


Cell = str | Piece | list[Piece]
"""Of a table: text in the style of its column, or with its own."""


class Column(NamedTuple):
    """One column of a table."""

    title: str
    style: str = ""
    right: bool = False
    flexible: bool = False
    """Cut when the table is too wide."""
    spare: bool = False
    """Left out when there is no room for the others."""


def painted(text: str, style: str, color: bool = True) -> str:
    """Text with its style, unless there are no colours."""
    if not color or not style or not text:
        return text
    codes = ";".join(str(_CODES[word]) for word in style.split())
    return f"\x1b[{codes}m{text}\x1b[0m"


class Screen:
    """A stream, and what it can show."""

    def __init__(self, stream: TextIO, color: bool = True) -> None:
        self.stream = stream
        self.is_terminal = stream.isatty()
        self.color = color and self.is_terminal and not _colorless()

    @property
    def width(self) -> int:
        """Columns: of COLUMNS, of the terminal, or 100."""
        given = os.environ.get("COLUMNS", "")
        if given.isdecimal() and int(given):
            return max(40, int(given))
        try:
            return max(40, os.get_terminal_size(self.stream.fileno()).columns)
        except (OSError, ValueError):
            return 100

    @property
    def unicode(self) -> bool:
        """Whether signs beyond ASCII can be shown."""
        return (getattr(self.stream, "encoding", None) or "").lower().startswith("utf")

    def sign(self, fancy: str, plain: str) -> str:
        return fancy if self.unicode else plain

    def paint(self, text: str, style: str) -> str:
        """Text with its style, if there are colours here."""
        return painted(text, style, self.color)

    def line(self, *pieces: Piece | str) -> None:
        """Print a line made of pieces."""
        styled = ((p, "") if isinstance(p, str) else p for p in pieces)
        if self.is_terminal:
            styled = ((isolated(text), style) for text, style in styled)
        self.stream.write("".join(self.paint(*piece) for piece in styled).rstrip() + "\n")

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
        """Print rows aligned under their titles, within the width of the terminal."""
        styled = [[*map(_pieces, row, columns)] for row in rows]
        widths = [
            max(cells(column.title), *(_cells(row[i]) for row in styled))
            for i, column in enumerate(columns)
        ]
        kept = self._kept(columns, widths) if self.is_terminal else [*range(len(columns))]
        columns, widths = [columns[i] for i in kept], [widths[i] for i in kept]
        if self.is_terminal:
            self._narrow(columns, widths)
        self._row([[(column.title, "dim")] for column in columns], columns, widths)
        for row in styled:
            self._row([row[i] for i in kept], columns, widths)

    def _kept(self, columns: Sequence[Column], widths: Sequence[int]) -> list[int]:
        """The columns for which there is room; of the spare ones the last goes first."""
        kept = [*range(len(columns))]
        for i in reversed(range(len(columns))):
            least = sum(min(widths[at], NARROWEST) for at in kept) + 2 * (len(kept) - 1)
            if columns[i].spare and least > self.width:
                kept.remove(i)
        return kept

    def _narrow(self, columns: Sequence[Column], widths: list[int]) -> None:
        """Make what is too wide for the screen narrower: the flexible column first."""
        over = sum(widths) + 2 * (len(widths) - 1) - self.width
        order = sorted(range(len(widths)), key=lambda i: (not columns[i].flexible, -widths[i]))
        for i in order:
            taken = min(max(0, over), max(0, widths[i] - NARROWEST))
            widths[i], over = widths[i] - taken, over - taken

    def _row(
        self, row: Iterable[list[Piece]], columns: Sequence[Column], widths: Sequence[int]
    ) -> None:
        pieces: list[Piece | str] = []
        for cell, column, width in zip(row, columns, widths, strict=True):
            if pieces:
                pieces.append("  ")
            shown = _fitted(cell, width)
            padding = pad("", width - _cells(shown))
            pieces += [padding, *shown] if column.right else [*shown, padding]
        self.line(*pieces)


def _pieces(cell: Cell, column: Column) -> list[Piece]:
    if isinstance(cell, str):
        return [(cell, column.style)]
    return cell if isinstance(cell, list) else [cell]


def _cells(pieces: Iterable[Piece]) -> int:
    return sum(cells(text) for text, _ in pieces)


def _fitted(pieces: Iterable[Piece], width: int) -> list[Piece]:
    """As much of a cell as has room."""
    shown: list[Piece] = []
    for text, style in pieces:
        shown.append((fit(text, width), style))
        width -= cells(shown[-1][0])
        if width <= 0:
            break
    return shown


def _colorless() -> bool:
    """https://no-color.org, and terminals that say that they have none."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
