"""The store's waist on SQLite, through APSW.

Writes go through group commit on one connection (commit.py), reads through a stack of others, each
on a snapshot of its own. Nobody opens the database, -wal or -shm except through APSW.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, TypeVar

import apsw

from clew.errors import Busy, Corrupt, InputError, SchemaTooNew, StoreError
from clew.store import migrate, queries
from clew.store.backend import Unit
from clew.store.batch import BatchRunner
from clew.store.commit import Committer
from clew.store.forks import watch
from clew.store.frozen import WRITE_REMEDY, frozen_at, has_unmerged
from clew.store.guard import FileIdentity, check_stamp
from clew.store.migrate import Header, Meta, Migration
from clew.store.sqlite_connections import Connections, check_version, connect
from clew.store.sqlite_writer import SqliteWriter
from clew.store.turnstile import Turnstile

if TYPE_CHECKING:
    from clew.store.tasks import Tasks

T = TypeVar("T")


class _Creating:
    """Held while a file is made."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        watch(self)

    def forked(self) -> None:
        """The thread that had it may not exist here."""
        self.lock = threading.Lock()


_creating = _Creating()


@cache
def _statements() -> Mapping[str, str]:
    """The store's statements, read once per process."""
    return queries.load("sqlite")


class SqliteBackend:
    """`Backend` on one SQLite file.

    `readers`: idle connections kept for reading. `patience`: seconds that a write may wait for
    its turn, and SQLite for a lock, before Busy. `create`: make the file if there is none.
    """

    several: ClassVar = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        readers: int = 4,
        patience: float = 30.0,
        create: bool = True,
        statements: Mapping[str, str] | None = None,
        migrations: Sequence[Migration] | None = None,
    ) -> None:
        check_version(apsw.sqlite_lib_version())
        _check_path(os.fspath(path))
        self.path = os.path.realpath(path)
        _ensure_file(self.path, create)
        header = migrate.examine(self.path)
        identity = FileIdentity(self.path)
        self._patience = patience
        self._frozen = frozen_at(self.path)
        self._turnstile = Turnstile(self.path)
        self._connections = Connections(
            self.path,
            _statements() if statements is None else statements,
            readers,
            patience,
            self._frozen,
        )
        try:
            self.meta = self._open(header, migrations or migrate.known())
        except BaseException:
            self._connections.close()
            self._turnstile.close()
            raise
        self._writer = SqliteWriter(self._connections.writer, identity, self.meta.stamp)
        self._committer = Committer(self._writer, self._turnstile, patience=patience)
        self._starting = threading.Lock()
        self._tasks: Tasks | None = None
        self._forgotten = weakref.finalize(
            self, _release, self._committer, self._connections, self._writer
        )
        watch(self)

    @property
    def runner(self) -> BatchRunner:
        """Counters of the write path: units, commits, reruns."""
        return self._committer.runner

    def write(self, unit: Unit[T]) -> T:
        """Run a unit in a transaction, maybe with others; its result is durable on return."""
        if self._frozen is not None:
            raise self._unwritable()
        return self._committer.write(unit)

    async def write_async(self, unit: Unit[T]) -> T:
        """As `write`, without blocking the loop."""
        if self._frozen is not None:
            raise self._unwritable()
        return await self._for_tasks().write(unit)

    def read(self, reader: Unit[T]) -> T:
        """Run a reader on one snapshot. Reads may nest; each has its own.

        StoreReplaced after a restore: the numbers that handles hold name other conversations then.
        """
        connections = self._connections
        transaction = connections.take()
        try:
            transaction.begin("BEGIN")
            check_stamp(transaction, self.meta.stamp)  # also takes the snapshot
            result = reader(transaction)
            connections.check_frozen()
            return result
        except Corrupt:
            connections.check_frozen()  # pages of before and after a write may not fit together
            raise
        finally:
            connections.give_back(transaction)

    async def read_async(self, reader: Unit[T]) -> T:
        """As `read`, in a small pool of threads."""
        self._connections.check()
        return await self._for_tasks().read(self.read, reader)

    def change_token(self) -> int:
        """Differs whenever anybody, this store included, has committed since it was last asked."""
        self._connections.check_frozen()
        return self._connections.data_version()

    def wait(self, token: int, seconds: float) -> None:
        """Sleep: SQLite tells nobody."""
        time.sleep(seconds)

    async def wait_async(self, token: int, seconds: float) -> None:
        """Sleep, in the loop."""
        await self._for_tasks().sleep(seconds)

    def close(self) -> None:
        """Wait for the units in the queue, then release everything. A clean close of the last
        store on a file leaves it without a -wal. May be repeated."""
        tasks, self._tasks = self._tasks, None
        if tasks is not None:
            tasks.close()
        _release(self._committer, self._connections, self._writer)
        self._forgotten.detach()

    def forked(self) -> None:
        """In the child of a fork: refuse, and leave what belongs to the parent alone."""
        self._starting = threading.Lock()
        self._tasks = None
        self._connections.disown()
        self._writer.disown()

    def _for_tasks(self) -> Tasks:
        """Loaded by name at the first need: asyncio is slow to import. Under a lock, because two
        event loops may come at once."""
        with self._starting:
            if self._tasks is not None:
                return self._tasks
            tasks: Tasks = import_module("clew.store.tasks").Tasks(self._committer)
            self._tasks = tasks
            return tasks

    def _open(self, header: Header, migrations: Sequence[Migration]) -> Meta:
        """The store's own record. The common case, a file that is up to date, is one SELECT on
        the connection that the first read will use."""
        if header.wal:
            meta = self._current(migrations)
            if meta is not None:
                return meta
        if self._frozen is not None:
            raise self._unwritable()
        with self._turn():
            writer = connect(self.path, self._patience, writer=True)
            try:
                return migrate.migrate(writer, migrations)
            finally:
                writer.close(True)

    def _current(self, migrations: Sequence[Migration]) -> Meta | None:
        """The record of a store that is up to date; its connection is kept for the first read."""
        try:
            reader = self._connections.reader()
            try:
                meta = migrate.current(reader, migrations)
            except BaseException:
                reader.close(True)
                raise
        except StoreError as error:
            if self._hidden() and not isinstance(error, (Corrupt, SchemaTooNew)):
                raise self._unreadable() from error
            raise
        self._connections.adopt(reader)
        return meta

    def _hidden(self) -> bool:
        """Whether the newest commits are in a -wal that cannot be read without writing."""
        return not os.access(os.path.dirname(self.path), os.W_OK) and has_unmerged(self.path)

    def _unreadable(self) -> StoreError:
        return StoreError(
            f"{self.path} was not closed cleanly: its newest messages are in {self.path}-wal, and "
            f"to read them SQLite has to write to the folder, which this user may not. Let it "
            f"(chown, chmod, or mount it writable), or copy both files together, while no process "
            f"has the store open, to a folder where it may, and open the copy"
        )

    def _unwritable(self) -> StoreError:
        return StoreError(
            f"{self.path} can only be read: its folder takes no writes from this user. "
            f"{WRITE_REMEDY}"
        )

    @contextmanager
    def _turn(self) -> Generator[None, None, None]:
        """Inside the turnstile, for a migration: busy writers would starve it otherwise."""
        deadline = time.monotonic() + self._patience
        while not self._turnstile.try_enter():
            if time.monotonic() > deadline:
                raise Busy(f"another process has been writing to {self.path}; cannot migrate it")
            time.sleep(0.005)
        try:
            yield
        finally:
            self._turnstile.leave()


def _check_path(path: str) -> None:
    """Refuse what is not the path of a file."""
    if not path or path.startswith("file:") or os.path.basename(path) == ":memory:":
        raise InputError(
            f"{path or 'an empty path'}: a store is a file, neither in memory nor a URI; give the "
            f"path of one. In tests use a temporary folder (tmp_path of pytest, tempfile)"
        )
    if "\0" in path:
        raise InputError("a path cannot hold a NUL character")
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder; give the path of a file in it")
    if os.path.exists(path) and not os.path.isfile(path):
        raise InputError(f"{path} is not a regular file; give the path of one")


def _ensure_file(path: str, create: bool) -> None:
    """Have a file, readable by nobody else. One thread at a time, and only a new file: closing a
    descriptor of one that SQLite has open in this process would drop its locks."""
    with _creating.lock:
        if os.path.exists(path):
            return
        if not create:
            raise StoreError(f"there is no store at {path}")
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            pass  # another process was faster
        except OSError as error:
            raise StoreError(f"cannot create {path}: {error.strerror}") from error


def _release(committer: Committer, connections: Connections, writer: SqliteWriter) -> None:
    """Close what a store has, the writer last: it moves the -wal into the database. In the child
    of a fork each of them does nothing."""
    committer.close()
    connections.close()
    writer.close()
