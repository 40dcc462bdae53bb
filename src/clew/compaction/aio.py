"""Compactor for asyncio: the same engine, in a thread, with a stop that cancellation sets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from clew.compaction.engine import Compactor, Preview
from clew.compaction.outcome import Outcome
from clew.compaction.plan import Nothing
from clew.context.build import Context
from clew.domain.compactions import Compaction, Trigger
from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.database import hop
from clew.store.aio.handles import blocking

T = TypeVar("T")


class AsyncCompactor:
    """A `Compactor`, awaited: `AsyncCompactor(Compactor(...))`. Its summariser is called in a
    thread. Cancelling a task stops its compaction, unless the commit was first; the task ends when
    that is decided."""

    def __init__(self, engine: Compactor) -> None:
        self._engine = engine

    async def context(
        self, conv: AsyncConversation, *, notices: Sequence[str] = (),
        told: Callable[[Outcome], None] | None = None,
    ) -> Context:  # fmt: skip
        """As `Compactor.context`; `told` is called in its thread."""
        stop = threading.Event()
        here = blocking(conv)
        return await _stoppable(
            lambda: self._engine.context(here, stop=stop, notices=notices, told=told), stop
        )

    async def peek(self, conv: AsyncConversation, *, notices: Sequence[str] = ()) -> Context:
        """As `Compactor.peek`."""
        return await hop(self._engine.peek, blocking(conv), notices=notices)

    async def chat(self, conv: AsyncConversation, context: Context) -> list[dict[str, Any]]:
        """As `Context.chat`: images are read from the store."""
        return await hop(context.chat, blocking(conv).blob)

    async def responses(self, conv: AsyncConversation, context: Context) -> list[dict[str, Any]]:
        """As `Context.responses`."""
        return await hop(context.responses, blocking(conv).blob)

    async def anthropic(self, conv: AsyncConversation, context: Context) -> list[dict[str, Any]]:
        """As `Context.anthropic`."""
        return await hop(context.anthropic, blocking(conv).blob)

    async def plan(
        self, conv: AsyncConversation, *, target: int | None = None
    ) -> Preview | Nothing:
        """As `Compactor.plan`."""
        return await hop(self._engine.plan, blocking(conv), target=target)

    async def compact(
        self, conv: AsyncConversation, trigger: Trigger = "user", *, target: int | None = None,
        stop: threading.Event | None = None,
    ) -> Outcome:  # fmt: skip
        """As `Compactor.compact`."""
        event = stop or threading.Event()
        return await _stoppable(
            lambda: self._engine.compact(blocking(conv), trigger, target=target, stop=event), event
        )

    async def cancel(self, conv: AsyncConversation) -> list[int]:
        """As `Compactor.cancel`."""
        return await hop(self._engine.cancel, blocking(conv))

    async def undo(self, conv: AsyncConversation) -> Compaction:
        """As `Compactor.undo`."""
        return await hop(self._engine.undo, blocking(conv))


async def _stoppable(work: Callable[[], T], stop: threading.Event) -> T:
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait((running,))
        raise
