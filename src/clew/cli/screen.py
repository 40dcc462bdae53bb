"""Where text goes: a terminal with colours, or a pipe without."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TextIO

from clew.cli.text import cells, fit, pad

_CODES = {
    "bold": 1, "dim": 2, "italic": 3, "underline": 4, "reverse": 7, "red": 31, "green": 32,
    "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36,
}  # fmt: skip

Piece = tuple[str, str]
"""Text and its style: words of `_CODES`, which Rich knows too; "" is plain."""


class Column(NamedTuple):
    """One column of a table."""

    title: str
    style: str = ""
    right: bool = False
    flexible: bool = False
    """Cut when the table is too wide."""


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
        if not self.color or not style or not text:
            return text
        codes = ";".join(str(_CODES[word]) for word in style.split())
        return f"\x1b[{codes}m{text}\x1b[0m"

    def line(self, *pieces: Piece | str) -> None:
        """Print a line made of pieces."""
        painted = (p if isinstance(p, str) else self.paint(*p) for p in pieces)
        self.stream.write("".join(painted).rstrip() + "\n")

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[Piece | str]]) -> None:
        """Print rows aligned under their titles, within the width of the terminal."""
        texts = [[cell if isinstance(cell, str) else cell[0] for cell in row] for row in rows]
        widths = [
            max(cells(column.title), *(cells(row[i]) for row in texts))
            for i, column in enumerate(columns)
        ]
        over = sum(widths) + 2 * (len(widths) - 1) - self.width
        for i, column in enumerate(columns):
            if column.flexible and over > 0 and self.is_terminal:
                widths[i] = max(12, widths[i] - over)
        self._row([(column.title, "dim") for column in columns], columns, widths)
        for row in rows:
            styled = (
                (cell, column.style) if isinstance(cell, str) else cell
                for cell, column in zip(row, columns, strict=True)
            )
            self._row(styled, columns, widths)

    def _row(self, row: Iterable[Piece], columns: Sequence[Column], widths: Sequence[int]) -> None:
        pieces: list[Piece | str] = []
        for (text, style), column, width in zip(row, columns, widths, strict=True):
            if pieces:
                pieces.append("  ")
            text = fit(text, width)
            padding = pad("", width - cells(text))
            pieces += [padding, (text, style)] if column.right else [(text, style), padding]
        self.line(*pieces)


def _colorless() -> bool:
    """https://no-color.org, and terminals that say that they have none."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
