"""How an engine writes an expression over words: what has this word and that one, but not a third.

Words are letters, digits and private use characters (words.py, facets.py), so that nothing a
person types can reach the syntax of an engine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Syntax(NamedTuple):
    """The parts of the language. An expression is bound as a parameter."""

    quote: str
    beginning: str
    """Stands behind a word that may go on."""
    both: str
    either: str
    without: str

    def word(self, word: str, prefix: bool = False) -> str:
        return f"{self.quote}{word}{self.quote}{self.beginning if prefix else ''}"

    def every(self, terms: Iterable[str]) -> str:
        return self.both.join(terms)

    def any(self, terms: Iterable[str]) -> str:
        return f"({self.either.join(terms)})"


FTS5 = Syntax('"', "*", " AND ", " OR ", " NOT ")
TSQUERY = Syntax("'", ":*", " & ", " | ", " & !")
