"""A provider as the summariser of a compaction.

The request is the conversation's own next one with the instruction at its end, rendered by the same
provider: so it begins as the requests before it, whatever the API, and the provider's cache holds
nearly all of it. A compaction runs in a thread; the provider is asked on the host's loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from msgspec.structs import replace

from clew.compaction.summarize import (
    SummaryFailed,
    SummaryReply,
    SummaryRequest,
    SummaryStalled,
    SummaryStopped,
)
from clew.context.build import Context
from clew.context.entries import Entry
from clew.context.measure import FRAME, FRAME_BYTES
from clew.context.sections import Item
from clew.context.tokens import count_text
from clew.domain.messages import Role
from clew.domain.parts import Text, plain_text
from clew.providers.api import Model, Provider, Reply, Request

POLL = 0.05
"""Seconds between two looks at whether somebody stopped the compaction."""


class ModelSummarizer:
    """A `Summarizer` of one conversation.

    `asked` gives the request that the conversation's next model call would be; it is called in the
    compaction's thread and may read the store. `model` may be another than that one's: it is sent
    no settings then. `loop`: where the provider lives.
    """

    def __init__(
        self, provider: Provider, model: Model, loop: asyncio.AbstractEventLoop,
        asked: Callable[[], Request],
    ) -> None:  # fmt: skip
        self._provider, self._model, self._loop, self._asked = provider, model, loop, asked

    @property
    def model(self) -> str:
        """As calls are noted."""
        return self._model.name

    def __call__(self, request: SummaryRequest) -> SummaryReply:
        """Ask, and wait no longer than the request's patience. Raises SummaryStopped, and what the
        provider raises."""
        body = self._provider.render(self._request(request))
        if self._loop.is_closed():
            raise SummaryFailed("the host is closed")
        work = self._provider.complete(body)
        reply = _awaited(asyncio.run_coroutine_threadsafe(work, self._loop), request)
        cost = reply.cost
        if cost is None and self._model.price is not None:
            cost = self._model.price.cost(reply.usage)
        return SummaryReply(
            text=plain_text(reply.parts), finish=reply.stop, usage=reply.usage, cost=cost
        )

    def _request(self, request: SummaryRequest) -> Request:
        """The conversation's own, or what another model takes of it."""
        own, model = self._asked(), self._model
        context = with_instruction(own.context, _instruction(request))
        own = replace(own, context=context, max_tokens=request.max_tokens)
        if own.model == model:
            return own
        return replace(
            own, model=model, context=replace(context, model=model.name), settings={},
            tools=own.tools if model.tools else (),
        )  # fmt: skip


def with_instruction(context: Context, text: str) -> Context:
    """A context with one message of a user at its end."""
    tokens = count_text(text) + FRAME
    size = len(text.encode("utf-8", "replace")) + FRAME_BYTES
    item = Item(Entry(Role.USER, (Text(text),)), "tail", tokens, size)
    return replace(
        context, items=(*context.items, item), tokens=context.tokens + tokens,
        expected=context.expected + tokens, bytes=context.bytes + size,
    )  # fmt: skip


def _instruction(request: SummaryRequest) -> str:
    """The last message of the request; the others are those of the conversation."""
    content: Any = request.messages[-1].get("content") if request.messages else None
    if not isinstance(content, str):
        raise SummaryFailed("the request ends without an instruction")
    return content


def _awaited(future: Future[Reply], request: SummaryRequest) -> Reply:
    """The answer. A stop, or the end of patience, ends the call."""
    until = time.monotonic() + request.patience
    while True:
        try:
            return future.result(POLL)
        except TimeoutError:
            if future.done():
                raise
        if request.cancelled():
            future.cancel()
            raise SummaryStopped("stopped while the summary was being written")
        if time.monotonic() > until:
            future.cancel()
            raise SummaryStalled(f"no answer within {request.patience:g} s")
