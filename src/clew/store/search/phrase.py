"""A phrase of a query: its words for the index, and where it stands in a folded text."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from clew.store.search.words import WORD_LIMIT, bare, joins, pairs, parts, pieces


class Phrase(Struct, frozen=True):
    """Words that follow one another; with `prefix` the last one may go on.

    `surface`: the runs and words as they stand in a folded text. `run`: the phrase as it stands,
    if it is one run of a script without spaces; such a phrase is in a text if the run is.
    """

    words: tuple[str, ...]
    prefix: bool
    surface: tuple[tuple[str, bool], ...]
    run: str | None = None

    @property
    def needle(self) -> str:
        """What a segmented text between spaces holds if, and only if, the phrase is in it."""
        return f" {' '.join(self.words)}{'' if self.prefix else ' '}"

    @property
    def hint(self) -> str:
        """A part that every folded text with this phrase holds."""
        return self.run or max(self.words, key=len)


class Clause(Struct, frozen=True):
    """Phrases of which one is enough."""

    any: tuple[Phrase, ...]


def alternatives(chunk: str, star: bool) -> tuple[Phrase, ...]:
    """A chunk of a query as a phrase; a single identifier also as the sequence of its parts.

    () if there is no word in it. `star`: its last word is a beginning.
    """
    found = pieces(bare(chunk))
    if not found:
        return ()
    whole = _phrase(found, star)
    if len(found) == 1 and (split := parts(found[0][0])):
        return whole, Phrase(split, whole.prefix, tuple((part, False) for part in split))
    return (whole,)


def _phrase(found: list[tuple[str, bool]], star: bool) -> Phrase:
    words: list[str] = []
    surface = tuple((piece.casefold(), is_run) for piece, is_run in found)
    for piece, is_run in surface[:-1]:
        # What follows in the same chunk ends a run, and so does the end of the run in the text.
        words += (*pairs(piece), piece[-1]) if is_run else (piece,)
    last, is_run = surface[-1]
    words += (pairs(last) or [last]) if is_run else [last]
    prefix = len(last) == 1 if is_run else star
    run = last if is_run and len(surface) == 1 else None
    return Phrase(tuple(words), prefix, surface, run)


def occurrences(
    phrase: Phrase, folded: str, loose: bool, gap: int | None = None
) -> Iterator[tuple[int, int]]:
    """Where the phrase stands in a folded text, as (start, end).

    `loose`: also inside words, as the parts of an identifier do. `gap`: the most characters
    between two of its words. Without a gap and loosely it never misses a place.
    """
    first, is_run = phrase.surface[0]
    at = folded.find(first)
    while at >= 0:
        if loose or is_run or not _in_word(folded, at - 1):
            end = _end(phrase, folded, at, loose, gap)
            if end is not None:
                yield at, end
        at = folded.find(first, at + 1)


def may_stand(phrase: Phrase, folded: str) -> bool:
    """False only if no text that folds to this holds the phrase."""
    if phrase.run is not None or len(phrase.words) == 1:
        return phrase.hint in folded
    if any(len(piece) >= WORD_LIMIT for piece, _ in phrase.surface):
        return phrase.hint in folded  # the text may go on where the word was cut off
    return next(occurrences(phrase, folded, loose=True), None) is not None


def _end(phrase: Phrase, folded: str, start: int, loose: bool, gap: int | None) -> int | None:
    """Where the phrase that begins at `start` ends, or None if it is not this phrase."""
    at = start + len(phrase.surface[0][0])
    for piece, _ in phrase.surface[1:]:
        limit = len(folded) if gap is None else min(len(folded), at + gap)
        while not folded.startswith(piece, at):
            if at >= limit or folded[at].isalnum():
                return None
            at += 1
        at += len(piece)
    if loose or phrase.prefix or phrase.surface[-1][1] or not _in_word(folded, at):
        return at
    return None


def _in_word(folded: str, at: int) -> bool:
    """Whether the character at this place belongs to a word (of a script with spaces)."""
    if not 0 <= at < len(folded):
        return False
    character = folded[at]
    return character.isalnum() if character.isascii() else joins(character)
