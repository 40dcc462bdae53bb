"""An MCP server as a source, whose module is loaded when its tools are first asked for: the SDK
takes most of a second, which a chat without servers must not pay, nor one before its prompt."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Sequence
from typing import Protocol

from clew.config.values import McpConfig
from clew.store.aio.database import hop
from clew.tools.api import Source, Tool
from clew.tools.errors import ToolsUnavailable


class _Connected(Source, Protocol):
    """What is used of mcp.McpSource."""

    changed: bool
    away: ToolsUnavailable | None


class Server:
    """A configured MCP server. Nothing is started before `tools`."""

    def __init__(self, name: str, config: McpConfig) -> None:
        self.name, self.config = name, config
        self._source: _Connected | None = None
        self._lock = asyncio.Lock()

    @property
    def changed(self) -> bool:
        """Whether it said that its tools have changed, since `settle`."""
        return self._source is not None and self._source.changed

    @property
    def away(self) -> ToolsUnavailable | None:
        """Why it could not be reached when that was last tried; None: it could."""
        return None if self._source is None else self._source.away

    def settle(self) -> None:
        """What it says from now on is a change."""
        if self._source is not None:
            self._source.changed = False

    async def tools(self) -> Sequence[Tool]:
        """What it offers now. Raises ToolsUnavailable."""
        source = self._source or await self._load()
        return await source.tools()

    async def close(self) -> None:
        """Stop it, if it was started."""
        if self._source is not None:
            await self._source.close()

    async def _load(self) -> _Connected:
        async with self._lock:
            if self._source is None:
                try:
                    module = await hop(importlib.import_module, "clew.tools.mcp")
                except ImportError as error:
                    raise ToolsUnavailable(
                        f"the tool server {self.name!r} cannot be used: the package mcp does not "
                        f"load ({error}); install clew again.",
                        origin=self.name,
                    ) from error
                source: _Connected = module.McpSource(self.name, self.config)
                self._source = source
            return self._source
