"""What a chat is begun with: the store, the configuration, the host. Loaded behind the prompt.

This is the one command that makes a store where there is none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from clew import startup
from clew.cli.registry import load
from clew.cli.settings import Settings
from clew.config.values import Config
from clew.host.api import Hosting
from clew.providers.api import Model
from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.database import hop
from clew.store.aio.profile import AsyncProfile
from clew.store.aio.store import AsyncStore
from clew.store.opening import Parts, open_parts
from clew.store.profile import Profile

FIRST = "clew.cli.chat.first"


class Options(Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    resume: str | None = None
    """Any name of a conversation."""
    last: bool = False
    """--continue"""
    model: str | None = None
    text: str = ""
    """The first message."""


class Started(Struct, kw_only=True):
    """What is there once the store is open."""

    store: AsyncStore
    blocking: Callable[[], Profile]
    """The same profile for what is not of asyncio: an import."""
    profile: AsyncProfile
    host: Hosting
    config: Config
    model: Callable[[], Awaitable[Model]]
    """Finds what answers in a new conversation; may ask servers. Raises ProviderError."""


Start = Callable[[Settings, Config], Awaitable[Started]]


async def opened(settings: Settings) -> tuple[AsyncStore, Parts]:
    """The store that the options name, made if it is not there."""

    def make() -> tuple[AsyncStore, Parts]:
        startup.report("opening the store")
        parts = open_parts(settings.store, None, None, None)
        parts.kit.codec.learn()
        return AsyncStore(parts), parts

    return await hop(make)


async def bring_demo(start: Started) -> AsyncConversation | None:
    """Store a conversation to ask about where there is none at all; None: there is one."""
    if (await start.profile.list(limit=1)).items:
        return None
    first: Any = load(FIRST)
    id: str | None = await hop(first.bring, start.blocking())
    return None if id is None else await start.profile.open(id)
