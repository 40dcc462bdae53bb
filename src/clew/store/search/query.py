"""Runs one query on one snapshot of the log.

The mark is no later than the snapshot, so each message committed before is on one side of the mark
or the other.
"""

from __future__ import annotations

from typing import NamedTuple

from clew.domain.search import SearchPage, SearchQuery
from clew.store.backend import Transaction
from clew.store.search import cursor
from clew.store.search.index import NO_INDEX, View, store_of
from clew.store.search.paging import Paging, Request
from clew.store.search.reading import Reader
from clew.store.search.rows import Rows, scope_of
from clew.store.search.tail import END, floor_of
from clew.store.search.text import parse

_COUNTED = 10_000
"""Rows behind the mark that are counted at most: a few hundred are many."""


class Outcome(NamedTuple):
    """A page; how many rows the index is behind, as far as they are counted; whether it is an index
    of another log."""

    page: SearchPage
    behind: int
    foreign: bool


def understand(profile: str | None, query: SearchQuery) -> Request:
    """Parse and check what was asked. Raises InputError and InvalidCursor."""
    digest = cursor.digest(profile, query)
    return Request(profile, query, parse(query.text), digest, cursor.read(digest, query.cursor))


def run(tx: Transaction, view: View, reader: Reader, request: Request) -> Outcome:
    """The page that was asked for, on the snapshot of `tx`."""
    foreign = not view.mark.fits(store_of(tx))
    if foreign:
        view = NO_INDEX
    _, behind = floor_of(tx, view.mark.message, END, _COUNTED)
    query = request.query
    scope = scope_of(tx, request.profile, query) if query.conversation else None
    if request.parsed.wordless or (query.conversation and scope is None):
        page = SearchPage(hits=(), next=None, behind=0, scanned=0)
        return Outcome(page, behind, foreign)
    exact = request.parsed.loose or view.mark.doubtful
    rows = Rows(tx, reader, request.profile, query, request.parsed, scope, exact)
    search = Paging(tx, view, request, rows, scope)
    ranked = query.order == "relevance" and bool(request.parsed.all)
    return Outcome(search.ranked() if ranked else search.newest(), behind, foreign)
