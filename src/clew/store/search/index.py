"""What search asks of an index; what a log and an index say about themselves.

Where the index is kept (file_index.py, table_index.py) decides nothing about what is found: words,
expressions, filters and ranking stand above, the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import NamedTuple, Protocol, TypeVar

from clew.errors import SearchUnavailable
from clew.store.backend import Transaction
from clew.store.search.syntax import FTS5, Syntax

T = TypeVar("T")


class Damaged(SearchUnavailable):
    """The index must be replaced: unreadable, of another format, or of another log."""

    identity: tuple[int, int] | None = None
    """The file that was judged."""


class Store(NamedTuple):
    """What the log says about itself: its identity, and the ids up to which it is settled.

    Whatever will ever be committed with such an id has been.
    """

    store_id: str | None
    stamp: str | None
    message: int
    change: int


class Mark(NamedTuple):
    """How far the log of which store is indexed.

    `profile`: that of all its rows; '': several. `unreadable`: rows that could not be decoded.
    `oversized`: rows with more words than the index can hold.
    """

    store_id: str | None = None
    stamp: str | None = None
    message: int = 0
    change: int = 0
    profile: str | None = None
    unreadable: int = 0
    oversized: int = 0

    def fits(self, store: Store) -> bool:
        """Whether this index is one of this log. A log that was set back has lower ids."""
        if not self.message and not self.change:
            return True
        later = self.message > store.message or self.change > store.change
        return self[:2] == store[:2] and not later

    def behind(self, store: Store) -> int:
        """Messages that are not indexed, at most (deleted ones leave gaps in the ids)."""
        return max(0, store.message - self.message)

    @property
    def doubtful(self) -> bool:
        """Whether there are rows that the index names for every query."""
        return self.unreadable > 0 or self.oversized > 0


class Progress(NamedTuple):
    """What a batch did: rows indexed, the mark it reached, whether that is all."""

    indexed: int
    reached: int
    done: bool


class View(Protocol):
    """The index as one query sees it."""

    @property
    def mark(self) -> Mark: ...

    @property
    def syntax(self) -> Syntax:
        """The language of its expressions."""
        ...

    def newest(self, match: str, below: int) -> Generator[int]:
        """Ids below this one of the rows that match, newest first, found as they are taken."""
        ...

    def frequencies(self, words: Iterable[str], most: int) -> tuple[list[int], int]:
        """How many of the newest rows match each expression; of how many rows, at most `most`."""
        ...

    def rows(self) -> int:
        """How many rows are indexed."""
        ...


class Index(Protocol):
    """Where words are kept. All raise Damaged if it must be replaced, and SearchUnavailable if it
    cannot be used; what the log raises passes through."""

    def look(self, reader: Callable[[Transaction, View], T]) -> T:
        """Run a reader on one snapshot of the log, with a view whose mark is no later."""
        ...

    def batch(self) -> Progress | None:
        """Index the next rows; None if somebody else is at it."""
        ...

    def renew(self, unfit: Damaged | None) -> None:
        """Throw away what was found unfit, or whatever there is; batches fill it anew."""
        ...

    def scrub(self) -> bool:
        """Write it anew, without what was deleted from it; False if it is in use too long."""
        ...

    def shrink(self) -> tuple[int, bool]:
        """A step of giving free space back: bytes, and whether there is more."""
        ...

    def missing(self) -> bool:
        """Whether the next batch has to make it."""
        ...

    def size(self) -> int:
        """Bytes on disk."""
        ...

    def close(self) -> None: ...


class _Nothing:
    """The view of an index that knows no row."""

    mark = Mark()
    syntax = FTS5

    def newest(self, match: str, below: int) -> Generator[int]:
        yield from ()

    def frequencies(self, words: Iterable[str], most: int) -> tuple[list[int], int]:
        return [0 for _ in words], 0

    def rows(self) -> int:
        return 0


NO_INDEX: View = _Nothing()


def store_of(tx: Transaction) -> Store:
    row = tx.row("search_store")
    return Store(None, None, 0, 0) if row is None else Store(*row)
