"""Hosts that ask a scripted server over loopback HTTP: all the way from a message to its answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hosting import Shelf

import clew
import clew.aio
from clew.config.values import ChatConfig, Config, Kind, ModelConfig, ProviderConfig
from clew.host.host import Host
from clew.providers.registry import Providers
from clew.store.aio.profile import AsyncProfile
from clew.tools.api import Tool
from clew.tools.toolbox import Toolbox
from provider_server import ProviderServer

CHAT, RESPONSES = "openai", "openai-responses"
APIS: tuple[Kind, ...] = (CHAT, RESPONSES)
KEY = "sk-secret-of-the-tests-1234567890"
PLAIN = "gpt-4o"
"""A model whose API takes messages as they come."""
TURNS = "llama-3.1-8b-instruct"
"""A model whose templates want user and assistant in turn."""


def configured(
    server: ProviderServer, *others: ProviderServer, api: Kind = CHAT, model: str = PLAIN,
    window: int = 64_000, timeout: float = 30.0, **more: Any,
) -> Config:  # fmt: skip
    """A configuration whose model is on the server, and whose fallback list are the others."""
    places = {"main": server, **{f"other{n}": each for n, each in enumerate(others, 1)}}
    names = [f"{place}/{model}" for place in places]
    fields: dict[str, Any] = {
        "model": names[0], "fallback": names[1:],
        "chat": ChatConfig(titles=False),
        "providers": {
            name: ProviderConfig(kind=api, base_url=each.base_url, timeout=timeout)
            for name, each in places.items()
        },
        "models": {name: ModelConfig(window=window, reply=window // 8) for name in names},
    }  # fmt: skip
    return Config(**{**fields, **more})


@asynccontextmanager
async def served(
    place: Path | str, config: Config, *tools: Tool, jitter: float | None = 0.0,
    watch: Any = None,
) -> AsyncGenerator[tuple[Host, AsyncProfile]]:  # fmt: skip
    """A host on a store at a place, as a program makes one: its providers are those of the
    configuration. `jitter`: of every wait before another try; 0: none. Ends with a store that is
    sound."""
    async with clew.aio.open(place) as store:
        profile = store.profile("me")
        toolbox = Toolbox(config.tools, sources=[Shelf(*tools)])
        async with Host(profile, Providers(config, _key), toolbox, config, watch=watch) as host:
            if jitter is not None:
                host._services.jitter = lambda: jitter  # pyright: ignore[reportPrivateUsage]
            yield host, profile
    with clew.open(place) as store:
        assert store.verify() == []


def _key(name: str, section: ProviderConfig) -> str:
    return KEY


def texts(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the messages of a request say, in short."""
    return [str(message.get("content") or message.get("output") or "") for message in messages]
