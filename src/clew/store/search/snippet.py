"""The part of a text that shows why it was found, with the words in it marked. Pure functions.

Words are looked for in the folded text, where they stand as they were typed, and then mapped back.
The cost is bounded by where the first match is, not by the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from clew.domain.search import Piece
from clew.domain.text import clean
from clew.store.search.text import Phrase, Query
from clew.store.search.words import fold, joins

WIDTH = 160
"""Characters of a snippet."""

_SLICE = 8192
_OVERLAP = 512
_MOST_SPANS = 32
_LONGEST_GAP = 32

_INVISIBLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]+")
_PIECES = re.compile(r"\S+|\s+")


class Span(NamedTuple):
    """A found phrase: where in the folded text, and for which clause."""

    start: int
    end: int
    clause: int


def _is_part(folded: str, at: int) -> bool:
    """Whether the character at this place belongs to a word (of a script with spaces)."""
    if not 0 <= at < len(folded):
        return False
    character = folded[at]
    return character.isalnum() if character.isascii() else joins(character)


def _end(phrase: Phrase, folded: str, start: int, loose: bool) -> int | None:
    """Where the phrase that begins at `start` ends, or None if it is not this phrase."""
    at = start
    for number, (piece, _) in enumerate(phrase.surface):
        if number:
            limit = at + _LONGEST_GAP
            while at < limit and at < len(folded) and not folded.startswith(piece, at):
                if folded[at].isalnum():
                    return None
                at += 1
        if not folded.startswith(piece, at):
            return None
        at += len(piece)
    is_run = phrase.surface[-1][1]
    if not (loose or is_run or phrase.prefix) and _is_part(folded, at):
        return None
    return at


def _occurrences(phrase: Phrase, folded: str, loose: bool) -> Iterator[tuple[int, int]]:
    """Where the phrase stands; `loose` also inside words (part of an identifier)."""
    first, is_run = phrase.surface[0]
    at = folded.find(first)
    while at >= 0:
        if loose or is_run or not _is_part(folded, at - 1):
            end = _end(phrase, folded, at, loose)
            if end is not None:
                yield at, end
        at = folded.find(first, at + 1)


def _spans(query: Query, folded: str) -> list[Span]:
    """The first places of each clause, in order of place; without overlaps."""
    found: list[Span] = []
    for number, clause in enumerate(query.all):
        for loose in (False, True):
            before = len(found)
            for phrase in clause.any:
                for start, end in _occurrences(phrase, folded, loose):
                    found.append(Span(start, end, number))
                    if len(found) - before >= _MOST_SPANS:
                        break
            if len(found) > before:
                break
    found.sort(key=lambda span: (span.start, -span.end))
    apart: list[Span] = []
    for span in found:
        if not apart or span.start >= apart[-1].end:
            apart.append(span)
    return apart


def _best(spans: list[Span], width: int) -> list[Span]:
    """The spans of the window with most different clauses, then most spans, then the first."""
    best: list[Span] = spans[:1]
    score = (0, 0)
    for number, first in enumerate(spans):
        window = [first]
        for span in spans[number + 1 :]:
            if span.end > first.start + width:
                break
            window.append(span)
        here = (len({span.clause for span in window}), len(window))
        if here > score:
            best, score = window, here
    return best


def _originals(text: str, folded: str, places: list[int]) -> list[int]:
    """Ascending places of the folded text as places of the text."""
    if len(text) == len(folded):
        return places  # folding nearly always replaces one character by one
    found: list[int] = []
    behind = 0
    for match in _PIECES.finditer(text):
        folds = fold(match[0])
        while len(found) < len(places) and places[len(found)] <= behind + len(folds):
            wanted = places[len(found)] - behind
            offset = next((i for i in range(len(match[0])) if len(fold(match[0][:i])) >= wanted),
                          len(match[0]))  # fmt: skip
            found.append(match.start() + offset)
        behind += len(folds)
        if len(found) == len(places):
            break
    return found + [len(text)] * (len(places) - len(found))


def _shown(text: str) -> str:
    """On one line, without anything that moves the cursor or turns the text around."""
    return clean(_INVISIBLE.sub(" ", text))


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
        spans = _best(_spans(query, folded), width)
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
