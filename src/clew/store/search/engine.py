"""Search over a store: queries, catching up, and getting over a file that is unfit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from clew.domain.search import SearchPage, SearchQuery, SearchStatus, State
from clew.errors import ClewError, SearchUnavailable
from clew.store.backend import Backend
from clew.store.search.connection import Damaged
from clew.store.search.file import bytes_on_disk, identity, replace
from clew.store.search.index import Indexer, Progress, read_mark, store_of
from clew.store.search.paging import NO_INDEX, Request, View
from clew.store.search.pool import Pool
from clew.store.search.query import Outcome, run, understand
from clew.store.search.reading import Decode, Reader

BACKGROUND_FROM = 512
"""Rows behind the mark from which on a query has the index caught up in the background."""


class Search:
    """Search over the store behind `backend`; its index is the file at `path`.

    The file is made when it is first needed and may be deleted at any time. `decode` turns stored
    parts into values; it raises Corrupt for damaged ones, and has to know every dictionary.
    Thread safe. In the child of a fork every call raises StoreClosed.
    """

    def __init__(self, path: str, backend: Backend, decode: Decode) -> None:
        self._pool = Pool(path)
        self._backend = backend
        self._reader = Reader(decode)
        self._indexer = Indexer(self._pool, backend, self._reader)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._problem: str | None = None

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
        total = 0
        while not self._stopping.is_set():
            step = self._batch()
            if step is None:
                break
            total += step.indexed
            if progress is not None and step.indexed:
                progress(total, step.behind)
            if step.done or (deadline is not None and time.monotonic() >= deadline):
                break
        return total

    def status(self) -> SearchStatus:
        """State of the file; does not make one."""
        path = self._pool.path
        store = self._backend.read(store_of)
        problem, behind = self._problem, store.message
        rows = unreadable = 0
        state: State
        try:
            if identity(path) is None:
                state = "unusable" if problem else "missing"
            else:
                with self._pool.lend() as connection:
                    mark = read_mark(connection)
                    rows = connection.rows("words_count")[0][0]
                if not mark.fits(store):
                    raise Damaged("the search file belongs to another log")
                behind, unreadable = mark.behind(store), mark.unreadable
                state = "behind" if behind else "ready"
        except SearchUnavailable as error:
            state, problem = "unusable", str(error)
        return SearchStatus(
            state=state, rows=rows, behind=behind, size=bytes_on_disk(path),
            unreadable=unreadable, problem=problem,
        )  # fmt: skip

    def close(self) -> None:
        """Stop catching up, after the batch at hand, and close the file. May be repeated."""
        self._stopping.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self._pool.close()

    def _attempt(self, request: Request) -> Outcome:
        """Run with the index, or without it if the file turns out unfit on the way."""
        try:
            with self._pool.lend() as connection:
                outcome = self._run(View(connection, read_mark(connection)), request)
            if not outcome.foreign:
                self._problem = None
            return outcome
        except Damaged as damaged:
            self._problem = str(damaged)
            self._replace(damaged)
        except SearchUnavailable as error:
            self._problem = str(error)
        return self._run(NO_INDEX, request)

    def _run(self, view: View, request: Request) -> Outcome:
        return self._backend.read(lambda tx: run(tx, view, self._reader, request))

    def _replace(self, damaged: Damaged) -> None:
        try:
            replace(self._pool.path, damaged.identity)
        except SearchUnavailable as error:
            self._problem = str(error)

    def _batch(self) -> Progress | None:
        """One batch; a file that proves unfit is replaced once."""
        try:
            step = self._indexer.batch()
        except Damaged as damaged:
            replace(self._pool.path, damaged.identity)
            step = self._indexer.batch()
        self._problem = None
        return step

    def _catch_up_later(self) -> None:
        with self._lock:
            if self._stopping.is_set() or (self._thread and self._thread.is_alive()):
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
