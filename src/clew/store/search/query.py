"""Runs one query: rows behind the mark are scanned, the rest come from the index.

Everything about the log is read in one snapshot that is taken after the mark was read, so each
message committed before is on one side of the mark or the other. The work of one call is bounded:
it ends with a cursor where it has to stop.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from itertools import islice
from typing import NamedTuple

from clew.domain.search import Hit, SearchPage, SearchQuery
from clew.store.backend import Transaction
from clew.store.search import cursor
from clew.store.search.connection import Connection
from clew.store.search.index import (
    CONVERSATION,
    PROFILE,
    TOOL,
    Decode,
    Mark,
    Store,
    facet,
    store_of,
)
from clew.store.search.rows import Found, Rows, Scope, scope_of
from clew.store.search.text import Query, parse, to_match

SCAN_LIMIT = 50_000
"""Rows behind the mark that one call scans."""
CANDIDATE_LIMIT = 50_000
"""Rows from the index that one call looks up."""
RELEVANCE_WINDOW = 20_000
"""The newest rows among which relevance ranks: its cost grows with matches, not with hits."""
RELEVANCE_LIMIT = 200
"""Hits that are ranked; the pages after the first go through these."""
_BEYOND = 256
"""Candidates looked up to see whether anything follows a full page."""
_STEP = 256
"""Rows read at a time, at most: they are in memory with all their text."""


class View(NamedTuple):
    """The index as one query sees it. Without a connection nothing is indexed."""

    connection: Connection | None
    mark: Mark

    def ids(self, statement: str, match: str, **params: int) -> Generator[int]:
        """Ids of rows that match."""
        if self.connection is not None:
            yield from self.connection.ids(statement, match=match, **params)


NO_INDEX = View(None, Mark(None, None, 0, 0))


class Request(NamedTuple):
    """A query, understood."""

    profile: str | None
    query: SearchQuery
    parsed: Query
    digest: bytes
    position: cursor.Position


class Outcome(NamedTuple):
    """A page; how many rows the index is behind; whether it is an index of another log."""

    page: SearchPage
    behind: int
    foreign: bool


def understand(profile: str | None, query: SearchQuery) -> Request:
    """Parse and check what was asked. Raises InputError and InvalidCursor."""
    digest = cursor.digest(profile, query)
    return Request(profile, query, parse(query.text), digest, cursor.read(digest, query.cursor))


class _Page:
    """A page being filled."""

    def __init__(self, rows: Rows, limit: int, budget: int) -> None:
        self.rows = rows
        self.limit = limit
        self.budget = budget
        self.hits: list[Hit] = []
        self.scanned = 0
        self.last = 0
        """Id of the last hit."""
        self.more = False
        """Whether a hit follows the full page, or may."""

    @property
    def full(self) -> bool:
        return len(self.hits) >= self.limit

    @property
    def done(self) -> bool:
        return self.more or self.budget <= 0

    def take(self, found: Iterable[Found | None]) -> None:
        """Add what is found until the page is full and something follows it."""
        for one in found:
            self.scanned += 1
            self.budget -= 1
            if one is not None and self.full:
                self.more = True
            elif one is not None:
                self.hits.append(self.rows.hit(one))
                self.last = one.row[0]
                if self.full:
                    self.budget = min(self.budget, _BEYOND)
            if self.done:
                break


def run(tx: Transaction, view: View, decode: Decode, request: Request) -> Outcome:
    """The page that was asked for, on the snapshot of `tx`."""
    store = store_of(tx)
    foreign = not view.mark.fits(store)
    if foreign:
        view = NO_INDEX
    behind = view.mark.behind(store)
    query = request.query
    scope = scope_of(tx, request.profile, query) if query.conversation else None
    if request.parsed.wordless or (query.conversation and scope is None):
        page = SearchPage(hits=(), next=None, behind=0, scanned=0)
        return Outcome(page, behind, foreign)
    rows = Rows(tx, decode, request.profile, query, request.parsed, scope)
    search = _Search(view, store, request, rows, scope)
    ranked = query.order == "relevance" and bool(request.parsed.all)
    return Outcome(search.ranked() if ranked else search.newest(), behind, foreign)


class _Search:
    """One query on one snapshot."""

    def __init__(
        self,
        view: View,
        store: Store,
        request: Request,
        rows: Rows,
        scope: Scope | None,
    ) -> None:
        self._view = view
        self._indexed = view.mark.message
        self._last = store.message
        self._request = request
        self._rows = rows
        self._scope = scope
        self._worded = bool(request.parsed.all)

    def newest(self) -> SearchPage:
        """By id, descending: rows behind the mark first, then the index."""
        match = self._match(with_profile=True)
        indexed = self._indexed if match is not None else 0
        below = self._request.position.below or self._last + 1
        page = _Page(self._rows, self._request.query.limit, SCAN_LIMIT)
        floor = max(indexed, below - 1 - SCAN_LIMIT)
        self._scan(page, floor, below)
        if page.full and page.done:
            return self._page(page, page.last)
        skipped = max(0, floor - indexed)
        if match is None or not indexed:
            # No index to go on with: the next page goes on with the scan.
            behind = skipped if match is not None and not page.full else 0
            return self._page(page, floor + 1 if skipped else 0, behind)
        page.budget = _BEYOND if page.full else CANDIDATE_LIMIT
        looked_at = self._walk(page, match, min(below, indexed + 1))
        follows = page.last if page.full else looked_at
        return self._page(page, follows if page.done else 0, 0 if page.full else skipped)

    def _scan(self, page: _Page, floor: int, below: int) -> None:
        """Rows with floor < id < below, in steps that grow."""
        size = 64
        while below - 1 > floor and not page.done:
            above = max(floor, below - 1 - size)
            page.take(self._rows.between(above, below))
            below, size = above + 1, min(_STEP, size * 2)

    def _walk(self, page: _Page, match: str, below: int) -> int:
        """Candidates of the index below an id; gives the id of the last one looked up."""
        size = self._request.query.limit + 1
        ids = self._view.ids("words_newest", match=match, below=below, above=0)
        with closing(ids):
            while not page.done and (chunk := list(islice(ids, size))):
                before = page.scanned
                page.take(self._rows.of(chunk))
                below = chunk[page.scanned - before - 1]
                size = min(_STEP, size * 4)
        return below

    def ranked(self) -> SearchPage:
        """The best of the newest rows. Rows behind the mark have no rank and come first."""
        ids = self._request.position.ids
        limit = self._request.query.limit
        scanned = skipped = 0
        if not ids:
            ids, scanned, skipped = self._rank()
        hits: list[Hit] = []
        while ids and len(hits) < limit:
            chunk, ids = ids[: limit - len(hits)], ids[limit - len(hits) :]
            hits += [self._rows.hit(one) for one in self._rows.of(chunk) if one is not None]
        following = cursor.write(self._request.digest, ids=ids) if ids else None
        return SearchPage(hits=tuple(hits), next=following, behind=skipped, scanned=scanned)

    def _rank(self) -> tuple[tuple[int, ...], int, int]:
        """Ids of the hits, best first; rows considered; rows not looked at."""
        found: list[int] = []
        scanned = 0
        floor = max(self._indexed, self._last - SCAN_LIMIT)
        below = self._last + 1
        while below - 1 > floor and len(found) < RELEVANCE_LIMIT:
            above = max(floor, below - 1 - _STEP)
            for one in self._rows.between(above, below):
                scanned += 1
                if one is not None:
                    found.append(one.row[0])
            below = above + 1
        match = self._match(with_profile=False)
        if match is not None and self._indexed:
            above = 0 if self._scope else self._indexed - RELEVANCE_WINDOW
            ids = self._view.ids("words_ranked", match=match, newest=self._indexed, above=above)
            with closing(ids):
                while len(found) < RELEVANCE_LIMIT and (chunk := list(islice(ids, _STEP))):
                    scanned += len(chunk)
                    found += [one.row[0] for one in self._rows.of(chunk) if one is not None]
        return tuple(found[:RELEVANCE_LIMIT]), scanned, max(0, floor - self._indexed)

    def _match(self, with_profile: bool) -> str | None:
        """The expression for the index; None if it cannot answer.

        Facets make it name few rows that a filter throws away. Ranking counts all rows of every
        word, so there the one that nearly all rows have is left out.
        """
        query = self._request.query
        facets: list[list[str]] = []
        if query.tool is not None:
            facets.append([facet(TOOL, query.tool)])
        if self._scope is not None:
            facets.append([facet(CONVERSATION, no) for no in self._scope.upto])
        if with_profile and self._request.profile is not None and (facets or self._worded):
            facets.append([facet(PROFILE, self._request.profile)])
        return to_match(self._request.parsed, facets)

    def _page(self, page: _Page, below: int, behind: int = 0) -> SearchPage:
        following = cursor.write(self._request.digest, below=below) if below > 1 else None
        return SearchPage(
            hits=tuple(page.hits), next=following, behind=behind, scanned=page.scanned
        )
