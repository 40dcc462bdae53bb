"""A provider whose module is imported when it is first used: the SDKs take half a second, and
nobody waits for that before a model is asked."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, NamedTuple

from clew.config.values import ProviderConfig
from clew.providers.api import Body, Model, Provider, Reply, Request, StreamEvent
from clew.providers.errors import NotConfigured


class Maker(NamedTuple):
    """Where the class of a kind is. `needs`: a module that must be installed, by the extra."""

    module: str
    name: str
    needs: str | None = None
    extra: str | None = None

    def missing(self) -> str | None:
        """The command that installs what is missing; None when all is there."""
        if self.needs is None or importlib.util.find_spec(self.needs) is not None:
            return None
        package = "clew" if self.extra is None else f"clew[{self.extra}]"
        return f"pip install '{package}'"

    def make(self, name: str, config: ProviderConfig, key: str | None) -> Provider:
        """Import, and build."""
        made: Callable[..., Provider] = getattr(importlib.import_module(self.module), self.name)
        return made(name, config, key)


class Deferred:
    """A Provider that becomes the one of `maker` at its first use."""

    def __init__(self, maker: Maker, name: str, config: ProviderConfig, key: str | None) -> None:
        self.name = name
        self._maker, self._config, self._key = maker, config, key
        self._made: Provider | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, kind={self._config.kind!r})"

    def load(self) -> Provider:
        """The provider itself. Blocking: imports it at the first call. Raises NotConfigured."""
        with self._lock:
            if self._made is None:
                if command := self._maker.missing():
                    raise NotConfigured(missing_extra(self.name, command), provider=self.name)
                self._made = self._maker.make(self.name, self._config, self._key)
            return self._made

    async def ready(self) -> Provider:
        """The same, without blocking the loop."""
        return self._made or await asyncio.to_thread(self.load)

    def render(self, request: Request) -> Body:
        """As Provider."""
        return self.load().render(request)

    async def stream(self, body: Body) -> AsyncIterator[StreamEvent]:
        """As Provider."""
        events: Any = (await self.ready()).stream(body)
        async with aclosing(events):
            async for event in events:
                yield event

    async def complete(self, body: Body) -> Reply:
        """As Provider."""
        return await (await self.ready()).complete(body)

    async def count(self, body: Body) -> int | None:
        """As Provider."""
        return await (await self.ready()).count(body)

    async def models(self) -> tuple[str, ...]:
        """As Provider."""
        return await (await self.ready()).models()

    async def describe(self, model: str) -> Model | None:
        """As Provider."""
        return await (await self.ready()).describe(model)

    async def close(self) -> None:
        """As Provider; nothing, when it was never used."""
        if self._made is not None:
            await self._made.close()


def missing_extra(name: str, command: str) -> str:
    """What to say when the package of a provider is not installed."""
    return f"{name} needs a package that is not installed; run: {command}"
