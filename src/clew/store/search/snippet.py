"""The part of a text that shows why it was found, with the words in it marked. Pure functions.

Words are looked for in the folded text, where they stand as they were typed, and then mapped back.
The cost is bounded by where the first match is, not by the length of the text.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import NamedTuple

from clew.domain.search import Piece
from clew.domain.text import clean
from clew.store.search.phrase import Clause, occurrences
from clew.store.search.text import Query
from clew.store.search.words import fold

WIDTH = 160
"""Characters of a snippet."""

_SLICE = 8192
_OVERLAP = 512
_MOST_SPANS = 8
_LONGEST_GAP = 32

_INVISIBLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]+")
_PIECES = re.compile(r"\S+|\s+")


class Span(NamedTuple):
    """A found phrase: where in the folded text, and for which clause."""

    start: int
    end: int
    clause: int


def _spans(query: Query, folded: str) -> list[Span]:
    """The first places of each clause, in order of place; without overlaps."""
    found: list[Span] = []
    for number, clause in enumerate(query.all):
        spans = _clause_spans(clause, number, folded, loose=False)
        found += spans or _clause_spans(clause, number, folded, loose=True)
    found.sort(key=_by_place)
    apart: list[Span] = []
    for span in found:
        if not apart or span.start >= apart[-1].end:
            apart.append(span)
    return apart


def _by_place(span: Span) -> tuple[int, int]:
    return span.start, -span.end


def _clause_spans(clause: Clause, number: int, folded: str, loose: bool) -> list[Span]:
    found: list[Span] = []
    for phrase in clause.any:
        for start, end in islice(occurrences(phrase, folded, loose, _LONGEST_GAP), _MOST_SPANS):
            found.append(Span(start, end, number))
    return found


def _best(spans: list[Span], clauses: int, width: int) -> list[Span]:
    """The spans of the window with most different clauses, then most spans, then the first."""
    best: list[Span] = []
    score = (0, 0)
    for number, first in enumerate(spans):
        window = [span for span in spans[number:] if span.end <= first.start + width] or [first]
        here = (len({span.clause for span in window}), len(window))
        if here > score:
            best, score = window, here
        if clauses == 1:
            break  # one word: where it first stands
    return best


def _originals(text: str, folded: str, places: list[int]) -> list[int]:
    """Ascending places of the folded text as places of the text."""
    if len(text) == len(folded):
        return places  # folding nearly always replaces one character by one
    found: list[int] = []
    behind = 0
    for match in _PIECES.finditer(text):
        length = len(fold(match[0]))
        while len(found) < len(places) and places[len(found)] <= behind + length:
            found.append(match.start() + _original(match[0], places[len(found)] - behind))
        behind += length
        if len(found) == len(places):
            break
    return found + [len(text)] * (len(places) - len(found))


def _original(piece: str, place: int) -> int:
    """A place in one folded word as a place in the word, behind marks of the last character."""
    lengths = [len(fold(piece[:end])) for end in range(len(piece) + 1)]
    at = next((end for end, length in enumerate(lengths) if length >= place), len(piece))
    while at < len(piece) and lengths[at + 1] == lengths[at]:
        at += 1
    return at


def _shown(text: str) -> str:
    """On one line, without anything that moves the cursor or turns the text around."""
    return text if text.isprintable() else clean(_INVISIBLE.sub(" ", text))


def _word_start(text: str, at: int, limit: int) -> int:
    """The next beginning of a word at or after `at`, if one comes before `limit`."""
    if at <= 0:
        return 0
    space = text.find(" ", at, limit)
    return space + 1 if space >= 0 else at


def _window(text: str, marks: list[tuple[int, int]], width: int) -> tuple[int, int]:
    """The part of the text to show: around the marks, a little more of what follows."""
    first, last = (marks[0][0], marks[-1][1]) if marks else (0, 0)
    room = max(0, width - (last - first))
    start = _word_start(text, max(0, min(first - room // 3, len(text) - width)), first)
    end = min(len(text), max(last, start + width))
    if end < len(text) and (space := text.rfind(" ", max(last, end - 24), end)) >= 0:
        end = space
    return start, end


def highlight(query: Query, text: str, width: int = WIDTH) -> tuple[Piece, ...]:
    """About `width` characters around the best place, as (text, highlighted) pieces.

    One line, safe to print. A text without any of the words shows its beginning.
    """
    base, part, folded, spans = 0, "", "", list[Span]()
    while query.all:
        part = text[base : base + _SLICE]
        folded = fold(part)
        spans = _best(_spans(query, folded), len(query.all), width)
        if spans or base + _SLICE >= len(text):
            break
        base += _SLICE - _OVERLAP
    marks: list[tuple[int, int]] = []
    if spans:
        places = _originals(part, folded, [at for span in spans for at in span[:2]])
        marks = [(base + a, base + b) for a, b in zip(places[::2], places[1::2], strict=True)]
    start, end = _window(text, marks, width)
    found: list[Piece] = [("…", False)] if start > 0 else []
    at = start
    for first, last in marks:
        found += [(_shown(text[at:first]), False), (_shown(text[first:last]), True)]
        at = last
    found += [(_shown(text[at:end]), False), ("…" if end < len(text) else "", False)]
    return tuple(piece for piece in found if piece[0])
