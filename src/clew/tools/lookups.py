"""recall and search for a loop of asyncio: they read the store, so they run in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from clew.compaction import tools as schemas
from clew.domain.search import SearchPage, SearchQuery
from clew.store.aio.handles import blocking
from clew.store.aio.profile import AsyncProfile
from clew.tools.api import ToolCallContext, ToolOutput

_THREADS = 4
_LONGEST = 60.0
"""Seconds that one question to the index may take."""


class Lookups:
    """Runs recall and search, in threads of its own: a search waits for others, of the loop's."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    async def call(
        self, name: str, arguments: Mapping[str, Any], where: ToolCallContext
    ) -> ToolOutput:
        """What the tool says; a text that begins with "Error:" is one."""
        profile = _Searching(where.profile, asyncio.get_running_loop())
        conv = blocking(where.conversation)
        text = await self._hop(partial(schemas.call, conv, profile, name, dict(arguments)))
        return ToolOutput(text, is_error=text.startswith("Error:"))

    def close(self) -> None:
        """Let the threads go; what still runs in them ends by itself."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    async def _hop(self, work: Callable[[], str]) -> str:
        """Run in a thread. It cannot be stopped half-way: who is cancelled waits for its end."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="clew-recall")
        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait({future})
            if not future.cancelled():
                future.exception()  # asked for, so that nobody is told that it was not
            raise


class _Searching:
    """A profile's search, for code that blocks in a thread while the loop runs."""

    def __init__(self, profile: AsyncProfile, loop: asyncio.AbstractEventLoop) -> None:
        self._profile, self._loop = profile, loop

    def search(self, query: SearchQuery, /) -> SearchPage:
        asked = asyncio.run_coroutine_threadsafe(self._profile.search(query), self._loop)
        return asked.result(_LONGEST)
