"""The one connection of a store that writes: the engine under group commit."""

from __future__ import annotations

from collections.abc import Callable

from clew.errors import StoreReplaced
from clew.store.backend import Transaction
from clew.store.guard import Guard, check_stamp
from clew.store.sqlite_driver import again
from clew.store.sqlite_transaction import SqliteTransaction


class SqliteWriter:
    """`Engine` on SQLite. Opens its connection at the first write, and anew after one broke.

    Each transaction begins by making sure of the file: its identity before BEGIN, its stamp
    inside, and its content if somebody has written to it. A file swapped in under the same path, or
    copied over in place, shows by one of them.
    """

    def __init__(
        self, connect: Callable[[], SqliteTransaction], guard: Guard, stamp: str, schema: int,
        pause: Callable[[float], None],
    ) -> None:  # fmt: skip
        self._connect = connect
        self._guard = guard
        self._pause = pause
        self._counts = False
        """Whether rows are numbered, so that commits can be told apart by the sum."""
        self._stamp, self._schema = stamp, schema
        self._current: SqliteTransaction | None = None
        self._version: int | None = None
        """The connection's count of commits when the stamp was last known to be right."""

    @property
    def transaction(self) -> Transaction:
        return self._used()

    @property
    def in_transaction(self) -> bool:
        current = self._current
        return current is not None and current.in_transaction

    def begin(self) -> None:
        """Take the write lock on the right file, or raise StoreReplaced, Quarantined, Busy, ..."""
        self._guard.check()
        current = self._current
        if current is None:
            current = self._current = self._connect()
        moved = self._guard.witness.moved()
        if moved:
            current.drop_pages()  # else the cache would tell what the file no longer holds
        current.begin("BEGIN IMMEDIATE", self._pause)
        version = current.version()
        if moved or version != self._version:
            try:
                self._check_content(current, moved)
            except StoreReplaced as error:
                current.end()
                raise self._guard.stop(error) from None
            except BaseException:
                current.end()
                raise
            self._version = version

    def _check_content(self, current: SqliteTransaction, moved: bool) -> None:
        """Asked only when somebody else has committed since, or the file was written: until then
        the stamp would come from the same cached page as before."""
        first = self._version is None
        self._guard.identity.see_wal()
        check_stamp(current, self._stamp, self._schema)
        if moved or first:
            layout = current.layout()
            self._counts = layout is not None
            if moved:
                again(lambda: self._guard.witness.check(layout), self._pause)

    def commit(self) -> None:
        current = self._used()
        total = current.total() if self._counts else 0
        current.edge("COMMIT")
        self._guard.witness.committed(total)
        self._version = current.version()  # our own commit counts, too

    def rollback(self) -> None:
        """End the transaction; a connection that cannot is closed, which ends it too."""
        current = self._current
        if current is not None:
            current.end()
            if current.broken:
                self.close()

    def savepoint(self) -> None:
        self._used().edge("SAVEPOINT unit")

    def release(self) -> None:
        self._used().edge("RELEASE unit")

    def rollback_to(self) -> None:
        self._used().edge("ROLLBACK TO unit")

    def close(self) -> None:
        """Close the connection; the last one on the file moves the -wal into the database."""
        current, self._current, self._version = self._current, None, None
        if current is not None:
            current.close()
            self._guard.identity.forget_wal()

    def disown(self) -> None:
        """In the child of a fork: never touch the connection again."""
        if self._current is not None:
            self._current.disown()

    def _used(self) -> SqliteTransaction:
        """The connection, which `begin` opened."""
        assert self._current is not None
        return self._current
