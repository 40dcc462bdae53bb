"""What a person types, as a value; and the two ways to evaluate it, which always agree.

`parse` never fails on what the text says: quotes may stay open, operators may dangle. `matches`
decides whether a text is found. `to_match` makes the expression with which the index names rows:
every row that matches is among them, and exactly those unless the query is `loose`. Words are
letters and digits only, so nothing a person types can reach the syntax of an engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from clew.errors import InputError
from clew.store.search.phrase import Clause, Phrase, alternatives, may_stand
from clew.store.search.syntax import FTS5, Syntax
from clew.store.search.words import fold, segment

QUERY_LIMIT = 4096
"""Longest query text, in characters."""
MOST_CLAUSES = 64
MOST_WORDS = 12
"""Of a query, and of one of its phrases, the index is asked for so many at most."""

_ITEM = re.compile(r'(-(?=[^\s-]))?(?:"([^"]*)"?(\*?)|([^\s"]+))')
_QUOTES = str.maketrans("“”„", '"""')


class Query(Struct, frozen=True):
    """A parsed query: every clause of `all`, no phrase of `none`.

    Both empty: everything matches, unless the text was there but held no word (`wordless`).
    `loose`: the index knows which words a row has, not where, so that phrases are for `matches`.
    `hints`: for each clause, parts of its phrases: a folded text without them is no hit.
    """

    all: tuple[Clause, ...] = ()
    none: tuple[Phrase, ...] = ()
    wordless: bool = False
    loose: bool = False
    hints: tuple[tuple[str, ...], ...] = ()


def _items(text: str) -> Iterator[tuple[str, tuple[Phrase, ...]]]:
    """("+" or "-", alternatives) for each chunk, ("OR" or "AND", ...) for the bare words."""
    for match in _ITEM.finditer(text.translate(_QUOTES)):
        minus, quoted, star, plain = match.groups()
        chunk = quoted if plain is None else plain
        found = alternatives(chunk, star == "*" or (plain is not None and plain.endswith("*")))
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
    return _query(clauses, none, bool(text.strip()))


def _query(clauses: list[tuple[Phrase, ...]], none: list[Phrase], asked: bool) -> Query:
    every = tuple(dict.fromkeys(Clause(tuple(dict.fromkeys(any_of))) for any_of in clauses))
    never = tuple(dict.fromkeys(none))
    phrases = [*never, *(phrase for clause in every for phrase in clause.any)]
    return Query(
        all=every,
        none=never,
        wordless=asked and not phrases,
        loose=max(len(every), len(never)) > MOST_CLAUSES
        or any(len(phrase.words) > 1 for phrase in phrases),
        hints=tuple(tuple(phrase.hint for phrase in clause.any) for clause in every),
    )


def _words(phrase: Phrase, syntax: Syntax) -> str:
    """The expression for the rows that have the words of a phrase, or the longest of them."""
    words = [syntax.word(word) for word in phrase.words]
    words[-1] = syntax.word(phrase.words[-1], phrase.prefix)
    chosen = sorted(dict.fromkeys(words), key=len, reverse=True)[:MOST_WORDS]
    return chosen[0] if len(chosen) == 1 else f"({syntax.every(chosen)})"


def to_words(clause: Clause, syntax: Syntax = FTS5) -> str:
    """The expression for the rows that have the words of one clause."""
    return syntax.any(_words(phrase, syntax) for phrase in clause.any)


def to_match(
    query: Query, facets: Iterable[Iterable[str]] = (), syntax: Syntax = FTS5
) -> str | None:
    """The expression for the rows that may be hits; None if nothing is required.

    Of each facet one word is required as well. FTS5 cannot list the rows without a word: a query
    that only excludes is a scan.
    """
    required = [to_words(clause, syntax) for clause in query.all[:MOST_CLAUSES]]
    required += [syntax.any(map(syntax.word, words)) for words in facets]
    if not required:
        return None
    wanted = syntax.every(required)
    # A phrase is not excluded by its words, which a row may have elsewhere.
    never = [phrase for phrase in query.none if len(phrase.words) == 1][:MOST_CLAUSES]
    if not never:
        return wanted
    return f"({wanted}){syntax.without}{syntax.any(_words(p, syntax) for p in never)}"


def may_match(query: Query, folded: str) -> bool:
    """Cheap: False only if no text that folds to this matches. Looks for the hints anywhere."""
    if query.wordless:
        return False
    for hints in query.hints:  # plain loops: this runs for every row behind the mark
        for hint in hints:
            if hint in folded:
                break
        else:
            return False
    return True


def matches(query: Query, text: str) -> bool:
    """Whether the text is found. Cutting it into words is dear, so that comes last."""
    if query.wordless:
        return False
    folded = fold(text)
    certain = True
    for clause in query.all:
        if not any(p.run is not None and p.run in folded for p in clause.any):
            certain = False
            if not any(p.run is None and may_stand(p, folded) for p in clause.any):
                return False
    for phrase in query.none:
        if phrase.run is not None and phrase.run in folded:
            return False
        certain = certain and (phrase.run is not None or not may_stand(phrase, folded))
    return certain or _has_words(query, f" {segment(text)} ")


def _has_words(query: Query, words: str) -> bool:
    return all(
        any(phrase.needle in words for phrase in clause.any) for clause in query.all
    ) and not any(phrase.needle in words for phrase in query.none)
