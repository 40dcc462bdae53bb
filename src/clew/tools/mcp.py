"""The tools of one MCP server. Loaded by name when they are first asked for (server.py)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import mcp.types
from mcp.shared.exceptions import MCPError
from mcp.types import CONNECTION_CLOSED, METHOD_NOT_FOUND
from msgspec import Struct

from clew.config.values import McpConfig
from clew.errors import InputError
from clew.providers.api import ToolSpec
from clew.tools.api import Tool, ToolCallContext, ToolOutput, Verdict
from clew.tools.backoff import Backoff
from clew.tools.errors import ToolFailed, ToolsUnavailable
from clew.tools.mcp_answers import answer
from clew.tools.mcp_link import Link
from clew.tools.mcp_reasons import reason
from clew.tools.names import tool_name
from clew.tools.variables import expand, hide

T = TypeVar("T")
_PAGES = 100
_LONGEST = 1000
"""Characters of an error."""


class McpTool(Struct):
    """A tool of a server. One that says it only reads may be called without asking."""

    spec: ToolSpec
    read_only: bool
    default: Verdict
    origin: str
    tool: str
    """Its own name, at the server."""
    source: McpSource

    async def call(self, arguments: Mapping[str, Any], where: ToolCallContext) -> ToolOutput:
        return await self.source.call(self.tool, dict(arguments))


class McpSource:
    """A server, and the connection to it: made when it is needed, made again when it broke."""

    def __init__(
        self, name: str, config: McpConfig, environment: Mapping[str, str] = os.environ
    ) -> None:
        self.name = name
        self.changed = False
        """Whether the server said that its tools have changed; whoever looks resets it."""
        self._config, self._environment = config, environment
        self._secrets: tuple[str, ...] = ()
        self._links: list[Link] = []
        """The newest last; those before it are ending."""
        self._lock, self._closed = asyncio.Lock(), False
        self._backoff = Backoff()
        self.away: ToolsUnavailable | None = None
        """Why the last try to connect failed."""

    async def tools(self) -> tuple[Tool, ...]:
        """What it offers now; connects at once, however often that failed before. Raises
        ToolsUnavailable, also when it does not say."""
        self._backoff.worked()
        try:
            listed = await self._with_link(self._list)
        except ToolFailed as error:
            raise self._unavailable(f"it does not say what it offers: {error}") from error
        return tuple({tool.name: self._tool(tool) for tool in reversed(listed)}.values())[::-1]

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolOutput:
        """Call a tool by its own name. Raises ToolsUnavailable, ToolFailed."""
        return answer(await self._with_link(lambda link: link.client.call_tool(tool, arguments)))

    async def close(self) -> None:
        """Stop the server, or leave it."""
        self._closed = True
        await asyncio.gather(*(link.close() for link in self._links))

    async def _with_link(self, work: Callable[[Link], Awaitable[T]]) -> T:
        """Do something with the connection; once more with a new one where the server has not
        looked at it, because it no longer knew the session."""
        try:
            return await self._once(work)
        except MCPError:  # forgotten: a new session is made
            try:
                return await self._once(work)
            except MCPError as error:
                raise self._failed(str(error)) from None

    async def _once(self, work: Callable[[Link], Awaitable[T]]) -> T:
        link = await self._linked()
        try:
            return await work(link)
        except MCPError as error:
            if _forgotten(error, link):
                link.end()
                raise
            if error.code == CONNECTION_CLOSED:
                link.end()
                raise await self._broke(link) from None
            raise self._failed(reason(self._config, error, link.status)) from None
        except TimeoutError:
            raise self._failed(f"no answer in {self._config.timeout:g} seconds.") from None
        except Exception as error:
            raise self._failed(f"{type(error).__name__}: {error}") from error

    async def _list(self, link: Link) -> list[mcp.types.Tool]:
        found: list[mcp.types.Tool] = []
        cursor: str | None = None
        for _ in range(_PAGES):
            try:
                async with asyncio.timeout(self._config.timeout):
                    page = await link.client.list_tools(cursor=cursor)
            except MCPError as error:
                if error.code == METHOD_NOT_FOUND:
                    return found
                raise
            found += page.tools
            cursor = page.next_cursor
            if not cursor:
                break
        return found

    def _tool(self, tool: mcp.types.Tool) -> McpTool:
        reads = tool.annotations is not None and tool.annotations.read_only_hint is True
        schema: dict[str, Any] = {"type": "object", "properties": {}, **tool.input_schema}
        return McpTool(
            spec=ToolSpec(tool_name(self.name, tool.name), tool.description or "", schema),
            read_only=reads, default="allow" if reads else "ask", origin=self.name,
            tool=tool.name, source=self,
        )  # fmt: skip

    async def _linked(self) -> Link:
        """The living connection, or a new one. Raises ToolsUnavailable; at once, when the last try
        is not long ago."""
        async with self._lock:
            if self._links and self._links[-1].alive:
                return self._links[-1]
            if self._closed:
                raise self._unavailable("it was closed.")
            if self.away is not None and self._backoff.left():
                raise self.away
            try:
                link = await self._open()
            except ToolsUnavailable as error:
                self._backoff.failed()
                self.away = error
                raise
            self._backoff.worked()
            self.away = None
            return link

    async def _open(self) -> Link:
        try:
            config, self._secrets = expand(self.name, self._config, self._environment)
        except InputError as error:
            raise self._unavailable(f"{error}.") from None
        if (config.command is None) == (config.url is None):
            raise self._unavailable(f"mcpServers.{self.name} needs a command or a url, and one.")
        seconds = self._config.timeout
        link = Link(config, self._note)
        self._links = [*(each for each in self._links if not each.done), link]
        if await link.open(seconds):
            return link
        why = reason(config, link.error(), link.status)
        if not link.done or link.error() is None:
            why = f"it did not answer within {seconds:g} seconds."
        raise self._unavailable(_with_words(why, await link.last_words()))

    def _note(self) -> None:
        self.changed = True

    async def _broke(self, link: Link) -> ToolsUnavailable:
        why = "it ended, or broke the connection, during the call; whether the call was carried "
        return self._unavailable(_with_words(f"{why}out is not known.", await link.last_words()))

    def _failed(self, why: str) -> ToolFailed:
        return ToolFailed(self._shown(f"{self.name}: {why}")[:_LONGEST])

    def _unavailable(self, why: str) -> ToolsUnavailable:
        text = f"the tool server {self.name!r} cannot be used: {why}"
        return ToolsUnavailable(self._shown(text), origin=self.name)

    def _shown(self, text: str) -> str:
        return hide(text, self._secrets)


def _with_words(why: str, words: str) -> str:
    return f"{why} Its last words: {words}" if words else why


def _forgotten(error: MCPError, link: Link) -> bool:
    """Whether a server over HTTP no longer knows the session: it did not look at the call. It says
    so with 404, and with words of its own or none."""
    return link.status == 404 and "session" in error.message.lower()
