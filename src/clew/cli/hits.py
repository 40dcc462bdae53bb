"""What a search found, as pieces of a line."""

from __future__ import annotations

from clew.cli.screen import Piece
from clew.cli.text import one_line
from clew.domain.search import Hit


def snippet(hit: Hit) -> list[Piece]:
    """The text with what was found in colour; blanks at the borders of pieces stay."""
    pieces: list[Piece] = []
    for text, found in hit.snippet:
        before = " " if text[:1].isspace() else ""
        after = " " if text[-1:].isspace() and text.strip() else ""
        pieces.append((before + one_line(text) + after, "bold red" if found else ""))
    return pieces
