"""Counts what other processes commit: a LISTEN on a connection of its own, and a look by itself
every second for what nobody told, or where a pooler does not let us listen."""

from __future__ import annotations

import asyncio
import selectors
import socket
import threading
from contextlib import closing, suppress

import psycopg

from clew.errors import ClewError
from clew.store.address import Address
from clew.store.postgres_driver import Connection, Demoted, connect, query

LOOK = 1.0
"""Seconds between two looks by itself, and before connecting again."""


class Listener:
    """A counter that moves, at the latest after LOOK, when anybody has committed.

    Its thread begins with the first question.
    """

    def __init__(self, address: Address, channel: str, patience: float) -> None:
        self._address, self._channel, self._patience = address, channel, patience
        self._changed = threading.Condition()
        self._count = 0
        self._seen: object = None
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._here, self._there = socket.socketpair()

    def count(self) -> int:
        """Differs whenever something was committed since it was last asked."""
        with self._changed:
            # Also anew, should one have died of what nobody thought of: followers ask each second.
            if not self._stopping and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._run, name="clew-listen", daemon=True)
                self._thread.start()
            return self._count

    def wait(self, count: int, seconds: float) -> None:
        """Return as soon as the counter is another than `count`, or after so long."""
        with self._changed:
            self._changed.wait_for(lambda: self._count != count or self._stopping, seconds)

    async def wait_async(self, count: int, seconds: float) -> None:
        """As `wait`, without a thread."""
        waiter = (asyncio.get_running_loop(), asyncio.Event())
        with self._changed:
            if self._count != count or self._stopping:
                return
            self._waiting.add(waiter)
        try:
            await asyncio.wait_for(waiter[1].wait(), seconds)
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(waiter)

    def close(self) -> None:
        """End the thread; nobody waits any longer."""
        self._stopping = True
        self._moved()
        self._there.close()  # which the thread sees
        if self._thread is not None:
            self._thread.join()
        self._here.close()

    def forked(self) -> None:
        """In the child of a fork: the thread is not here, and its locks may be held for ever."""
        self._thread, self._stopping = None, True
        self._changed, self._waiting = threading.Condition(), set()

    def _moved(self) -> None:
        with self._changed:
            self._count += 1
            self._changed.notify_all()
            waiting, self._waiting = self._waiting, set()
        for loop, event in waiting:
            with suppress(RuntimeError):  # the loop is closed: nobody is left to be told
                loop.call_soon_threadsafe(event.set)

    def _run(self) -> None:
        while not self._stopping:
            try:
                with closing(connect(self._address, self._patience)) as connection:
                    self._listen(connection)
            except (ClewError, psycopg.Error, OSError):  # OSError: no descriptor is left
                with self._changed:
                    self._changed.wait_for(lambda: self._stopping, LOOK)

    def _listen(self, connection: Connection) -> None:
        heard = None if self._address.pooled else connection
        if heard is not None:
            try:
                query(heard, f'LISTEN "{self._channel}"')
            except Demoted:  # a standby: nothing is told there
                heard = None
        while not self._stopping:
            self._look(connection)
            if heard is not None and list(heard.notifies(timeout=0)):  # also what came with a look
                self._moved()
            self._pause(heard)

    def _pause(self, connection: Connection | None) -> None:
        """Wait until the connection has something to read, the store is closed, or LOOK is over."""
        with selectors.DefaultSelector() as selector:  # select() ends at descriptor 1024
            selector.register(self._here, selectors.EVENT_READ)
            if connection is not None:
                selector.register(connection, selectors.EVENT_READ)
            selector.select(LOOK)

    def _look(self, connection: Connection) -> None:
        """Compare what is committed with what was at the last look. The whole snapshot, not its
        highest number: an older transaction may commit after a newer one."""
        seen = query(connection, "SELECT CAST(pg_current_snapshot() AS TEXT)")
        if seen != self._seen:
            self._seen = seen
            self._moved()
