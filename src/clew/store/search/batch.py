"""What the next batch of an index has to do, read from the log.

Rows are read in the order of their ids up to where the log is settled, so the mark of an index
passes no row that is yet to be committed. What was deleted before the rows are read is not among
them; what is deleted later is named by a later row of `change`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from clew.store.backend import Row, Transaction
from clew.store.search.facets import CONVERSATION, PROFILE, TOOL, UNREADABLE, facet
from clew.store.search.index import Damaged, Mark, Progress, Store, store_of
from clew.store.search.reading import Reader, text_of, tools_of
from clew.store.search.words import segment

BATCH = 512
"""Rows in one transaction."""
BATCH_BYTES = 4 << 20
"""Stored bytes after which a transaction takes no more rows: some tool outputs are huge."""
_STEP = 64
_CHANGES = 1000


class Work(NamedTuple):
    """Rows to index, ranges of ids to forget, and the mark after that."""

    store: Store
    rows: list[Row]
    gone: list[tuple[int, int]]
    mark: Mark

    @property
    def progress(self) -> Progress:
        done = self.mark[2:4] == self.store[2:4]
        return Progress(len(self.rows), self.mark.message, done)


def collect(tx: Transaction, mark: Mark) -> Work:
    """What follows the mark.

    On one snapshot, or in a transaction whose statements each see what is committed: how far the
    log is settled is asked first, and below that only deletions can happen.
    """
    store = store_of(tx)
    if not mark.fits(store):
        raise Damaged("the search index belongs to another log, or to a later state of this one")
    rows, all_rows = _rows_after(tx, mark.message, store.message)
    message = store.message if all_rows else rows[-1][0]
    changes: Sequence[Row] = ()
    change = store.change
    if mark.message and mark.change < store.change:
        changes = tx.rows(
            "search_changes_after", after=mark.change, upto=store.change, limit=_CHANGES
        )
        if len(changes) == _CHANGES:
            change = changes[-1][0]
    profiles = {row[2] for row in rows} | ({mark.profile} - {None})
    profile = "" if len(profiles) > 1 else next(iter(profiles), None)
    reached = mark._replace(
        store_id=store.store_id, stamp=store.stamp, message=message, change=change, profile=profile
    )
    return Work(store, rows, _gone(changes), reached)


class Body(NamedTuple):
    """What a row is indexed by. Without a text it is named for every query."""

    facets: list[str]
    text: str | None
    """Its words between spaces."""

    def __str__(self) -> str:
        return f"{' '.join(self.facets)} {UNREADABLE if self.text is None else self.text}"


def body(reader: Reader, row: Row) -> Body:
    """The facets of a row and its words."""
    _, conversation, profile, data = row
    parts = reader.parts(data)
    facets = [facet(CONVERSATION, conversation), facet(PROFILE, profile)]
    facets += [facet(TOOL, name) for name in tools_of(parts or ())]
    return Body(facets, None if parts is None else segment(text_of(parts)))


def _rows_after(tx: Transaction, after: int, upto: int) -> tuple[list[Row], bool]:
    """The rows of a batch, and whether these are all there are."""
    found: list[Row] = []
    size = 0
    while len(found) < BATCH and size < BATCH_BYTES:
        more = tx.rows("search_rows_after", after=after, upto=upto, limit=_STEP)
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
