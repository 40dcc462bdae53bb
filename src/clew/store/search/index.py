"""Fills the index from the log, in batches, each with its mark in one transaction.

Any number of processes may try; the one that gets the write lock of the search file reads the
mark inside its transaction, so no row is indexed twice and none is left out. Rows of the log are
read after that, in one snapshot: what was deleted before it is not in it, what is deleted later
is named by a later row of `change`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from clew.domain.text import clean
from clew.store.backend import Backend, Row, Transaction
from clew.store.search.connection import Connection, Damaged
from clew.store.search.pool import Pool
from clew.store.search.reading import Reader, text_of, tools_of
from clew.store.search.words import WORD_LIMIT, segment

BATCH = 512
"""Rows in one transaction."""
BATCH_BYTES = 4 << 20
"""Stored bytes after which a transaction takes no more rows: some tool outputs are huge."""
_STEP = 64
_CHANGES = 1000

TOOL, CONVERSATION, PROFILE = "\ue001", "\ue002", "\ue003"
"""Marks of facets: words about a row that stand before its text and that no query can spell."""
UNREADABLE = "\ue004"
"""The word of a row that could not be decoded: every query looks at those again."""
_FILLER = "\ue00f"
_SIGNS = re.compile(r"[\x00-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]")


class Store(NamedTuple):
    """What the log says about itself: its identity, the highest ids ever given."""

    store_id: str | None
    stamp: str | None
    message: int
    change: int


class Mark(NamedTuple):
    """How far the log of which store is indexed.

    `profile`: that of all its rows; '': several. `unreadable`: rows that could not be decoded.
    """

    store_id: str | None = None
    stamp: str | None = None
    message: int = 0
    change: int = 0
    profile: str | None = None
    unreadable: int = 0

    def fits(self, store: Store) -> bool:
        """Whether this index is one of this log. A log that was set back has lower ids."""
        if not self.message and not self.change:
            return True
        later = self.message > store.message or self.change > store.change
        return self[:2] == store[:2] and not later

    def behind(self, store: Store) -> int:
        """Messages that are not indexed, at most (deleted ones leave gaps in the ids)."""
        return max(0, store.message - self.message)


class Progress(NamedTuple):
    """What a batch did: rows indexed, and how many rows at most are left."""

    indexed: int
    behind: int
    done: bool


class _Work(NamedTuple):
    store: Store
    rows: list[Row]
    gone: list[tuple[int, int]]
    mark: Mark


def facet(kind: str, value: object) -> str:
    """A word for a fact about a row. Long or odd values may share one: a filter checks again."""
    return kind + _SIGNS.sub(_FILLER, clean(str(value)).casefold())[:WORD_LIMIT]


def store_of(tx: Transaction) -> Store:
    row = tx.row("search_store")
    return Store(None, None, 0, 0) if row is None else Store(*row)


def read_mark(connection: Connection) -> Mark:
    return Mark(*connection.rows("mark_read")[0])


def _rows_after(tx: Transaction, after: int) -> tuple[list[Row], bool]:
    """The rows of a batch, and whether these are all there are."""
    found: list[Row] = []
    size = 0
    while len(found) < BATCH and size < BATCH_BYTES:
        more = tx.rows("search_rows_after", after=after, limit=_STEP)
        found += more
        if len(more) < _STEP:
            return found, True
        size += sum(len(row[3]) for row in more)
        after = more[-1][0]
    return found, False


def _gone(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """The ranges of ids that these changes took away."""
    return [
        (int(first), int(last))
        for _, detail in rows
        for first, last in json.loads(detail or "{}").get("ids", ())
    ]


def _collect(tx: Transaction, mark: Mark) -> _Work:
    """What the next batch has to do, from one snapshot of the log."""
    store = store_of(tx)
    if not mark.fits(store):
        raise Damaged("the search file belongs to another log, or to a later state of this one")
    rows, all_rows = _rows_after(tx, mark.message)
    message = store.message if all_rows else rows[-1][0]
    changes: Sequence[Row] = ()
    change = store.change
    if mark.message and mark.change < store.change:
        changes = tx.rows("search_changes_after", after=mark.change, limit=_CHANGES)
        if len(changes) == _CHANGES:
            change = changes[-1][0]
    profiles = {row[2] for row in rows} | ({mark.profile} - {None})
    profile = "" if len(profiles) > 1 else next(iter(profiles), None)
    reached = Mark(store.store_id, store.stamp, message, change, profile, mark.unreadable)
    return _Work(store, rows, _gone(changes), reached)


class Indexer:
    """Moves the index forward, one batch at a time."""

    def __init__(self, pool: Pool, backend: Backend, reader: Reader) -> None:
        self._pool = pool
        self._backend = backend
        self._reader = reader

    def batch(self) -> Progress | None:
        """Index the next rows; None if somebody else is at it.

        Raises Damaged if the file must be replaced, SearchUnavailable if it cannot be written.
        """
        with self._pool.lend() as connection:
            if not connection.begin():
                return None
            try:
                return self._within(connection)
            finally:
                connection.end()

    def _within(self, connection: Connection) -> Progress:
        mark = read_mark(connection)
        work = self._backend.read(lambda tx: _collect(tx, mark))
        if work.mark != mark:
            for first, last in work.gone:
                connection.rows("words_delete", first=first, last=last)
            rows = [{"id": row[0], "body": self._body(row)} for row in work.rows]
            connection.batch("words_insert", rows)
            lost = sum(row["body"].endswith(UNREADABLE) for row in rows)
            reached = work.mark._replace(unreadable=mark.unreadable + lost)
            connection.rows("mark_set", **reached._asdict())
            connection.commit()
        behind = work.mark.behind(work.store)
        return Progress(
            len(work.rows), behind, done=not behind and work.mark.change == work.store.change
        )

    def _body(self, row: Row) -> str:
        """The facets of a row and its words."""
        _, conversation, profile, data = row
        parts = self._reader.parts(data)
        words = UNREADABLE if parts is None else segment(text_of(parts))
        facets = [facet(CONVERSATION, conversation), facet(PROFILE, profile)]
        facets += [facet(TOOL, name) for name in tools_of(parts or ())]
        return f"{' '.join(facets)} {words}"
