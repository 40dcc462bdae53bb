"""One connection to an MCP server: opened, lived in and closed by one task, as the scopes of anyio
need it. Calls are made by any task; the session is made for that."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from importlib.metadata import version
from typing import cast

import anyio
import httpx2
import mcp
from mcp.client import Transport
from mcp.client.session import IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp.types import Implementation, ToolListChangedNotification

from clew.config.values import McpConfig
from clew.store.aio.database import hop
from clew.tools.mcp_stream import watched
from clew.tools.stderr import Tail

_CONNECT = 30.0
"""Seconds for a connection of HTTP to be made, and to be waited for."""
_QUIET = 300.0
"""Seconds without a byte on a stream of HTTP; a server says nothing while it works."""
_CLOSE = 8.0
"""Seconds that a server has to end: the SDK closes its stdin, then terminates, then kills it."""
_LAST_WORDS = 0.2
"""Seconds to wait for what a server that died wrote to its stderr."""

for _name in ("mcp", "client"):  # the SDK's: without a handler, Python would write to the screen
    logging.getLogger(_name).addHandler(logging.NullHandler())


class Link:
    """A connection. `config`: with its variables filled in; `changed` is called when the server
    says that its tools have changed."""

    def __init__(self, config: McpConfig, changed: Callable[[], None]) -> None:
        self._config, self._changed = config, changed
        self._ended, self._tail = asyncio.Event(), None if config.command is None else Tail()
        self._ready: asyncio.Future[mcp.Client] = asyncio.get_running_loop().create_future()
        self._scope = anyio.CancelScope()
        self._task: asyncio.Task[None] | None = None
        self.status: int | None = None
        """Of the last answer of HTTP to a message, if it was an error."""

    @property
    def alive(self) -> bool:
        return self._task is not None and not self._task.done() and not self._ended.is_set()

    @property
    def done(self) -> bool:
        """Whether its server has ended, or was left."""
        return self._task is not None and self._task.done()

    @property
    def client(self) -> mcp.Client:
        """The session, once `open` has returned True."""
        return self._ready.result()

    async def open(self, seconds: float) -> bool:
        """Connect. False: it failed, or took longer; `error` and `last_words` say more. Cancelled,
        it is given up."""
        self._task = asyncio.create_task(self._live())
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            await asyncio.wait(
                {self._task, self._ready}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        except asyncio.CancelledError:
            self._scope.cancel()
            raise
        if self._ready.done() and not self._task.done():
            return True
        self._scope.cancel()
        return False

    def end(self) -> None:
        """Use it no more: what is in flight is given up, the server is stopped."""
        self._ended.set()

    async def close(self) -> None:
        """End it, and wait until the server has ended, for some seconds at most."""
        self._ended.set()
        if self._task is None:
            return
        if not self._ready.done():
            self._scope.cancel()
        await asyncio.wait({self._task}, timeout=_CLOSE)
        if not self._task.done():
            self._scope.cancel()

    def error(self) -> BaseException | None:
        """Why it could not be opened, or broke; the first of several."""
        if self._task is None or not self._task.done() or self._task.cancelled():
            return None
        return _first(self._task.exception())

    async def last_words(self) -> str:
        """The end of what a process wrote to its stderr."""
        return await hop(self._tail.last, _LAST_WORDS) if self._tail else ""

    async def _live(self) -> None:
        """The whole life of the connection."""
        try:
            with self._scope:
                async with AsyncExitStack() as stack:
                    transport = watched(await self._transport(stack), self._ended)
                    client = mcp.Client(
                        transport, message_handler=self._message, cache=None,
                        client_info=Implementation(name="clew", version=version("clew")),
                    )  # fmt: skip
                    self._ready.set_result(await stack.enter_async_context(client))
                    group = await stack.enter_async_context(anyio.create_task_group())
                    group.start_soon(self._listen)
                    await self._ended.wait()
                    group.cancel_scope.cancel()
        finally:
            self._ended.set()
            if self._tail is not None:
                self._tail.close()

    async def _transport(self, stack: AsyncExitStack) -> Transport:
        config = self._config
        if config.command is not None and self._tail is not None:
            server = mcp.StdioServerParameters(
                command=os.path.expanduser(config.command), args=config.args, env=config.env,
                cwd=None if config.cwd is None else os.path.expanduser(config.cwd),
                encoding_error_handler="replace",
            )  # fmt: skip
            return mcp.stdio_client(server, self._tail.file)
        http = httpx2.AsyncClient(
            headers=config.headers,
            timeout=httpx2.Timeout(_CONNECT, read=max(_QUIET, config.timeout)),
            event_hooks={"response": [self._answered]},
        )
        await stack.enter_async_context(http)
        return streamable_http_client(config.url or "", http_client=http)

    async def _listen(self) -> None:
        """Be told of changes by servers that want to be asked; others tell by themselves."""
        with suppress(ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
            async with self.client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._changed()

    async def _message(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._changed()

    async def _answered(self, response: httpx2.Response) -> None:
        if response.request.method == "POST":
            self.status = response.status_code if response.status_code >= 400 else None


def _first(error: BaseException | None) -> BaseException | None:
    """What was raised first, out of the groups that anyio makes of it."""
    if isinstance(error, BaseExceptionGroup):
        inner = cast(BaseExceptionGroup[BaseException], error)
        return _first(inner.exceptions[0])
    return error
