"""The callers that are tasks of an event loop.

Apart from commit.py because asyncio takes longer to import than a command needs to list its
conversations: this module is loaded with the first task.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import TypeVar

from clew.store.backend import Unit
from clew.store.caller import DONE, Caller, resolve
from clew.store.commit import Committer

T = TypeVar("T")

READ_THREADS = 4


class Tasks:
    """Reads and writes of one store for any number of event loops."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._loops: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()
        self._pool = ThreadPoolExecutor(READ_THREADS, "clew-read")

    async def write(self, unit: Unit[T]) -> T:
        """As `Committer.write`. Cancelled while queued, the unit is withdrawn; in a batch, its
        outcome is awaited before CancelledError goes on."""
        me = Caller(unit)
        me.loop = loop = asyncio.get_running_loop()
        me.future = loop.create_future()
        me.since = monotonic()
        line = self._committer.line
        cancelled: asyncio.CancelledError | None = None
        try:
            self._committer.join_task(me)
            self._watch(loop)
            while me.state != DONE:
                try:
                    await me.future
                except asyncio.CancelledError as error:
                    if line.withdraw(me):
                        raise
                    cancelled = error
                    me.future = loop.create_future()  # `resolve` runs in this loop: no race
        except BaseException:
            line.withdraw(me)
            raise
        if cancelled is not None:
            raise cancelled
        return me.outcome()

    async def read(self, read: Callable[[Unit[T]], T], reader: Unit[T]) -> T:
        """Read in a small pool of threads. Cancelled, the read goes on and nobody hears of it."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, read, reader)

    async def sleep(self, seconds: float) -> None:
        """Let the loop go on."""
        await asyncio.sleep(seconds)

    def close(self) -> None:
        """Wait for the reads under way."""
        self._pool.shutdown()

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look after a loop's patience: one timer per loop, because one per unit costs too much."""
        if loop not in self._loops:
            self._loops.add(loop)
            loop.call_later(self._committer.patience, self._expire, loop)

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        """Busy for the tasks whose patience has ended, and a look at the others when theirs does.
        Runs in the loop, so nobody else resolves its futures meanwhile."""
        due = monotonic() - self._committer.patience
        late, following = self._committer.line.late(loop, due, self._committer.busy)
        resolve(late)
        if following:
            loop.call_later(following - due, self._expire, loop)
        else:
            self._loops.discard(loop)
