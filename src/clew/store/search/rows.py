"""Decides which rows of the log are hits: filters, scope, cuts; and makes hits of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from clew.domain.messages import ROLE_CODES, ROLES
from clew.domain.search import Hit, SearchQuery
from clew.store.backend import Row, Transaction, Value
from clew.store.search.index import Decode, decoded, text_of, tools_of
from clew.store.search.snippet import highlight
from clew.store.search.text import Query, matches, may_match


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
    """Reads rows of one snapshot of the log and keeps those that a query may show."""

    def __init__(
        self,
        tx: Transaction,
        decode: Decode,
        profile: str | None,
        query: SearchQuery,
        parsed: Query,
        scope: Scope | None,
    ) -> None:
        self._tx = tx
        self._decode = decode
        self._parsed = parsed
        self._tool = query.tool
        self._scope = scope
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

    def between(self, above: int, below: int) -> Iterator[Found | None]:
        """Newest first, the rows above < id < below: each one as found, or None for no hit.

        The text is matched here: these are rows the index does not know.
        """
        for row in self._tx.rows("search_rows_between", above=above, below=below, **self._filters):
            text = self._text(row)
            yield Found(row, text) if text is not None and matches(self._parsed, text) else None

    def of(self, ids: Sequence[int]) -> Iterator[Found | None]:
        """In the order given, the rows that the index named: each one as found, or None.

        The text is looked at once more, cheaply: a row erased since is no hit, nor is what a
        damaged index makes up.
        """
        wanted = msgspec.json.encode(ids).decode()
        rows = {row[0]: row for row in self._tx.rows("search_rows", ids=wanted, **self._filters)}
        for number in ids:
            row = rows.get(number)
            text = None if row is None else self._text(row)
            if row is None or text is None or not may_match(self._parsed, text):
                yield None
            else:
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

    def _text(self, row: Row) -> str | None:
        """The text of a row, None if the scope or the tool excludes it."""
        if self._scope is not None and not self._scope.shows(row[1], row[4]):
            return None
        parts = decoded(self._decode, row[9])
        if self._tool is not None and self._tool not in tools_of(parts):
            return None
        return text_of(parts)
