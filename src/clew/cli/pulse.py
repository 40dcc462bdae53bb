"""Signs of life for the service manager, where it wants them (WATCHDOG_USEC).

They come from the event loop that runs the turns: one that stands still sends none, and the manager
starts the process again. The library sends none by itself: only who owns a process can say that it
lives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from clew import service

OFTEN = 3
"""Signs within the time that the manager waits for one."""
T = TypeVar("T")


async def living(work: Coroutine[Any, Any, T]) -> T:
    """The outcome of all that the process does; meanwhile the manager is told that its loop goes
    round."""
    seconds = service.watchdog()
    if seconds is None:
        return await work
    beat = asyncio.create_task(_beat(seconds / OFTEN))
    try:
        return await work
    finally:
        beat.cancel()
        with suppress(asyncio.CancelledError):
            await beat


async def _beat(seconds: float) -> None:
    while True:
        service.tell(WATCHDOG=1)
        await asyncio.sleep(seconds)
