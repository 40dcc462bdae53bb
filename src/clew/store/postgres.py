"""The store's waist on PostgreSQL, through psycopg.

A unit of work is one transaction on a connection of its own; the server merges the flushes of
commits that come together. What makes races harmless is said where it is decided: rows are locked
by the statements of sql/postgres.sql, in the order inbound, binding, conversation (a branch before
its origin), the rest, so that no two units wait for each other; should two do so, the server undoes
one (40P01) and it is run again. Run again is also what has lost its connection: nobody knows then
whether it is stored, and the unit finds out (unit.py).
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import import_module
from time import monotonic, sleep
from typing import TYPE_CHECKING, ClassVar, TypeVar

import psycopg
from psycopg import pq

from clew.errors import Busy, StoreError, Unavailable
from clew.store import postgres_migrate
from clew.store.address import Address
from clew.store.backend import Unit
from clew.store.engines import PATIENCE
from clew.store.forks import watch
from clew.store.migrations import Meta, Progress
from clew.store.postgres_driver import (
    Contention,
    Demoted,
    Distrusted,
    InDoubt,
    connect,
    session,
    translate,
)
from clew.store.postgres_listener import Listener
from clew.store.postgres_notifier import Notifier
from clew.store.postgres_pool import Pool
from clew.store.postgres_session import Command, Session
from clew.store.postgres_transaction import PostgresTransaction

if TYPE_CHECKING:
    from clew.store.needles import Needles
    from clew.store.threads import Threads
    from clew.store.values import FileTrace, StoredValue

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.005, 1.0
"""Seconds between two runs of a unit; doubled each time, and shortened by chance."""


class PostgresBackend:
    """`Backend` on one PostgreSQL database.

    `patience`: seconds that a call may wait for a lock, a connection or the server's return, before
    Busy or Unavailable. `create`: make a store of an empty database; else NoStore. `wait`: opening
    waits for a server that is away, too, as later calls do. `progress` is told of migrations.
    """

    several: bool = False
    trouble: ClassVar = None
    """A server that is away may be back at the next call: nothing stops for good."""

    def __init__(
        self, address: Address, *, patience: float = PATIENCE, create: bool = True,
        wait: bool = False, progress: Progress | None = None,
    ) -> None:  # fmt: skip
        self._address, self._patience = address, patience

        def prepare() -> Meta:
            with closing(connect(address, patience)) as connection:
                return postgres_migrate.prepare(connection, create=create, progress=progress)

        self.meta = _patiently(prepare, patience if wait else 0.0)
        self._schema = postgres_migrate.newest()
        self._pool = Pool(address, patience)
        self._setup = Command("setup", session(address, patience)) if address.pooled else None
        channel = f"clew_{self.meta.store_id}"
        self._notifier = Notifier(self._pool, channel)
        self._listener = Listener(address, channel, patience)
        self._starting = threading.Lock()
        self._threads: Threads | None = None
        self._inside = threading.local()
        watch(self)

    @property
    def address(self) -> Address:
        """Where the store is."""
        return self._address

    def write(self, unit: Unit[T]) -> T:
        """Run a unit in a transaction of its own; its result is durable on return."""
        return self._write(unit, monotonic() + self._patience)

    async def write_async(self, unit: Unit[T]) -> T:
        """As `write`, in a thread."""
        end = monotonic() + self._patience
        return await self._for_tasks().run(self._for_task, self._write, unit, end)

    def read(self, reader: Unit[T]) -> T:
        """Run a reader on one snapshot."""
        return self._read(reader, monotonic() + self._patience)

    async def read_async(self, reader: Unit[T]) -> T:
        """As `read`, in a thread."""
        end = monotonic() + self._patience
        return await self._for_tasks().run(self._for_task, self._read, reader, end)

    def change_token(self) -> int:
        """Differs whenever anybody, this store included, has committed since it was last asked.
        What others commit counts within a second at the latest."""
        self._pool.check()
        return self._listener.count()

    def wait(self, token: int, seconds: float) -> None:
        """Return as soon as the token is another, or after so long."""
        self._listener.wait(token, seconds)

    async def wait_async(self, token: int, seconds: float) -> None:
        """As `wait`, without blocking the loop."""
        await self._listener.wait_async(token, seconds)

    def scrub(self) -> tuple[str, ...]:
        """VACUUM the store's tables; gives what keeps old bytes beyond that."""
        return import_module("clew.store.postgres_scrub").scrub(self._address, self._patience)

    def values(self) -> Iterator[StoredValue]:
        """Every text and every bytes, on a connection of its own."""
        self._pool.check()
        return import_module("clew.store.postgres_scrub").values(self._address, self._patience)

    def file_traces(self, needles: Needles) -> Iterator[FileTrace | int]:
        """None: the files are the server's."""
        return iter(())

    def close(self) -> None:
        """Wait for the calls under way, then let go of all connections. May be repeated."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.close()
        self._listener.close()
        self._notifier.close()
        self._pool.close()

    def forked(self) -> None:
        """In the child of a fork: refuse, and leave what belongs to the parent alone."""
        self._starting = threading.Lock()
        self._threads = None
        self._inside = threading.local()
        self._pool.disown()
        self._listener.forked()
        self._notifier.forked()

    def _for_task(self, run: Callable[[Unit[T], float], T], unit: Unit[T], end: float) -> T:
        """Run it, unless it had to wait too long for its thread."""
        if monotonic() > end:
            raise Busy(
                f"no thread was free within {self._patience:g} s; {self._address.pool_size} calls "
                f"of tasks run at a time. Nothing was written; the same call may be repeated with "
                f"the same keys. `pool_size` in the URL allows more"
            )
        return run(unit, end)

    def _write(self, unit: Unit[T], end: float) -> T:
        result = self._again(end, lambda tx: tx.write(unit, self._schema))
        self._notifier.committed()
        return result

    def _read(self, reader: Unit[T], end: float) -> T:
        inside: PostgresTransaction | None = getattr(self._inside, "tx", None)
        if inside is not None:
            # By a unit, which learns a dictionary for a row that it has read. Did it wait for a
            # second connection, units that have all of them would wait for each other.
            return reader(inside)
        return self._again(end, lambda tx: tx.read(reader))

    def _again(self, end: float, work: Callable[[PostgresTransaction], T]) -> T:
        """Run a transaction; again while the server undoes it for others or is away."""
        pause, demoted = FIRST_PAUSE, False
        doubt: InDoubt | None = None
        while True:
            try:
                with self._pool.lend(end) as connection:
                    return self._run(connection, work)
            except StoreError as error:
                doubt = error if isinstance(error, InDoubt) else doubt
                again = isinstance(error, (Contention, Unavailable))
                if isinstance(error, Demoted) and not demoted:
                    # What it was when the connection was made; a new one finds the primary of now.
                    demoted = again = True
                    self._pool.renew()
                if not again or monotonic() + pause > end:
                    if doubt in (None, error):
                        raise
                    raise InDoubt(f"{doubt} Then: {error}") from error
            sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, LONGEST_PAUSE)

    def _run(self, connection: Session, work: Callable[[PostgresTransaction], T]) -> T:
        """Run one transaction; when it fails, end it, and say what it means."""
        tx = self._inside.tx = PostgresTransaction(connection, self._setup)
        try:
            return work(tx)
        except psycopg.Error as error:
            _end(connection)
            failure = translate(error, self._address.shown)
            if tx.committing and isinstance(failure, Unavailable):
                failure = InDoubt(*failure.args)
            raise failure from error
        except Exception:
            _end(connection)
            raise
        except BaseException:
            connection.close()  # interrupted anywhere, its results half read
            raise
        finally:
            self._inside.tx = None

    def _for_tasks(self) -> Threads:
        with self._starting:
            if self._threads is None:
                self._pool.check()
                threads: Threads = import_module("clew.store.threads").Threads(
                    self._address.pool_size
                )
                self._threads = threads
            return self._threads


def _patiently(work: Callable[[], T], patience: float) -> T:
    """Do it; again while the server is away, restarts or has no connection left. What it refuses
    for good (a password, a schema) is raised at once."""
    end, pause = monotonic() + patience, FIRST_PAUSE
    while True:
        try:
            return work()
        except Distrusted:
            raise
        except (Contention, Unavailable):
            if monotonic() + pause > end:
                raise
        sleep(pause * random.uniform(0.5, 1.0))
        pause = min(pause * 2, LONGEST_PAUSE)


def _end(connection: Session) -> None:
    """End a transaction if one is open. Never raises: a connection that cannot is closed."""
    try:
        if connection.info.transaction_status != pq.TransactionStatus.IDLE:
            # Not by psycopg, which has the server forget what is prepared after that.
            connection.pgconn.exec_(b"ROLLBACK")
    except psycopg.Error:
        connection.close()
