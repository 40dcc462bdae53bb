"""A transport of the SDK whose end is noticed: a server that dies between two calls is known to be
gone before the next one, which then goes to a new connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any

import anyio
from mcp.client import Transport


class Reader:
    """A stream of messages from a server. `ended` is set when nothing more can come."""

    def __init__(self, stream: Any, ended: asyncio.Event) -> None:
        self._stream, self._ended = stream, ended

    async def receive(self) -> Any:
        try:
            return await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._ended.set()
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Reader:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Reader:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        await self.aclose()


@asynccontextmanager
async def watched(transport: Transport, ended: asyncio.Event) -> AsyncGenerator[Any]:
    """The transport's streams, the reading one watched."""
    async with transport as (reading, writing):
        yield Reader(reading, ended), writing
