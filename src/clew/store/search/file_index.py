"""The index in a file of its own, which may be deleted at any time: an FTS5 table of SQLite.

Any number of processes may try to fill it; the one that gets the write lock of the file reads the
mark inside its transaction, so no row is indexed twice and none is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

from clew.store.backend import Backend, Transaction
from clew.store.search.batch import Work, body, collect
from clew.store.search.connection import Connection
from clew.store.search.file import bytes_on_disk, identity, replace
from clew.store.search.index import Damaged, Mark, Progress, View
from clew.store.search.pool import Pool
from clew.store.search.reading import Reader
from clew.store.search.syntax import FTS5

T = TypeVar("T")


class FileView:
    """The file as one query sees it."""

    syntax = FTS5

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.mark = _mark(connection)

    def newest(self, match: str, below: int) -> Generator[int]:
        return self._connection.ids("words_newest", match=match, below=below)

    def frequencies(self, words: Iterable[str], most: int) -> tuple[list[int], int]:
        first, rows = self._connection.rows("words_floor", most=most)[0]
        ask = self._connection.rows
        return [ask("words_frequency", match=w, first=first)[0][0] for w in words], rows

    def rows(self) -> int:
        return self._connection.rows("words_count")[0][0]


class FileIndex:
    """`Index` in the file at `path`, made when it is first needed."""

    def __init__(self, path: str, backend: Backend, reader: Reader) -> None:
        self._path = path
        self._pool = Pool(path)
        self._backend = backend
        self._reader = reader

    def look(self, reader: Callable[[Transaction, View], T]) -> T:
        """The mark is read first: each message committed before is on one side of it or the
        other."""
        with self._pool.lend() as connection:
            view = FileView(connection)
            return self._backend.read(lambda tx: reader(tx, view))

    def batch(self) -> Progress | None:
        with self._pool.lend() as connection:
            if not connection.begin():
                return None
            try:
                return self._within(connection)
            finally:
                connection.end()

    def renew(self, unfit: Damaged | None) -> None:
        replace(self._path, identity(self._path) if unfit is None else unfit.identity)

    def scrub(self) -> bool:
        """Merge all into one, which leaves out what was deleted, and write the file anew."""
        with self._pool.lend() as connection:
            return connection.scrub()

    def shrink(self) -> tuple[int, bool]:
        with self._pool.lend() as connection:
            if not connection.begin():
                return 0, False
            try:
                before = connection.rows("space_state")[0]
                connection.rows("space_step")
                after = connection.rows("space_state")[0]
                connection.commit()
            finally:
                connection.end()
        gone = before[1] - after[1]
        return gone * before[2], gone > 0

    def missing(self) -> bool:
        return identity(self._path) is None

    def size(self) -> int:
        return bytes_on_disk(self._path)

    def close(self) -> None:
        self._pool.close()

    def _within(self, connection: Connection) -> Progress:
        mark = _mark(connection)
        work = self._backend.read(lambda tx: collect(tx, mark))
        if work.mark != mark:
            self._store(connection, work)
            connection.commit()
        return work.progress

    def _store(self, connection: Connection, work: Work) -> None:
        for first, last in work.gone:
            connection.rows("words_delete", first=first, last=last)
        bodies = [body(self._reader, row) for row in work.rows]
        rows = zip(work.rows, bodies, strict=True)
        connection.batch("words_insert", ({"id": row[0], "body": str(b)} for row, b in rows))
        lost = sum(b.text is None for b in bodies)
        connection.rows(
            "mark_set", store_id=work.mark.store_id, stamp=work.mark.stamp,
            message=work.mark.message, change=work.mark.change, profile=work.mark.profile,
            unreadable=work.mark.unreadable + lost,
        )  # fmt: skip


def _mark(connection: Connection) -> Mark:
    return Mark(*connection.rows("mark_read")[0])
