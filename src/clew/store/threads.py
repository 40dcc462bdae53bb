"""Blocking work of a store for event loops: in a few threads, awaited to its end.

Apart from the backend because asyncio is slow to import: this module is loaded with the first task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """At most so many calls at once, from any number of event loops."""

    def __init__(self, most: int) -> None:
        self._pool = ThreadPoolExecutor(most, "clew")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run it in a thread. Cancelled before it has begun, it never runs; after that, its outcome
        is awaited before CancelledError goes on: it cannot be stopped, and may be durable."""
        job = self._pool.submit(work, *args, **kwargs)
        future = asyncio.wrap_future(job)
        cancelled: asyncio.CancelledError | None = None
        while not future.done():
            try:
                await asyncio.wait((future,))
            except asyncio.CancelledError as error:
                if job.cancel():
                    raise
                cancelled = error
        if cancelled is not None:
            future.exception()  # asked for, so that nobody is told that it was never retrieved
            raise cancelled
        return future.result()

    def close(self) -> None:
        """Wait for the calls under way."""
        self._pool.shutdown()
