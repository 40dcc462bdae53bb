"""The store's waist on SQLite, through APSW.

Writes go through group commit on one connection (commit.py), reads through a stack of others, each
on a snapshot of its own. Nobody opens the database, -wal or -shm except through APSW.
"""

from __future__ import annotations

import errno
import os
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import apsw

from clew.errors import (
    Busy,
    Corrupt,
    InputError,
    SchemaTooNew,
    StoreError,
    StoreFull,
    StoreUnusable,
)
from clew.store import filesystem, migrate, queries
from clew.store.backend import Unit
from clew.store.batch import BatchRunner
from clew.store.commit import Committer
from clew.store.forks import watch
from clew.store.frozen import WRITE_REMEDY, frozen_at, has_unmerged
from clew.store.guard import Guard, check_stamp
from clew.store.migrate import Header, Meta, Migration, Progress
from clew.store.sqlite_connections import Connections, check_version, connect
from clew.store.sqlite_driver import again
from clew.store.sqlite_transaction import SqliteTransaction
from clew.store.sqlite_writer import SqliteWriter
from clew.store.turnstile import Turnstile
from clew.store.wal_holders import check_file

if TYPE_CHECKING:
    from clew.store.needles import Needles
    from clew.store.tasks import Tasks
    from clew.store.values import FileTrace, StoredValue

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
    `migrations`: those of this code. `progress`: told of each before it is applied. `mounts`: the
    system's list of file systems. `pause` sleeps between attempts after a passing I/O error.
    """

    several: bool = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        readers: int = 4,
        patience: float = 30.0,
        create: bool = True,
        statements: Mapping[str, str] | None = None,
        migrations: Sequence[Migration] | None = None,
        progress: Progress | None = None,
        mounts: Path = filesystem.MOUNTS,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        check_version(apsw.sqlite_lib_version())
        _check_path(os.fspath(path))
        self.path = os.path.realpath(path)
        self._frozen = frozen_at(self.path) if os.path.exists(self.path) else None
        if self._frozen is None:
            filesystem.check_folder(Path(os.path.dirname(self.path)), mounts)
        _ensure_file(self.path, create)
        header = migrate.examine(self.path)
        self._guard = Guard(self.path)
        if self._frozen is None and not header.empty:
            self._guard.admit()
        self._patience, self._pause = patience, pause
        self._turnstile = Turnstile(self.path)
        self._connections = Connections(
            self.path,
            _statements() if statements is None else statements,
            readers,
            patience,
            self._guard,
            pause,
            self._frozen,
        )
        try:
            steps = migrations or migrate.known()
            self._schema = steps[-1].number
            self.meta = self._open(header, steps, progress)
            again(self._start_guard, pause)
        except BaseException:
            self._connections.close()
            self._turnstile.close()
            raise
        self._writer = SqliteWriter(
            self._connections.writer, self._guard, self.meta.stamp, self._schema, pause
        )
        self._committer = Committer(self._writer, self._turnstile, patience=patience)
        self._starting = threading.Lock()
        self._tasks: Tasks | None = None
        self._forgotten = weakref.finalize(
            self, _release, self._committer, self._connections, self._writer, self._guard
        )
        watch(self)

    @property
    def trouble(self) -> StoreError | None:
        """Why this store writes nothing any more (Quarantined, StoreReplaced, ...); None while all
        is well. Reads go on as far as they can."""
        return self._guard.trouble

    @property
    def runner(self) -> BatchRunner:
        """Counters of the write path: units, commits, reruns."""
        return self._committer.runner

    def write(self, unit: Unit[T]) -> T:
        """Run a unit in a transaction, maybe with others; its result is durable on return."""
        if self._frozen is not None:
            raise self._unwritable()
        self._guard.refuse()
        try:
            return self._committer.write(unit)
        except StoreUnusable as error:
            raise self._guard.explain(error) from error.__cause__

    async def write_async(self, unit: Unit[T]) -> T:
        """As `write`, without blocking the loop."""
        if self._frozen is not None:
            raise self._unwritable()
        self._guard.refuse()
        try:
            return await self._for_tasks().write(unit)
        except StoreUnusable as error:
            raise self._guard.explain(error) from error.__cause__

    def read(self, reader: Unit[T]) -> T:
        """Run a reader on one snapshot. Reads may nest; each has its own.

        StoreReplaced after a restore: the numbers that handles hold name other conversations then.
        """
        connections = self._connections
        transaction = connections.take()
        try:
            again(lambda: self._snapshot(transaction), self._pause)
            result = reader(transaction)
            connections.check_frozen()
            return result
        except Corrupt:
            connections.check_frozen()  # pages of before and after a write may not fit together
            raise
        finally:
            connections.give_back(transaction)

    def _snapshot(self, transaction: SqliteTransaction) -> None:
        transaction.end()
        transaction.begin("BEGIN", self._pause)
        check_stamp(transaction, self.meta.stamp, self._schema)  # this is what takes it

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

    def scrub(self) -> tuple[str, ...]:
        """Write the file anew (VACUUM) and cut its -wal; gives the copies that lie beside it."""
        if self._frozen is not None:
            raise self._unwritable()
        return import_module("clew.store.sqlite_scrub").scrub(self.path, self._patience)

    def values(self) -> Iterator[StoredValue]:
        """Every text and every bytes, on a connection of its own."""
        self._connections.check()
        return import_module("clew.store.sqlite_scrub").values(self._connections.reader())

    def file_traces(self, needles: Needles) -> Iterator[FileTrace | int]:
        """Pieces found in the database and its -wal, read through SQLite's own file system."""
        self._connections.check()
        return import_module("clew.store.sqlite_scrub").traces(self.path, needles)

    def close(self) -> None:
        """Wait for the units in the queue, then release everything. A clean close of the last
        store on a file leaves it without a -wal. May be repeated."""
        tasks, self._tasks = self._tasks, None
        if tasks is not None:
            tasks.close()
        _release(self._committer, self._connections, self._writer, self._guard)
        self._forgotten.detach()

    def forked(self) -> None:
        """In the child of a fork: refuse, and leave what belongs to the parent alone."""
        self._starting = threading.Lock()
        self._tasks = None
        self._guard.disown()
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

    def _open(
        self, header: Header, migrations: Sequence[Migration], progress: Progress | None
    ) -> Meta:
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
                return migrate.migrate(writer, migrations, progress=progress)
            finally:
                writer.close(True)

    def _start_guard(self) -> None:
        """Have the guard remember what was opened; the connection stays for the first read."""
        if self._frozen is not None:
            return
        transaction = self._connections.take()
        try:
            again(lambda: self._snapshot(transaction), self._pause)
            self._guard.identity.see_wal()
            self._guard.witness.start(transaction.layout(), self.meta.stamp)
        finally:
            self._connections.give_back(transaction)

    def _current(self, migrations: Sequence[Migration]) -> Meta | None:
        """The record of a store that is up to date; its connection is kept for the first read."""
        try:
            reader = self._connections.reader()
            try:
                meta = migrate.current(reader, migrations)
            except BaseException as error:
                if isinstance(error, Corrupt):  # the -wal is evidence, and may be all there is
                    reader.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
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
        return StoreUnusable(
            f"{self.path} can only be read: its folder takes no writes from this user. "
            f"{WRITE_REMEDY}", "EACCES",
        )  # fmt: skip

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
        check_file(path)
        if os.path.exists(path):
            return
        if not create:
            raise StoreError(f"there is no store at {path}")
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            pass  # another process was faster
        except OSError as error:
            kind = StoreFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else StoreUnusable
            reason = errno.errorcode.get(error.errno or 0)
            raise kind(f"cannot create {path}: {error.strerror}", reason) from error


def _release(
    committer: Committer, connections: Connections, writer: SqliteWriter, guard: Guard
) -> None:
    """Close what a store has, the writer last: it moves the -wal into the database, if that is
    still the one that was opened. In the child of a fork each of them does nothing."""
    committer.close()
    guard.closing()
    connections.close()
    writer.close()
