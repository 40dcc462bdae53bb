"""The search of one handle; the index and what fills it are shared by all handles of a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clew.domain.search import SearchPage, SearchQuery, SearchStatus
from clew.errors import StoreClosed
from clew.store.lease import CLOSED
from clew.store.search.engine import Engine


class Search:
    """`Engine`, until this handle is closed; the last handle of a store closes the engine itself,
    which ends what is under way after the batch at hand."""

    def __init__(self, engine: Engine) -> None:
        self._engine: Engine | None = engine

    def query(self, profile: str | None, query: SearchQuery) -> SearchPage:
        """A page of hits of one profile; of all profiles for None, which is an administrator's.

        Sees every message committed before, or says in `behind` how many it did not look at. An
        index that cannot be used makes it slower, never wrong. Raises InputError, InvalidCursor,
        and what the backend raises.
        """
        return self._used().query(profile, query)

    def catch_up(
        self,
        progress: Callable[[int, int], None] | None = None,
        budget_seconds: float | None = None,
    ) -> int:
        """Index what is not indexed yet; gives the number of rows.

        Returns early when the budget is spent, the store is closed or another process is at it.
        `progress` is called after each batch with the rows indexed so far and those left; what it
        raises ends the call between two batches. An unfit file is replaced and filled anew.
        Raises SearchUnavailable if the file cannot be written.
        """
        return self._used().catch_up(progress, budget_seconds)

    def give_back(self) -> int:
        """Give back what is free in the search file, in small steps; gives the bytes."""
        return self._used().give_back()

    def discard(self) -> None:
        """Throw the index away; it is filled anew by the next calls. Raises SearchUnavailable."""
        self._used().discard()

    def scrub(self) -> None:
        """Forget for good what was erased: catch up, and write the index anew. One that cannot is
        thrown away, and filled anew by the next calls."""
        self._used().scrub()

    def traces(self, ids: Sequence[int], words: Sequence[str]) -> list[str]:
        """Which of these rows of the log the index still names for one of the words."""
        return self._used().traces(ids, words)

    def status(self) -> SearchStatus:
        """State of the index; does not make one."""
        return self._used().status()

    def close(self) -> None:
        """Refuse from now on. May be repeated."""
        self._engine = None

    def _used(self) -> Engine:
        engine = self._engine
        if engine is None:
            raise StoreClosed(CLOSED)
        return engine
