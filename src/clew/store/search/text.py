"""What a person types, as a value; and the two ways to evaluate it, which always agree.

`parse` never fails on what the text says: quotes may stay open, operators may dangle. `to_match`
gives the expression for the index, `matches` evaluates the same words on one text. Words contain
letters and digits only, so nothing a person types can reach the syntax of FTS5.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from clew.errors import InputError
from clew.store.search.words import bare, fold, pairs, parts, pieces, segment

__all__ = ["Clause", "Phrase", "Query", "fold", "matches", "may_match", "parse", "segment",
           "to_match"]  # fmt: skip

QUERY_LIMIT = 4096
"""Longest query text, in characters. The index refuses expressions far beyond this."""

_ITEM = re.compile(r'(-(?=[^\s-]))?(?:"([^"]*)"?(\*?)|([^\s"]+))')
_QUOTES = str.maketrans("“”„", '"""')


class Phrase(Struct, frozen=True):
    """Words that follow one another; with `prefix` the last one may go on.

    `surface`: the runs and words as they stand in a folded text, for highlighting.
    """

    words: tuple[str, ...]
    prefix: bool
    surface: tuple[tuple[str, bool], ...]

    @property
    def needle(self) -> str:
        """What a segmented text between spaces holds if the phrase is in it."""
        return f" {' '.join(self.words)}{'' if self.prefix else ' '}"

    @property
    def hint(self) -> str:
        """A part that every folded text with this phrase holds: its longest word."""
        return max(self.words, key=len)


class Clause(Struct, frozen=True):
    """Phrases of which one is enough."""

    any: tuple[Phrase, ...]


class Query(Struct, frozen=True):
    """A parsed query: every clause of `all`, no phrase of `none`.

    Both empty: everything matches, unless the text was there but held no word (`wordless`).
    """

    all: tuple[Clause, ...] = ()
    none: tuple[Phrase, ...] = ()
    wordless: bool = False


def _phrase(text: str, star: bool) -> Phrase | None:
    """The words of a chunk as a phrase; None if there are none."""
    found = pieces(bare(text))
    if not found:
        return None
    words: list[str] = []
    prefix = False
    for number, (piece, is_run) in enumerate(found, start=1):
        last = number == len(found)
        if not is_run:
            words.append(piece.casefold())
            prefix = last and star
        elif not last:
            # What follows in the same chunk ends this run, and so does the end of it in the text.
            words += (*pairs(piece), piece[-1])
        else:
            words += pairs(piece) or [piece]
            prefix = len(piece) == 1
    surface = tuple((piece.casefold(), is_run) for piece, is_run in found)
    return Phrase(tuple(words), prefix, surface)


def _alternatives(text: str, star: bool) -> tuple[Phrase, ...]:
    """A chunk as it is; a single identifier also as the sequence of its parts."""
    whole = _phrase(text, star)
    if whole is None:
        return ()
    found = pieces(bare(text))
    if len(found) == 1 and (split := parts(found[0][0])):
        return whole, Phrase(split, whole.prefix, tuple((part, False) for part in split))
    return (whole,)


def _items(text: str) -> Iterator[tuple[str, tuple[Phrase, ...]]]:
    """("+" or "-", alternatives) for each chunk, ("OR" or "AND", ...) for the bare words."""
    for match in _ITEM.finditer(text.translate(_QUOTES)):
        minus, quoted, star, plain = match.groups()
        chunk = quoted if plain is None else plain
        found = _alternatives(chunk, star == "*" or (plain is not None and plain.endswith("*")))
        if plain in ("OR", "AND") and not minus:
            yield plain, found
        elif found:
            yield ("-" if minus else "+"), found


def parse(text: str) -> Query:
    """The query that a text means. Raises InputError beyond QUERY_LIMIT characters only."""
    if len(text) > QUERY_LIMIT:
        raise InputError(
            f"the search text is {len(text):,} characters, the limit is {QUERY_LIMIT:,}. "
            f"Search for a part of it."
        )
    items = list(_items(text))
    if len(items) == 1 and items[0][0] in ("OR", "AND"):
        items = [("+", items[0][1])]  # a lone OR is somebody looking for the word
    clauses: list[tuple[Phrase, ...]] = []
    none: list[Phrase] = []
    before = joining = ""
    for kind, found in items:
        if kind == "+" and joining and before == "+":
            clauses[-1] += found
        elif kind == "+":
            clauses.append(found)
        elif kind == "-":
            none += found
        joining = "OR" if kind == "OR" else ""
        before = before if kind in ("OR", "AND") else kind
    return Query(
        all=tuple(dict.fromkeys(Clause(tuple(dict.fromkeys(any_of))) for any_of in clauses)),
        none=tuple(dict.fromkeys(none)),
        wordless=not clauses and not none and bool(text.strip()),
    )


def _match(phrase: Phrase) -> str:
    return f'"{" ".join(phrase.words)}"{"*" if phrase.prefix else ""}'


def _any(options: Iterable[str]) -> str:
    return f"({' OR '.join(options)})"


def to_match(query: Query, facets: Iterable[Iterable[str]] = ()) -> str | None:
    """The FTS5 expression, to be bound as a parameter; None if nothing is required.

    Of each facet one word is required as well. FTS5 cannot list the rows without a word: a query
    that only excludes is a scan with `matches`.
    """
    required = [_any(map(_match, clause.any)) for clause in query.all]
    required += [_any(f'"{word}"' for word in words) for words in facets]
    if not required:
        return None
    wanted = " AND ".join(required)
    return f"({wanted}) NOT {_any(map(_match, query.none))}" if query.none else wanted


def may_match(query: Query, text: str) -> bool:
    """Cheap: False only if `matches` is False. Looks for the longest words, wherever they stand."""
    folded = fold(text)
    return not query.wordless and all(
        any(phrase.hint in folded for phrase in clause.any) for clause in query.all
    )


def matches(query: Query, text: str) -> bool:
    """Whether the text is found: exactly the rows the index finds for `to_match`."""
    if not may_match(query, text):
        return False
    words = f" {segment(text)} "
    return all(
        any(phrase.needle in words for phrase in clause.any) for clause in query.all
    ) and not any(phrase.needle in words for phrase in query.none)
