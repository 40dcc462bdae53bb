"""Requests to a provider, made of entries without a store."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import aclosing
from typing import Any, cast

from clew.context.build import Context
from clew.context.entries import Entry
from clew.context.sections import Item
from clew.domain.messages import Role
from clew.domain.parts import Part, Text, ToolCall, ToolResult
from clew.providers.api import Body, Model, Reply, Request, StreamEvent, ToolSpec

SEARCH = ToolSpec(
    "search", "Finds notes.", {"type": "object", "properties": {"q": {"type": "string"}}}
)


def no_blob(digest: str) -> bytes:
    raise KeyError(digest)


def user(text: str, *more: Part) -> Entry:
    return Entry(Role.USER, (Text(text), *more))


def assistant(*parts: Part | str) -> Entry:
    made = (Text(part) if isinstance(part, str) else part for part in parts)
    return Entry(Role.ASSISTANT, tuple(made))


def result(id: str, text: str) -> Entry:
    return Entry(Role.TOOL, (ToolResult(id, text),))


def step(id: str, name: str = "search", arguments: str = "{}", text: str = "Found.") -> list[Entry]:
    """A call and its result."""
    return [assistant(ToolCall(id, name, arguments)), result(id, text)]


def context_of(entries: Sequence[Entry], prompt: str | None, model: str) -> Context:
    return Context(
        prompt=prompt, toolset=None, model=model, generation=0, up_to_seq=len(entries),
        items=tuple(Item(entry, "live", 1, 1) for entry in entries), system=1, tokens=9, bytes=9,
        limit=1000, expected=9, alternates=False,
    )  # fmt: skip


def asked(
    *entries: Entry, prompt: str | None = "Be brief.", model: str = "test-model",
    window: int = 8000, images: bool = True, can_call: bool = True, **more: Any,
) -> Request:  # fmt: skip
    """A request; "Hello?" when nothing is said."""
    context = context_of(entries or (user("Hello?"),), prompt, model)
    named = Model(name=model, provider="test", window=window, images=images, tools=can_call)
    return Request(model=named, context=context, blob=no_blob, **more)


async def streamed(provider: Any, body: Body) -> tuple[list[StreamEvent], Reply]:
    """All deltas, and the reply."""
    events: list[StreamEvent] = []
    found = cast(AsyncGenerator[StreamEvent], provider.stream(body))
    async with aclosing(found) as stream:
        async for event in stream:
            events.append(event)
    last = events.pop()
    assert isinstance(last, Reply)
    assert not [event for event in events if isinstance(event, Reply)]
    return events, last


async def closing(provider: Any, doing: Coroutine[Any, Any, Any]) -> Any:
    """What is done with a provider, which is closed at the end."""
    try:
        return await doing
    finally:
        await provider.close()
