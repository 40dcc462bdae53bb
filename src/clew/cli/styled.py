"""Prints the lines of a transcript on a terminal: wrapped at words, with Rich."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.text import Text

from clew.cli.lines import Line

WIDEST = 100
"""Columns; longer lines are hard to read."""


class _Console(Console):
    """Rich's, which would end the process when a pager is left."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class StyledWriter:
    """Wraps at the width of the terminal, and keeps the indent of a line in what follows."""

    def __init__(self, stream: TextIO, width: int, color: bool) -> None:
        self._stream = stream
        self._width = min(width, WIDEST)
        self._console = _Console(
            file=stream, width=self._width, force_terminal=True, highlight=False, markup=False,
            emoji=False, color_system="standard" if color else None, legacy_windows=False,
            no_color=not color,
        )  # fmt: skip

    def write(self, lines: Iterable[Line]) -> None:
        """Print, as the lines come."""
        for indent, pieces, hang in lines:
            if not pieces:
                self._stream.write("\n")
                continue
            text = Text.assemble(*pieces)
            text.expand_tabs(4)
            margin = Text(" " * indent)
            for part in text.wrap(self._console, max(20, self._width - indent - hang)):
                part.rstrip()
                self._console.print(margin + part, soft_wrap=True)
                margin = Text(" " * (indent + hang))
