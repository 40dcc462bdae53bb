"""Opening a store from asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path
from types import TracebackType
from typing import Any

from clew.clock import Clock
from clew.config import Limits
from clew.ids import Ids
from clew.store.aio.database import hop
from clew.store.aio.store import AsyncStore
from clew.store.opening import open_parts


class Opening:
    """A store to be opened: await it, or use it in `async with`, which closes it at the end."""

    def __init__(
        self, store: str | Path | None, clock: Clock | None, ids: Ids | None,
        limits: Limits | None, spool: bool = True,
    ) -> None:  # fmt: skip
        self._wanted, self._spool = (store, clock, ids, limits), spool
        self._store: AsyncStore | None = None

    def __await__(self) -> Generator[Any, None, AsyncStore]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncStore:
        return await self._open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if self._store is not None:
            await self._store.close()

    async def _open(self) -> AsyncStore:
        def make() -> AsyncStore:
            parts = open_parts(*self._wanted)
            self._store = AsyncStore(parts, spool=self._spool)
            parts.kit.codec.learn()  # here, because the first append encodes on the event loop
            return self._store

        try:
            return await hop(make)
        except asyncio.CancelledError:
            if self._store is not None:
                await self._store.close()
            raise


def open_store(
    store: str | Path | None = None, *, clock: Clock | None = None, ids: Ids | None = None,
    limits: Limits | None = None, spool: bool = True,
) -> Opening:  # fmt: skip
    """Open a store, as `clew.open` does: `store = await open(path)`, to be closed by its `close()`,
    or `async with open(path) as store`."""
    return Opening(store, clock, ids, limits, spool)
