"""Fills a page of hits: rows behind the mark are scanned, the rest come from the index.

The work of one call is bounded: it ends with a cursor where it has to stop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from typing import NamedTuple

from clew.domain.search import Hit, SearchPage, SearchQuery
from clew.store.backend import Transaction
from clew.store.search import cursor
from clew.store.search.facets import CONVERSATION, PROFILE, TOOL, UNREADABLE, facet
from clew.store.search.index import View
from clew.store.search.rank import Ranking, rarity
from clew.store.search.rows import Found, Rows, Scope
from clew.store.search.tail import END, count, floor_of
from clew.store.search.text import Query, to_match, to_words

SCAN_LIMIT = 50_000
"""Rows behind the mark that one call scans."""
CANDIDATE_LIMIT = 50_000
"""Rows from the index that one call looks up."""
LOOSE_LIMIT = 10_000
"""As CANDIDATE_LIMIT, if each of them has to be matched: it takes about five times as long."""
RELEVANCE_MATCHES = 2_000
"""The newest hits among which relevance ranks."""
RELEVANCE_LIMIT = 200
"""The best of these: the pages after the first go through them."""
_FREQUENCY_ROWS = 20_000
"""The newest rows that tell how rare a word is."""
_BEYOND = 256
"""Candidates looked up to see whether anything follows a full page."""
_PLAIN = 256
"""Candidates looked up before the index is asked to leave out other profiles."""
_STEP = 256
"""Rows read at a time, at most: they are in memory with all their text."""


class Request(NamedTuple):
    """A query, understood."""

    profile: str | None
    query: SearchQuery
    parsed: Query
    digest: bytes
    position: cursor.Position


class _Page:
    """A page being filled."""

    def __init__(self, rows: Rows, limit: int) -> None:
        self.rows = rows
        self.limit = limit
        self.hits: list[Hit] = []
        self.last = 0
        """Id of the last hit."""
        self.more = False
        """Whether a hit follows the full page."""

    @property
    def full(self) -> bool:
        return len(self.hits) >= self.limit

    def take(self, found: Iterable[Found]) -> None:
        """Add what is found, until the page is full and one more follows."""
        for one in found:
            if len(self.hits) >= self.limit:
                self.more = True
                return
            self.hits.append(self.rows.hit(one))
            self.last = one.row[0]


class Paging:
    """One query on one snapshot."""

    def __init__(
        self,
        tx: Transaction,
        view: View,
        request: Request,
        rows: Rows,
        scope: Scope | None,
    ) -> None:
        self._tx = tx
        self._view = view
        self._indexed = view.mark.message
        self._request = request
        self._rows = rows
        self._scope = scope
        self._limit = LOOSE_LIMIT if request.parsed.loose else CANDIDATE_LIMIT

    def newest(self) -> SearchPage:
        """By id, descending: rows behind the mark first, then the index."""
        match = self._match()
        indexed = self._indexed if match is not None else 0
        below = self._request.position.below or END
        page = _Page(self._rows, self._request.query.limit)
        floor, tail = floor_of(self._tx, indexed, below, SCAN_LIMIT)
        if tail:
            self._scan(page, floor, below)
        if page.more:
            return self._page(page.hits, self._below(page.last), 0)
        skipped = count(self._tx, indexed, floor + 1) if floor > indexed else 0
        if match is None or not indexed:
            # No index to go on with: the next page goes on with the scan.
            behind = skipped if match is not None and not page.full else 0
            return self._page(page.hits, self._below(floor + 1 if skipped else 0), behind)
        stopped = self._walk(page, match, min(below, indexed + 1))
        if page.full:
            last = page.last if page.more or stopped else 0
            return self._page(page.hits, self._below(last), 0)
        return self._page(page.hits, self._below(stopped), skipped)

    def _scan(self, page: _Page, floor: int, below: int) -> None:
        """Rows with floor < id < below, in steps that grow."""
        size = 64
        while below - 1 > floor and not page.more:
            above, _ = floor_of(self._tx, floor, below, size)
            page.take(self._rows.between(above, below))
            below, size = above + 1, min(_STEP, size * 2)

    def _walk(self, page: _Page, match: str, below: int) -> int:
        """Rows of the index with id < below. Gives the id it had to stop at, 0 at the end."""
        with closing(self._view.newest(match, below)) as ids:
            stopped = self._look_up(page, ids, _PLAIN)
            if not stopped or page.full:
                return stopped
            if self._request.profile is None or self._view.mark.profile != "":
                return self._look_up(page, ids, self._limit)
        # Most candidates may belong to other profiles. Having the index leave them out costs more
        # than it saves where few candidates are wanted, or nearly all are of this profile.
        match = self._match(with_profile=True) or match
        with closing(self._view.newest(match, stopped)) as ids:
            return self._look_up(page, ids, self._limit)

    def _look_up(self, page: _Page, ids: Iterator[int], bound: int) -> int:
        """Look up candidates until the page is full, or about `bound`; result as of `_walk`."""
        size, looked = self._request.query.limit + 1, 0
        while chunk := list(islice(ids, size)):
            page.take(self._rows.of(chunk))
            looked, size = looked + len(chunk), min(_STEP, size * 4)
            if page.full:
                bound = min(bound, looked + _BEYOND)
            if page.more or looked >= bound:
                return chunk[-1]
        return 0

    def ranked(self) -> SearchPage:
        """The best of the newest hits, ranked once; the cursor carries the rest of them."""
        ids = self._request.position.ids
        limit = self._request.query.limit
        skipped = 0
        if not ids:
            ids, skipped = self._rank()
        hits: list[Hit] = []
        while ids and len(hits) < limit:
            chunk, ids = ids[: limit - len(hits)], ids[limit - len(hits) :]
            hits += map(self._rows.hit, self._rows.of(chunk))
        following = cursor.write(self._request.digest, ids=ids) if ids else None
        return self._page(hits, following, skipped)

    def _rank(self) -> tuple[tuple[int, ...], int]:
        """Ids of the best hits; and how many rows were not looked at."""
        ranking = Ranking(self._request.parsed, RELEVANCE_MATCHES)
        below = END
        floor, tail = floor_of(self._tx, self._indexed, below, SCAN_LIMIT)
        while tail and below - 1 > floor and not ranking.full:
            above, _ = floor_of(self._tx, floor, below, _STEP)
            ranking.add(self._rows.between(above, below))
            below = above + 1
        match = self._match(with_profile=self._view.mark.profile == "")
        if match is not None and self._indexed:
            with closing(self._view.newest(match, self._indexed + 1)) as ids:
                candidates = islice(ids, self._limit)
                while not ranking.full and (chunk := list(islice(candidates, _STEP))):
                    ranking.add(self._rows.of(chunk))
        skipped = count(self._tx, self._indexed, floor + 1) if floor > self._indexed else 0
        return ranking.best(RELEVANCE_LIMIT, self._weights()), skipped

    def _weights(self) -> list[float]:
        """How much each clause counts: rare words more, if there are several."""
        clauses = self._request.parsed.all
        if len(clauses) == 1:
            return [1.0]
        words = [to_words(clause, self._view.syntax) for clause in clauses]
        having, rows = self._view.frequencies(words, _FREQUENCY_ROWS)
        return [rarity(number, rows) for number in having]

    def _match(self, with_profile: bool = False) -> str | None:
        """The expression for the index; None if it cannot answer.

        Facets make it name few rows that a filter throws away.
        """
        query = self._request.query
        facets: list[list[str]] = []
        if query.tool is not None:
            facets.append([facet(TOOL, query.tool)])
        if self._scope is not None:
            facets.append([facet(CONVERSATION, no) for no in self._scope.upto])
        if with_profile and self._request.profile is not None:
            facets.append([facet(PROFILE, self._request.profile)])
        syntax = self._view.syntax
        match = to_match(self._request.parsed, facets, syntax)
        if match is not None and self._view.mark.doubtful:
            return syntax.any((f"({match})", syntax.word(UNREADABLE)))
        return match

    def _below(self, id: int) -> str | None:
        return cursor.write(self._request.digest, below=id) if id > 1 else None

    def _page(self, hits: list[Hit], following: str | None, behind: int) -> SearchPage:
        return SearchPage(
            hits=tuple(hits), next=following, behind=behind, scanned=self._rows.seen,
            unreadable=self._rows.unreadable,
        )  # fmt: skip
