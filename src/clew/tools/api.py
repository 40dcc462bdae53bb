"""What a tool is, and what calling one gives."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from clew.domain.parts import File, Image, Text, Unknown
from clew.providers.api import ToolSpec
from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.profile import AsyncProfile

Verdict = Literal["allow", "ask", "deny"]
"""What the policy says of a call."""


class ToolCallContext(Struct, frozen=True):
    """Where a tool is called. `stop` is set when the person stops the turn."""

    conversation: AsyncConversation
    profile: AsyncProfile
    stop: asyncio.Event
    call_id: str = ""


class ToolOutput(Struct, frozen=True):
    """What a tool answered. An error is an output, too: the model reads it."""

    content: str | tuple[Text | Image | File | Unknown, ...]
    is_error: bool = False


class Tool(Protocol):
    """A tool. `read_only`: calling it twice does no harm, so that it may be called again after a
    crash; `default` is the policy where the configuration says nothing."""

    spec: ToolSpec
    read_only: bool
    default: Verdict
    origin: str
    """"built-in", or the name of the MCP server."""

    async def call(self, arguments: Mapping[str, Any], where: ToolCallContext) -> ToolOutput:
        """Run it. May raise: the toolbox makes an error result of that."""
        ...


class Source(Protocol):
    """Where tools come from: the built-ins, or one MCP server."""

    name: str

    async def tools(self) -> Sequence[Tool]:
        """What it offers now. Raises ToolsUnavailable when it cannot be reached."""
        ...

    async def close(self) -> None: ...
