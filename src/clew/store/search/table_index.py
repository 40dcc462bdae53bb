"""The index in tables of the store's own database: a row of distinct words for each message.

Which row has a word the server finds in two ways: it looks at the newest rows one by one (some
0.3 us each), or has the inverted index list every row with the word (some 0.7 us each, and sorts
them). A page of a common word ends within the first, a rare word takes little more than a look at
the second; so neither waits for what the other is made for.

One at a time fills it, whatever the host: who has the row of the mark locked. The batch and its
mark are one transaction, which touches nothing that an append waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

from clew.errors import (
    Busy,
    Corrupt,
    SchemaTooNew,
    SearchUnavailable,
    StoreClosed,
    StoreError,
    StoreReplaced,
    Unavailable,
)
from clew.store.backend import Backend, Row, Transaction, Unit, Value
from clew.store.search.batch import Body, Work, body, collect
from clew.store.search.facets import UNREADABLE
from clew.store.search.index import Damaged, Mark, Progress, View, store_of
from clew.store.search.reading import Reader
from clew.store.search.syntax import TSQUERY
from clew.store.search.words import GAP

T = TypeVar("T")

FORMAT = 1
"""Changes whenever words are cut in another way: an older index is filled anew."""
WORDS_BYTES = 1_000_000
"""A tsvector holds a little more (1 MB)."""

_WALK, _LONGEST_WALK, _WALK_GROWTH = 1_024, 16_384, 4
"""Rows looked at one by one: at first, and at a time as long as the word is common."""
_COMMON = 128
"""One row of so many: a word that common is looked for in further rows one by one."""
_FOUND, _FOUND_GROWTH = 1_024, 16
"""Ids taken from the inverted index at a time: at first, and how that grows."""


class TableView:
    """The tables as one snapshot shows them."""

    syntax = TSQUERY

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.mark = _mark(tx.row("search_mark_read"))

    def newest(self, match: str, below: int) -> Generator[int]:
        size = _WALK
        common = True
        while common:
            found = self._ids("search_text_walk", match, below, size)
            yield from found
            below = found[-1] if found else below
            common = len(found) > size // _COMMON
            size = min(size * _WALK_GROWTH, _LONGEST_WALK)
        size = _FOUND
        while True:
            found = self._ids("search_text_found", match, below, size)
            yield from found
            if len(found) < size:
                return
            below, size = found[-1], size * _FOUND_GROWTH

    def frequencies(self, words: Iterable[str], most: int) -> tuple[list[int], int]:
        having: list[int] = []
        rows = 0
        for one in words:
            count, rows = self._ask("search_text_frequency", match=one, most=most)[0]
            having.append(count)
        return having, rows

    def rows(self) -> int:
        return self._tx.rows("search_mark_rows")[0][0]

    def _ids(self, name: str, match: str, below: int, limit: int) -> list[int]:
        return [row[0] for row in self._ask(name, match=match, below=below, limit=limit)]

    def _ask(self, name: str, **params: Value) -> list[Row]:
        try:
            return self._tx.rows(name, **params)
        except Corrupt as error:
            raise SearchUnavailable(f"the search tables are damaged: {error}") from error


class TableIndex:
    """`Index` in the tables search_text and search_mark, which the store's schema has."""

    def __init__(self, backend: Backend, reader: Reader) -> None:
        self._backend = backend
        self._reader = reader
        self._closed = False

    def look(self, reader: Callable[[Transaction, View], T]) -> T:
        """Mark, words and log are of one snapshot."""
        self._check()
        return self._backend.read(lambda tx: reader(tx, TableView(tx)))

    def batch(self) -> Progress | None:
        return self._write(self._within)

    def renew(self, unfit: Damaged | None) -> None:
        self._write(lambda tx: _clear(tx, forced=unfit is None))

    def scrub(self) -> bool:
        """Merge the list of what was added last; the tables are vacuumed with the others."""
        self._write(lambda tx: tx.run("search_text_merge"))
        return True

    def shrink(self) -> tuple[int, bool]:
        """The server does it by itself."""
        return 0, False

    def missing(self) -> bool:
        return False

    def size(self) -> int:
        return self._backend.read(lambda tx: tx.rows("search_text_size"))[0][0]

    def close(self) -> None:
        """The connections are the store's, which closes them itself."""
        self._closed = True

    def _write(self, unit: Unit[T]) -> T:
        """Run a unit; what keeps the server from writing is no matter of the log."""
        self._check()
        try:
            return self._backend.write(unit)
        except (SearchUnavailable, StoreClosed, StoreReplaced, Busy, Unavailable, SchemaTooNew):
            raise
        except StoreError as error:
            raise SearchUnavailable(f"the search tables cannot be written: {error}") from error

    def _check(self) -> None:
        if self._closed:
            raise StoreClosed("the store is closed")

    def _within(self, tx: Transaction) -> Progress | None:
        locked = _lock(tx)
        if locked is None:
            return None
        mark = _mark(locked)
        work = collect(tx, mark)
        if work.mark != mark:
            self._store(tx, work)
        return work.progress

    def _store(self, tx: Transaction, work: Work) -> None:
        gone = sum(
            tx.changed("search_text_delete", first=first, last=last) for first, last in work.gone
        )
        bodies = [body(self._reader, row) for row in work.rows]
        vectors = [_vector(one) for one in bodies]
        rows = zip(work.rows, vectors, strict=True)
        tx.batch("search_text_insert", ({"id": row[0], "words": v} for row, v in rows))
        if vectors:
            tx.run("search_text_merge")
        lost = sum(one.text is None for one in bodies)
        doubtful = sum(_DOUBTFUL in v for v in vectors)
        tx.run(
            "search_mark_set", store_id=work.mark.store_id, stamp=work.mark.stamp,
            message=work.mark.message, change=work.mark.change, profile=work.mark.profile,
            unreadable=work.mark.unreadable + lost,
            oversized=work.mark.oversized + doubtful - lost, grown=len(vectors) - gone,
        )  # fmt: skip


_DOUBTFUL = TSQUERY.word(UNREADABLE)


def _vector(row: Body) -> str:
    """The distinct words of a row, as the server reads a tsvector."""
    text = UNREADABLE if row.text is None else row.text
    words = {*row.facets, *text.split(" ")} - {GAP, ""}
    if sum(len(word.encode()) for word in words) > WORDS_BYTES:
        words = {*row.facets, UNREADABLE}
    return " ".join(map(TSQUERY.word, words))


def _mark(row: Row | None) -> Mark:
    """The mark. Raises Damaged for an older index, and SearchUnavailable for a newer one, which
    another host keeps that knows it."""
    if row is None:
        return Mark()
    if row[0] < FORMAT:
        raise Damaged(f"the search index has format {row[0]}, this clew writes {FORMAT}")
    if row[0] > FORMAT:
        raise SearchUnavailable(
            f"the search index has format {row[0]}, of a newer clew; this one knows {FORMAT}"
        )
    return Mark(*row[1:])


def _lock(tx: Transaction) -> Row | None:
    """The row of the mark until the transaction ends; None if another host has it."""
    tx.run("search_mark_insert", format=FORMAT)
    return tx.row("search_mark_lock")


def _clear(tx: Transaction, forced: bool) -> None:
    """Forget every row; unless forced, only if the index is still unfit and nobody is at it. The
    mark comes first: its lock is waited for."""
    if forced or _unfit(tx):
        tx.run("search_mark_clear", format=FORMAT)
        tx.run("search_text_clear")


def _unfit(tx: Transaction) -> bool:
    locked = _lock(tx)
    if locked is None:
        return False
    try:
        return not _mark(locked).fits(store_of(tx))
    except Damaged:
        return True
