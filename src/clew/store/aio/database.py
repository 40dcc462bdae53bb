"""What the asyncio handles share: units of work on the loop's side of the backend."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

from clew.errors import ClewError
from clew.store import dictionary
from clew.store.backend import Backend, Unit
from clew.store.database import Database
from clew.store.kit import Kit

P = ParamSpec("P")
T = TypeVar("T")


async def hop(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work of several units in a thread. It cannot be stopped half-way: a cancelled
    caller waits for its end, and only then is cancelled."""
    loop = asyncio.get_running_loop()
    future = loop.run_in_executor(None, lambda: work(*args, **kwargs))
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait((future,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        future.exception()  # asked for, so that nobody is told that it was never retrieved
        raise cancelled
    return future.result()


class AsyncDatabase:
    """One open store, as its asyncio handles see it: `Database`, awaited.

    Each unit of work is one hop: writes join the group commit, reads run in the backend's threads.
    """

    def __init__(self, backend: Backend, kit: Kit) -> None:
        self.blocking = Database(backend, kit)
        self.backend = backend
        self.kit = kit
        self._writes = 0

    async def write(self, unit: Unit[T]) -> T:
        """Run a unit of work; returns once it is durable. Cancelled before it has begun, it is
        withdrawn; after that, its outcome is awaited first."""
        result = await self.backend.write_async(unit)
        self._writes += 1
        if self._writes % dictionary.EVERY == 0:
            with suppress(ClewError):  # the unit is durable; training is tried again later
                await hop(dictionary.train_if_due, self.backend, self.kit)
        return result

    async def wait(self, token: int, seconds: float) -> None:
        """Wait until somebody may have committed."""
        await self.backend.wait_async(token, seconds)

    async def read(self, reader: Unit[T]) -> T:
        """Run a reader on one snapshot."""
        return await self.backend.read_async(reader)
