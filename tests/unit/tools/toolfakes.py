"""Tools and sources that a test makes: real ones as far as the toolbox can see."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, cast

from msgspec import Struct

from clew.domain.parts import ToolCall
from clew.providers.api import ToolSpec
from clew.tools.api import Tool, ToolCallContext, ToolOutput, Verdict
from clew.tools.errors import ToolsUnavailable

Work = Callable[[Mapping[str, Any]], Awaitable[ToolOutput]]
ANY: dict[str, Any] = {"type": "object", "properties": {}}


async def echo(arguments: Mapping[str, Any]) -> ToolOutput:
    return ToolOutput(str(dict(arguments)))


class Made(Struct):
    """A tool of a function."""

    spec: ToolSpec
    work: Work = echo
    read_only: bool = False
    default: Verdict = "ask"
    origin: str = "made"

    async def call(self, arguments: Mapping[str, Any], where: ToolCallContext) -> ToolOutput:
        return await self.work(arguments)


def made(name: str, work: Work = echo, **more: Any) -> Made:
    return Made(ToolSpec(name, "", more.pop("schema", ANY)), work, **more)


class Given:
    """A source of given tools, which can be away."""

    def __init__(self, *tools: Tool, name: str = "made") -> None:
        self.name, self.offered = name, tools
        self.away = False
        self.asked = 0
        self.closed = False

    async def tools(self) -> tuple[Tool, ...]:
        self.asked += 1
        if self.away:
            raise ToolsUnavailable("the shop is shut.", origin=self.name)
        return self.offered

    async def close(self) -> None:
        self.closed = True


def where(stop: asyncio.Event | None = None) -> ToolCallContext:
    """A place for tools that do not look at it."""
    nothing = cast(Any, None)
    return ToolCallContext(nothing, nothing, stop or asyncio.Event())


def asking(name: str, arguments: str = "{}") -> ToolCall:
    return ToolCall("call-1", name, arguments)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 60))
