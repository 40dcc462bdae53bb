"""Hosts for tests: a real store, a scripted provider, tools that are written down as functions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import clew.aio
from clew.clock import Clock
from clew.config.values import ChatConfig, Config
from clew.domain.messages import Message
from clew.domain.parts import ToolCall, ToolResult
from clew.domain.turns import Usage
from clew.host.events import Event
from clew.host.host import Host
from clew.host.publisher import Channel
from clew.providers.api import Provider, Reply, ToolSpec
from clew.providers.registry import Providers
from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.profile import AsyncProfile
from clew.testing.provider import ScriptedProvider
from clew.tools.api import Tool, ToolCallContext, ToolOutput, Verdict
from clew.tools.toolbox import Toolbox

QUIET = Config(chat=ChatConfig(titles=False))
"""No model is asked for titles: each answer of a script is one of a turn."""
Function = Callable[[Mapping[str, Any]], Awaitable[str] | str]


class Made:
    """A tool that is a function; `calls` counts."""

    origin = "tests"

    def __init__(
        self, name: str, function: Function, *, default: Verdict = "allow", read_only: bool = False
    ) -> None:
        self.spec = ToolSpec(name, f"{name} of the tests", {"type": "object", "properties": {}})
        self.default: Verdict = default
        self.read_only = read_only
        self.calls: list[Mapping[str, Any]] = []
        self._function = function

    async def call(self, arguments: Mapping[str, Any], where: ToolCallContext) -> ToolOutput:
        self.calls.append(arguments)
        answer = self._function(arguments)
        return ToolOutput(answer if isinstance(answer, str) else await answer)


class Shelf:
    """Where the tools of a test come from."""

    name = "tests"

    def __init__(self, *tools: Tool) -> None:
        self._tools = tools

    async def tools(self) -> Sequence[Tool]:
        return self._tools

    async def close(self) -> None:
        """Nothing to close."""


@asynccontextmanager
async def hosted(
    place: Path | str, provider: Provider, *tools: Tool, config: Config = QUIET,
    watch: Callable[[str], None] | None = None, more: Sequence[Provider] = (),
    channels: Mapping[str, Channel] | None = None, clock: Clock | None = None,
) -> AsyncGenerator[tuple[Host, AsyncProfile]]:  # fmt: skip
    """A host on a store at a place, with a provider and tools."""
    async with clew.aio.open(place, clock=clock) as store:
        profile = store.profile("me")
        providers = Providers(config, lambda name, section: None)
        for each in (provider, *more):
            providers.add(each)
        toolbox = Toolbox(config.tools, sources=[Shelf(*tools)])
        async with Host(
            profile, providers, toolbox, config, watch=watch, channels=channels
        ) as host:
            yield host, profile


def calls(*asked: tuple[str, str] | tuple[str, str, str]) -> Reply:
    """An answer that calls tools: (id, name) or (id, name, arguments as JSON)."""
    parts = tuple(ToolCall(each[0], each[1], each[2] if len(each) > 2 else "{}") for each in asked)
    return Reply(parts=parts, stop="tool_calls", usage=Usage(input=100, output=10))


async def log(conv: AsyncConversation) -> list[Message]:
    return [message async for message in conv.messages()]


async def told(conv: AsyncConversation) -> list[str]:
    """The log in short: who, and what."""
    return [short(message) for message in await log(conv)]


def short(message: Message) -> str:
    pieces = [message.text] if message.text else []
    for part in message.parts:
        if isinstance(part, ToolCall):
            pieces.append(f"{part.name}()")
        elif isinstance(part, ToolResult):
            pieces.append(str(part.content))
    mark = "~" if (message.meta or {}).get("partial") else ""
    return f"{message.role}: {' '.join(pieces)}{mark}"


def kinds(events: Sequence[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


async def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait until something is so; TimeoutError when it takes longer than anything should."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


__all__ = ["ScriptedProvider"]
