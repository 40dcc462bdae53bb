"""Side work: what a host does beside the turns, such as titles and reviews.

Nothing waits for it and nothing fails with it. A review reads a snapshot, whose type has no method
that writes: it can neither append nor compact (S28).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import Struct

from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.reader import AsyncConversationReader

MOST = 8
"""Pieces of side work at once; what comes beyond is left undone."""
KEPT = 20
"""Failures that are remembered."""
GRACE = 2.0
"""Seconds that `close` waits for work to end by itself."""

Work = Coroutine[Any, Any, Any]
Review = Callable[[AsyncConversationReader], Work]


class SideFailure(Struct, frozen=True):
    """Work that failed. `why`: the kind of the error; its text may hold what was said."""

    name: str
    why: str


class SideWork:
    """Work by name: while one of a name runs, another of it is not begun."""

    def __init__(self, failed: Callable[[SideFailure], None] = lambda _: None) -> None:
        """`failed` is told of each failure, on the loop."""
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._failed, self._closed = failed, False
        self.failures: deque[SideFailure] = deque(maxlen=KEPT)
        """The newest ones."""

    @property
    def running(self) -> tuple[str, ...]:
        """Names."""
        return tuple(self._tasks)

    def start(self, name: str, work: Work) -> bool:
        """Begin it. False: one of this name runs, there are too many, or all is closed; the work
        is dropped then."""
        if self._closed or name in self._tasks or len(self._tasks) >= MOST:
            work.close()
            return False
        task = asyncio.get_running_loop().create_task(work, name=f"clew {name}")
        self._tasks[name] = task
        task.add_done_callback(lambda done: self._ended(name, done))
        return True

    async def stop(self, name: str) -> bool:
        """End the work of a name, and wait for that. False: none runs."""
        task = self._tasks.get(name)
        if task is None:
            return False
        task.cancel()
        await asyncio.wait((task,))
        return True

    async def review(self, name: str, conv: AsyncConversation, work: Review) -> bool:
        """Begin work that reads a conversation as it is now."""
        return self.start(name, work(await conv.snapshot()))

    async def wait(self) -> None:
        """Until nothing runs."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    async def close(self, grace: float = GRACE) -> None:
        """Take no more; end what still runs after `grace` seconds, and wait for that."""
        self._closed = True
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=grace)
        for task in tuple(self._tasks.values()):
            task.cancel()
        await self.wait()

    def _ended(self, name: str, task: asyncio.Task[Any]) -> None:
        del self._tasks[name]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            failure = SideFailure(name, type(error).__name__)
            self.failures.append(failure)
            self._failed(failure)
