"""Search over a store: queries, catching up, and getting over an index that is unfit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from itertools import islice

from clew.domain.search import SearchPage, SearchQuery, SearchStatus, State
from clew.errors import ClewError, SearchUnavailable, StoreError
from clew.store.backend import Backend, Transaction
from clew.store.search.backoff import Backoff
from clew.store.search.batch import body
from clew.store.search.index import NO_INDEX, Damaged, Index, Progress, View, store_of
from clew.store.search.paging import Request
from clew.store.search.query import Outcome, run, understand
from clew.store.search.reading import Reader
from clew.store.search.tail import count

BACKGROUND_FROM = 512
"""Rows behind the mark from which on a query has the index caught up in the background."""
_LOOKED_AT = 10_000
"""Of the rows with a word the newest so many are looked through for erased ones."""


class Engine:
    """Search over the store behind `backend` with its `index`; `reader` reads the log's rows.

    Thread safe. In the child of a fork every call raises StoreClosed.
    """

    def __init__(self, index: Index, backend: Backend, reader: Reader) -> None:
        self._index = index
        self._backend = backend
        self._reader = reader
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._problem: str | None = None
        self._retry = Backoff()

    def query(self, profile: str | None, query: SearchQuery) -> SearchPage:
        """A page of hits of one profile; of all profiles for None, which is an administrator's.

        Sees every message committed before, or says in `behind` how many it did not look at. An
        index that cannot be used makes it slower, never wrong. Raises InputError, InvalidCursor,
        and what the backend raises.
        """
        request = understand(profile, query)
        outcome = self._attempt(request)
        if outcome.behind > BACKGROUND_FROM or outcome.foreign:
            self._catch_up_later()
        return outcome.page

    def catch_up(
        self,
        progress: Callable[[int, int], None] | None = None,
        budget_seconds: float | None = None,
    ) -> int:
        """Index what is not indexed yet; gives the number of rows.

        Returns early when the budget is spent, the search is closed or another process is at it.
        `progress` is called after each batch with the rows indexed so far and those left; what it
        raises ends the call between two batches. An unfit file is replaced and filled anew.
        Raises SearchUnavailable if the file cannot be written.
        """
        deadline = None if budget_seconds is None else time.monotonic() + budget_seconds
        total, left = 0, -1
        while not self._stopping.is_set():
            step = self._batch()
            if step is None:
                break
            total += step.indexed
            if progress is not None and step.indexed:
                left = self._after(step.reached) if left < 0 else max(0, left - step.indexed)
                progress(total, left)
            if step.done or (deadline is not None and time.monotonic() >= deadline):
                break
        return total

    def give_back(self) -> int:
        """Give back what is free in the file, in small steps; gives the bytes. 0 when it cannot be
        used: that is for the next search to find out."""
        total, more = 0, True
        try:
            while more and not self._stopping.is_set() and not self._index.missing():
                freed, more = self._index.shrink()
                total += freed
        except SearchUnavailable as error:
            self._problem = str(error)
        return total

    def discard(self) -> None:
        """Throw the index away; it is filled anew by the next calls. Raises SearchUnavailable."""
        self._index.renew(None)

    def scrub(self) -> None:
        """Catch up, so that what was erased is forgotten, and write the index anew without it. One
        that is in use too long, or unfit, is thrown away."""
        try:
            if self._index.missing():
                return
            self.catch_up()
            if self._index.scrub():
                return
        except SearchUnavailable:
            pass
        self.discard()

    def traces(self, ids: Sequence[int], words: Sequence[str]) -> list[str]:
        """Which of these rows the index names for one of the words."""
        if not ids or self._index.missing():
            return []
        wanted = set(ids)

        def look(tx: Transaction, view: View) -> list[str]:
            found: set[int] = set()
            for word in words:
                match = view.syntax.word(word)
                below = ids[-1] + 1
                for id in islice(view.newest(match, below), _LOOKED_AT):
                    if id in wanted and id not in found and self._still_says(tx, id, word):
                        found.add(id)
            return [f"the index names row {id}" for id in sorted(found)]

        return self._index.look(look)

    def _still_says(self, tx: Transaction, id: int, word: str) -> bool:
        """Whether the index says of a row what the row does not say any more."""
        rows = tx.rows("search_rows_after", after=id - 1, upto=id, limit=1)
        return not rows or word not in str(body(self._reader, rows[0])).split()

    def status(self) -> SearchStatus:
        """State of the index; does not make one."""
        problem, behind = self._problem, None
        rows = unreadable = 0
        state: State
        try:
            if self._index.missing():
                state = "unusable" if problem else "missing"
            else:
                fits, behind, rows, unreadable = self._index.look(_examine)
                state = "behind" if behind else "ready"
                if not fits:
                    raise Damaged("the search index belongs to another log")
        except SearchUnavailable as error:
            state, problem = "unusable", str(error)
        return SearchStatus(
            state=state, rows=rows, behind=self._after(0) if behind is None else behind,
            size=self._index.size(), unreadable=unreadable, problem=problem,
        )  # fmt: skip

    def close(self) -> None:
        """Stop catching up, after the batch at hand, and close the index. May be repeated."""
        self._stopping.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self._index.close()

    def _attempt(self, request: Request) -> Outcome:
        """Run with the index, or without it if it turns out unfit on the way."""

        def reader(tx: Transaction, view: View) -> Outcome:
            return run(tx, view, self._reader, request)

        try:
            outcome = self._index.look(reader)
            if not outcome.foreign:
                self._problem = None
            return outcome
        except Damaged as damaged:
            self._problem = str(damaged)
            self._renew(damaged)
        except SearchUnavailable as error:
            self._problem = str(error)
        return self._backend.read(lambda tx: reader(tx, NO_INDEX))

    def _renew(self, damaged: Damaged) -> None:
        try:
            self._index.renew(damaged)
        except StoreError as error:
            self._problem = str(error)

    def _batch(self) -> Progress | None:
        """One batch; an index that proves unfit is replaced once."""
        try:
            step = self._index.batch()
        except Damaged as damaged:
            self._index.renew(damaged)
            step = self._index.batch()
        self._problem = None
        self._retry.worked()
        return step

    def _after(self, mark: int) -> int:
        return self._backend.read(lambda tx: count(tx, mark))

    def _catch_up_later(self) -> None:
        with self._lock:
            busy = self._thread is not None and self._thread.is_alive()
            if self._stopping.is_set() or busy or not self._retry.due:
                return
            self._thread = threading.Thread(
                target=self._background, name="clew-search", daemon=True
            )
            self._thread.start()

    def _background(self) -> None:
        try:
            self.catch_up()
        except ClewError as error:
            self._problem = str(error)
            self._retry.failed()


def _examine(tx: Transaction, view: View) -> tuple[bool, int | None, int, int]:
    """Whether the index is one of this log; rows it is behind, rows it has, unreadable ones."""
    mark = view.mark
    if not mark.fits(store_of(tx)):
        return False, None, 0, 0
    return True, count(tx, mark.message), view.rows(), mark.unreadable
