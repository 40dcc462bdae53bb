"""What the asyncio handles share: units of work on the loop's side of the backend."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

from clew.errors import ClewError, StoreError
from clew.store import dictionary
from clew.store.backend import Backend, Unit
from clew.store.codec import DictionaryGone
from clew.store.database import Database
from clew.store.kit import Kit
from clew.store.spool.accepting import Accepting, is_diverted
from clew.store.spool.spool import Spool

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

    def __init__(self, backend: Backend, kit: Kit, spool: Spool | None = None) -> None:
        self.blocking = Database(backend, kit, spool)
        self.backend = backend
        self.kit = kit
        self.spool = spool
        self._writes = 0

    async def write(self, unit: Unit[T]) -> T:
        """Run a unit of work; returns once it is durable. Cancelled before it has begun, it is
        withdrawn; after that, its outcome is awaited first."""
        if await self._pending():
            await hop(self.blocking.bring_in)
        return await self._write(unit)

    async def accept(self, messages: Accepting[T]) -> T:
        """As Database.accept: files are written in a thread."""
        if self.spool is None:
            return await self._write(messages.unit())
        if await self._pending():
            await hop(self.blocking.bring_in)
            before = await hop(self.blocking.behind, messages)
            if before is not None:
                return await hop(self.blocking.divert, messages, before)
        try:
            return await self._write(messages.unit())
        except StoreError as error:
            if not (is_diverted(error) and messages.has_messages):
                raise
            return await hop(self.blocking.divert, messages, error)

    async def _pending(self) -> bool:
        """Whether messages wait in the spool: a glance, but for the first time."""
        spool = self.spool
        if spool is None:
            return False
        return spool.pending() if spool.opened else await hop(spool.pending)

    async def _write(self, unit: Unit[T]) -> T:
        try:
            result = await self.backend.write_async(unit)
        except DictionaryGone:
            await hop(self.kit.codec.learn)  # the same call packs with the new one
            raise
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

    def close(self) -> None:
        """As Database.close."""
        self.blocking.close()
