"""Decides which rows of the log are hits: filters, scope, cuts; and makes hits of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from clew.domain.messages import ROLE_CODES, ROLES
from clew.domain.search import Hit, SearchQuery
from clew.store.backend import Row, Transaction, Value
from clew.store.search.reading import Reader, text_of, tools_of
from clew.store.search.snippet import highlight
from clew.store.search.text import Query, matches, may_match
from clew.store.search.words import fold


class Scope(NamedTuple):
    """The one conversation that is searched, as a person sees it.

    `upto`: which conversations hold its rows, up to which seq. `cuts`: ranges it hides.
    """

    id: str
    title: str | None
    upto: dict[int, int]
    cuts: list[tuple[int, int]]

    def shows(self, no: int, seq: int) -> bool:
        return seq <= self.upto.get(no, 0) and not any(a <= seq <= b for a, b in self.cuts)


class Found(NamedTuple):
    """A row that is a hit, and its text."""

    row: Row
    text: str


def scope_of(tx: Transaction, profile: str | None, query: SearchQuery) -> Scope | None:
    """The scope of a query for one conversation; None if there is no such conversation."""
    name = query.conversation or ""
    line = tx.rows("search_line", conversation=name, profile=profile)
    if not line:
        return None
    cuts: list[Row] = [] if query.hidden else tx.rows("search_cuts", no=line[0][0])
    upto = {row[0]: row[2] for row in line}
    return Scope(name, line[0][1], upto, [(row[0], row[1]) for row in cuts])


class Rows:
    """Reads rows of one snapshot of the log and keeps those that a query may show.

    `exact`: that the index names a row is not enough, its text has to match.
    """

    def __init__(
        self,
        tx: Transaction,
        reader: Reader,
        profile: str | None,
        query: SearchQuery,
        parsed: Query,
        scope: Scope | None,
        exact: bool,
    ) -> None:
        self._tx = tx
        self._reader = reader
        self._parsed = parsed
        self._tool = query.tool
        self._scope = scope
        self._exact = exact
        self.seen = self.unreadable = 0
        """How many rows were considered, and how many of them could not be read."""
        self._filters: dict[str, Value] = {
            "profile": profile,
            "line": f",{','.join(map(str, scope.upto))}," if scope else None,
            "role": ROLE_CODES[query.role] if query.role else None,
            "source": query.source,
            "model": query.model,
            "project": query.project,
            "git_branch": query.git_branch,
            "since": query.since,
            "until": query.until,
            "named": int(scope is not None),
            "archived": int(query.archived),
            "hidden": int(query.hidden),
        }

    def between(self, above: int, below: int) -> Iterator[Found]:
        """The hits with above < id < below, newest first.

        The text is matched here: these are rows the index does not know.
        """
        parsed, folded_of = self._parsed, self._reader.folded
        for row in self._tx.rows("search_rows_between", above=above, below=below, **self._filters):
            self.seen += 1
            folded = folded_of(row[9])
            if folded is not None and not may_match(parsed, folded):
                continue
            text = self._text(row)
            if text is not None and matches(parsed, text):
                yield Found(row, text)

    def of(self, ids: Sequence[int]) -> Iterator[Found]:
        """The hits among these rows, which the index named, in the order given.

        The text is looked at once more, cheaply: a row erased since is no hit, nor is what a
        damaged index makes up.
        """
        wanted = msgspec.json.encode(ids).decode()
        rows = {row[0]: row for row in self._tx.rows("search_rows", ids=wanted, **self._filters)}
        for number in ids:
            self.seen += 1
            row = rows.get(number)
            text = None if row is None else self._text(row)
            if row is not None and text is not None and self._finds(text):
                yield Found(row, text)

    def hit(self, found: Found) -> Hit:
        """What is shown of a found row."""
        _, _, conversation, title, seq, uid, role, at, source, _ = found.row
        return Hit(
            conversation=self._scope.id if self._scope else conversation,
            title=self._scope.title if self._scope else title,
            seq=seq,
            uid=uid.hex(),
            role=ROLES[role],
            created_at=at,
            source=source,
            snippet=highlight(self._parsed, found.text),
        )

    def _finds(self, text: str) -> bool:
        return matches(self._parsed, text) if self._exact else may_match(self._parsed, fold(text))

    def _text(self, row: Row) -> str | None:
        """The text of a row; None if it cannot be read, or the scope or tool excludes it."""
        if self._scope is not None and not self._scope.shows(row[1], row[4]):
            return None
        parts = self._reader.parts(row[9])
        if parts is None:
            self.unreadable += 1
            return None
        if self._tool is not None and self._tool not in tools_of(parts):
            return None
        return text_of(parts)
