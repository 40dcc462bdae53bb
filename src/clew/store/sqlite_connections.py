"""Opens SQLite connections with the settings of the store, and keeps idle ones for reading."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, cast

import apsw

from clew.errors import StoreClosed, StoreError
from clew.store.forks import INHERITED
from clew.store.frozen import Frozen
from clew.store.guard import Guard
from clew.store.sqlite_driver import FileConnection, again, query, translate
from clew.store.sqlite_transaction import SqliteTransaction

STATEMENTS = 320
"""Prepared statements kept per connection: all that the store has."""

_READER = "PRAGMA cache_size = -16384; PRAGMA query_only = 1"
_WRITER = "PRAGMA cache_size = -32768; PRAGMA synchronous = FULL"


@cache
def check_version(version: str) -> None:
    """Refuse an SQLite that can lose a commit: before 3.51.3, and in 3.52.0, a reset of the WAL
    under several connections may drop frames."""
    number = tuple(int(part) for part in version.split("."))
    if number < (3, 51, 3) or number == (3, 52, 0):
        raise StoreError(
            f"SQLite {version} can lose commits in WAL mode. Remedy: {sys.executable} -m pip "
            f"install -U apsw"
        )


def connect(
    path: str, patience: float, writer: bool = False, immutable: bool = False,
    pause: Callable[[float], None] = time.sleep,
) -> apsw.Connection:  # fmt: skip
    """A connection to an existing file; `immutable` as in FileConnection, `pause` as in `again`.

    It holds on to itself through a function of its own, in a cycle that nothing but `close`
    breaks: in the child of a fork it must not be closed by the collector or at exit, because the
    close of what SQLite takes for the last connection deletes the -wal, by now maybe another's.
    """
    connection = again(lambda: _opened(path, immutable), pause)
    try:
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 1)
        # Else SQLite compiles a statement anew whenever a value is bound that its plan might depend
        # on: more than running a short one takes. Plans here are made to hold for all values.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        connection.set_busy_timeout(int(patience * 1000))
        again(lambda: query(connection, _WRITER if writer else _READER), pause)
    except BaseException:
        connection.close(True)
        raise
    keep: Any = _Keep(connection)
    cast(Any, connection).create_scalar_function("clew_keep", keep, 0)
    return connection


def _opened(path: str, immutable: bool) -> apsw.Connection:
    """SQLite reads the header as it opens a file; where that fails, nothing was opened."""
    try:
        return FileConnection(path, immutable=immutable, statementcachesize=STATEMENTS)
    except apsw.Error as error:
        failure = translate(error)
        failure.add_note(f"while opening {path}")
        raise failure from error


class _Keep:
    """A function that nobody calls."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def __call__(self) -> None:
        return None


class Connections:
    """Connections of one store: a stack of idle readers, at most `keep` of them.

    Never waits for one: a reader that reads again inside its own read gets another connection.
    """

    def __init__(
        self,
        path: str,
        statements: Mapping[str, str],
        keep: int,
        patience: float,
        guard: Guard,
        pause: Callable[[float], None],
        frozen: Frozen | None = None,
    ) -> None:
        self._path = path
        self._guard = guard
        self._pause = pause
        self._statements = statements
        self._keep = keep
        self._patience = patience
        self._frozen = frozen
        self._lock = threading.Lock()
        self._idle: list[SqliteTransaction] = []
        self._lent: set[SqliteTransaction] = set()
        self._watcher: apsw.Connection | None = None
        self._refusal: str | None = None

    def check(self) -> None:
        """Raise StoreClosed if there are no connections any more."""
        if self._refusal is not None:
            raise StoreClosed(self._refusal)

    def check_frozen(self) -> None:
        """Raise StoreError if a file that is read without locks has changed."""
        if self._frozen is not None:
            self._frozen.check()

    def reader(self) -> apsw.Connection:
        """A new connection for reading. Raises StoreReplaced rather than open another file, whose
        -wal it would make anew."""
        if self._frozen is None:
            self._guard.identity.look()
        return connect(
            self._path, self._patience, immutable=self._frozen is not None, pause=self._pause
        )

    def writer(self) -> SqliteTransaction:
        """A new connection for writing, which the caller closes."""
        return SqliteTransaction(
            connect(self._path, self._patience, True, pause=self._pause), self._statements,
            self._guard,
        )  # fmt: skip

    def adopt(self, connection: apsw.Connection) -> None:
        """Keep a connection that was opened for something else, for the first read."""
        self._idle.append(SqliteTransaction(connection, self._statements, self._guard))

    def take(self) -> SqliteTransaction:
        """A connection for reading; to be given back."""
        with self._lock:
            self.check()
            if self._idle:
                reader = self._idle.pop()
                self._lent.add(reader)
                return reader
        reader = SqliteTransaction(self.reader(), self._statements, self._guard)
        with self._lock:
            self._lent.add(reader)
        return reader

    def give_back(self, reader: SqliteTransaction) -> None:
        """End its transaction and keep it, or close it: too many, or broken, or all is closed."""
        reader.end()
        with self._lock:
            self._lent.discard(reader)
            if self._refusal is None and not reader.broken and len(self._idle) < self._keep:
                self._idle.append(reader)
                return
        if reader.broken:
            self._guard.identity.forget_wal()  # it may have been the last one open
        reader.close()

    def data_version(self) -> int:
        """SQLite's count of other connections' commits, asked on one that never commits."""
        with self._lock:
            self.check()
            if self._watcher is None:
                self._watcher = self.reader()
            return int(query(self._watcher, "PRAGMA data_version")[0][0])

    def close(self) -> None:
        """Close those that are idle, and from now on each that is given back."""
        with self._lock:
            self._refusal = self._refusal or "the store is closed"
            idle, self._idle = self._idle, []
            watcher, self._watcher = self._watcher, None
        for reader in idle:
            reader.close()
        if watcher is not None:
            if self._guard.keeps_wal:
                watcher.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            watcher.close(True)

    def disown(self) -> None:
        """In the child of a fork: touch none of them again, and refuse. The lock is new because
        a thread that does not exist here may hold the old one."""
        self._lock = threading.Lock()
        self._refusal = INHERITED
        for reader in self._lent:
            reader.disown()
        self._idle, self._watcher = [], None
