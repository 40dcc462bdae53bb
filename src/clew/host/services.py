"""What a host holds and every turn uses: one profile, models, tools, compactors, side work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from clew.compaction.aio import AsyncCompactor
from clew.compaction.engine import Compactor
from clew.config.values import Config
from clew.context.budget import Budget
from clew.context.build import Context
from clew.domain.conversations import ConversationInfo
from clew.errors import ClewError
from clew.host.background import SideWork
from clew.host.points import Point
from clew.host.publisher import Channel, Publisher
from clew.host.specs import specs_of
from clew.host.summarizer import ModelSummarizer
from clew.ids import random_bits
from clew.providers.api import Model, Provider, Request
from clew.providers.registry import Providers
from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.handles import blocking, blocking_profile
from clew.store.aio.profile import AsyncProfile
from clew.store.conversation import Conversation
from clew.tools.toolbox import Toolbox

EARLY = 0.9
"""Of the room that a context has: at so much at the latest it is compacted."""


class Route(NamedTuple):
    """A model, and the provider that is asked for it."""

    provider: Provider
    model: Model


class Services:
    """Shared by all turns of a host. Holds no state of a conversation: that is in the store.

    `at` is told the name of each point of a turn before the host goes on; `jitter` gives a random
    number from 0 to 1.
    """

    def __init__(
        self, profile: AsyncProfile, providers: Providers, toolbox: Toolbox, config: Config, *,
        channels: Mapping[str, Channel] | None = None, watch: Callable[[Point], None] | None = None,
        jitter: Callable[[], float] | None = None,
    ) -> None:  # fmt: skip
        self.profile, self.providers = profile, providers
        self.toolbox, self.config = toolbox, config
        self.jitter = jitter or _chance
        self.at = watch or _unwatched
        self.publisher = Publisher(profile, channels, self.at) if channels else None
        self.side = SideWork()
        self._routes: dict[str | None, Route] = {}

    async def route(self, name: str | None) -> Route:
        """The provider and the model of a name; None: the configured one. Looked for once."""
        route = self._routes.get(name)
        if route is None:
            route = self._routes[name] = Route(*await self.providers.resolve(name))
        return route

    async def route_of(self, info: ConversationInfo) -> Route:
        """The model that a person chose for a conversation, or the configured one: that of a
        conversation which was begun elsewhere may be unknown here."""
        if info.model is not None and "/" in info.model:
            try:
                return await self.route(info.model)
            except ClewError:
                pass
        return await self.route(None)

    def budget(self, model: Model) -> Budget:
        """What a context may take for a model. Where the reply takes much of a small window, high
        water lies below what is left: a soft compaction comes before one that somebody waits for.
        """
        wanted = self.config.compaction
        budget = Budget(window=model.window, reply=min(model.reply, model.window // 2))
        high = min(wanted.high, EARLY * budget.room / budget.window)
        return replace(budget, high=high, low=min(wanted.low, wanted.low / wanted.high * high))

    def request(
        self, conv: Conversation, info: ConversationInfo, model: Model, context: Context
    ) -> Request:
        """What a model of a conversation is asked."""
        config = self.config.models.get(model.shown)
        return Request(
            model=model, context=context, blob=conv.blob,
            tools=specs_of(context.toolset) if model.tools else (),
            affinity=info.affinity, attribution=info.attribution,
            max_tokens=model.reply or None, settings={} if config is None else config.settings,
            reader=conv, profile=blocking_profile(self.profile),
        )  # fmt: skip

    async def compactor(
        self, conv: AsyncConversation, route: Route, watch: Callable[[str], None] | None = None
    ) -> AsyncCompactor:
        """What keeps a conversation's contexts within a model's window. Its narrative is written by
        `compaction.model`, if there is one. `watch`: as Compactor's, called in its thread."""
        model = route.model
        plain = Compactor(self.budget(model), model=model.name, watch=watch)
        if self.config.compaction.model is None:
            return AsyncCompactor(plain)
        here, writer = blocking(conv), await self.route(self.config.compaction.model)

        def asked() -> Request:
            return self.request(here, here.info(), model, plain.peek(here))

        summarizer = ModelSummarizer(*writer, asyncio.get_running_loop(), asked)
        return AsyncCompactor(
            Compactor(self.budget(model), model=model.name, summarizer=summarizer, watch=watch)
        )


def _chance() -> float:
    return random_bits(16) / 65_536


def _unwatched(_: Point) -> None:
    """Nobody wants to know."""
