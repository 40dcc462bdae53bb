"""The one connection of a store that writes: the engine under group commit."""

from __future__ import annotations

from collections.abc import Callable

from clew.store.backend import Transaction
from clew.store.guard import FileIdentity, check_stamp
from clew.store.sqlite_transaction import SqliteTransaction


class SqliteWriter:
    """`Engine` on SQLite. Opens its connection at the first write, and anew after one broke.

    Each transaction begins by making sure of the file: its identity before BEGIN, its stamp
    inside. A file swapped in under the same path, or copied over in place, shows by one of them.
    """

    def __init__(
        self, connect: Callable[[], SqliteTransaction], identity: FileIdentity, stamp: str
    ) -> None:
        self._connect = connect
        self._identity = identity
        self._stamp = stamp
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
        """Take the write lock on the right file, or raise StoreReplaced, Busy, ..."""
        self._identity.check()
        current = self._current
        if current is None:
            current = self._current = self._connect()
        current.begin("BEGIN IMMEDIATE")
        version = current.version()
        if version != self._version:
            try:
                self._check_stamp(current)
            except BaseException:
                current.end()
                raise
            self._version = version

    def _check_stamp(self, current: SqliteTransaction) -> None:
        """Asked only when somebody else has committed since: until then the stamp would come from
        the same cached page as before."""
        self._identity.see_wal()
        check_stamp(current, self._stamp)

    def commit(self) -> None:
        current = self._used()
        current.edge("COMMIT")
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
            self._identity.forget_wal()

    def disown(self) -> None:
        """In the child of a fork: never touch the connection again."""
        if self._current is not None:
            self._current.disown()

    def _used(self) -> SqliteTransaction:
        """The connection, which `begin` opened."""
        assert self._current is not None
        return self._current
