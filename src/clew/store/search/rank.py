"""Relevance: BM25 over the hits that are given, in Python.

The index knows which rows have a word, not how often nor how long they are (that would more than
double it), so the hits are read and counted: a bounded number, the newest. How rare a word is
comes from the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from math import log

from clew.store.search.phrase import Phrase, occurrences
from clew.store.search.rows import Found
from clew.store.search.text import Query
from clew.store.search.words import fold

_MOST_COUNTED = 64
_SATURATION, _LENGTH_WEIGHT = 1.2, 0.75
"""k1 and b of BM25, at their usual values."""


def _count(phrase: Phrase, folded: str) -> int:
    """About how often a phrase stands in a text."""
    if len(phrase.surface) == 1:
        return folded.count(phrase.surface[0][0])
    return sum(1 for _ in islice(occurrences(phrase, folded, loose=True), _MOST_COUNTED))


def rarity(having: int, rows: int) -> float:
    """The weight of a word that so many of the rows have."""
    return log(1 + (max(0, rows - having) + 0.5) / (having + 0.5))


class Ranking:
    """Collects hits, at most so many, and gives the best."""

    def __init__(self, query: Query, most: int) -> None:
        self._query = query
        self._most = most
        self._hits: list[tuple[int, int, list[int]]] = []

    @property
    def full(self) -> bool:
        return len(self._hits) >= self._most

    def add(self, hits: Iterable[Found]) -> None:
        """Count the words of hits, until it is full."""
        for found in islice(hits, self._most - len(self._hits)):
            folded = fold(found.text)
            counts = [
                max(_count(phrase, folded) for phrase in clause.any) for clause in self._query.all
            ]
            self._hits.append((found.row[0], len(folded), counts))

    def best(self, limit: int, weights: Sequence[float]) -> tuple[int, ...]:
        """Ids of the best, best first, newest first among equals. One weight for each clause."""
        if not self._hits:
            return ()
        average = max(1.0, sum(length for _, length, _ in self._hits) / len(self._hits))

        def key(hit: tuple[int, int, list[int]]) -> tuple[float, int]:
            number, length, counts = hit
            part = 1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * length / average
            score = sum(
                weight * count / (count + _SATURATION * part)
                for weight, count in zip(weights, counts, strict=True)
            )
            return -score, -number

        return tuple(number for number, _, _ in sorted(self._hits, key=key)[:limit])
