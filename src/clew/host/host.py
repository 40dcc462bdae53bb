"""Host: runs the turns of one profile's conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from clew.compaction.aio import AsyncCompactor
from clew.compaction.outcome import Outcome
from clew.config.values import Config
from clew.context.build import Context
from clew.domain.conversations import NewConversation
from clew.domain.messages import Draft
from clew.errors import ClewError, NotFound
from clew.host.api import Report
from clew.host.conductor import Conductor
from clew.host.events import Compacted, Compacting, Emit, Notice
from clew.host.hearing import heard
from clew.host.points import Point
from clew.host.publisher import Channel, Publisher
from clew.host.services import Services
from clew.host.specs import specs_of, toolset_of
from clew.host.toolsets import prompt_of, repin
from clew.providers.api import Model
from clew.providers.models import model_of
from clew.providers.registry import Providers
from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.profile import AsyncProfile
from clew.tools.toolbox import Toolbox

T = TypeVar("T")


class Host:
    """Runs turns of one profile's conversations; see api.Hosting for what each method does.

    Any number of hosts, in any number of processes, may serve one profile: the store decides who
    runs a conversation. `close` it, or use it in `async with`.
    """

    def __init__(
        self, profile: AsyncProfile, providers: Providers, toolbox: Toolbox, config: Config, *,
        channels: Mapping[str, Channel] | None = None,
        watch: Callable[[Point], None] | None = None,
    ) -> None:  # fmt: skip
        self._services = Services(
            profile, providers, toolbox, config, channels=channels, watch=watch
        )
        self._conductor = Conductor(self._services)

    async def __aenter__(self) -> Host:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def publisher(self) -> Publisher | None:
        """What sends replies by the host's channels; its `run()` sends those of others, too."""
        return self._services.publisher

    # ------------------------------------------------------------------ turns

    async def say(
        self, conv: AsyncConversation, drafts: Sequence[Draft], *, emit: Emit | None = None,
        queue: bool = False,
    ) -> Report:  # fmt: skip
        """As Hosting.say."""
        return await self._conductor.say(conv, drafts, emit=emit, queue=queue)

    async def go_on(self, conv: AsyncConversation, *, emit: Emit | None = None) -> Report | None:
        """As Hosting.go_on."""
        return await self._conductor.go_on(conv, emit=emit)

    async def stop(self, conv: AsyncConversation) -> bool:
        """As Hosting.stop."""
        return await self._conductor.stop(conv)

    async def answer(
        self, conv: AsyncConversation, call_id: str, allow: bool, *, always: bool = False,
        by: str | None = None,
    ) -> bool:  # fmt: skip
        """As Hosting.answer."""
        try:
            return await conv.answer_call(call_id, allow, always=always, by=by)
        except NotFound:  # its turn has ended
            return False

    async def recover(self, *, emit: Emit | None = None) -> int:
        """As Hosting.recover."""
        found = 0
        for conv in await self._services.profile.unfinished():
            (came,) = await asyncio.gather(self.go_on(conv, emit=emit), return_exceptions=True)
            if isinstance(came, BaseException):
                why = str(came) if isinstance(came, ClewError) else type(came).__name__
                heard(emit)(Notice("model", f"{conv.id} could not be gone on with: {why}"))
            else:
                found += came is not None
        if self.publisher is not None:
            await self.publisher.publish()
        return found

    # ------------------------------------------------------------------ contexts and models

    async def new(self, source: str, **fields: Any) -> AsyncConversation:
        """A new conversation with the prompt and the tools of now pinned. Fields are those of
        NewConversation."""
        services = self._services
        new = NewConversation(source=source, **fields)
        now, cwd = services.profile.clock.now(), new.workspace.cwd
        prompt = prompt_of(services.config, cwd, now) if new.prompt is None else new.prompt
        toolset = new.toolset or toolset_of(await services.toolbox.pin(None))
        return await services.profile.create(replace(new, prompt=prompt, toolset=toolset))

    async def compact(self, conv: AsyncConversation, *, emit: Emit | None = None) -> Outcome:
        """As Hosting.compact."""
        told = heard(emit)
        told(Compacting("user"))
        compactor = await self._compactor(conv)
        outcome = await compactor.compact(conv, "user")
        told(Compacted(outcome))
        return outcome

    async def _compactor(self, conv: AsyncConversation) -> AsyncCompactor:
        route = await self._services.route_of(await conv.info())
        return await self._services.compactor(conv, route)

    async def context(self, conv: AsyncConversation) -> Context:
        """As Hosting.context."""
        compactor = await self._compactor(conv)
        return await compactor.peek(conv)

    async def model_of(self, conv: AsyncConversation) -> Model:
        """As Hosting.model_of."""
        return (await self._services.route_of(await conv.info())).model

    async def default_model(self) -> Model:
        """The model that answers in a new conversation; may ask servers. Raises NotConfigured."""
        return (await self._services.route(None)).model

    async def use_model(self, conv: AsyncConversation, name: str) -> Model:
        """As Hosting.use_model."""
        route = await self._services.route(name)
        await conv.set_workspace(model=route.model.shown)
        return route.model

    async def models(self) -> tuple[Model, ...]:
        """As Hosting.models."""
        services = self._services
        names = (name.partition("/") for name in await services.providers.all_models())
        return tuple(model_of(provider, name, services.config) for provider, _, name in names)

    # ------------------------------------------------------------------ tools

    async def tools(self, conv: AsyncConversation) -> tuple[dict[str, Any], ...]:
        """As Hosting.tools."""
        inputs = await conv.context_inputs()
        allowed = await conv.allowed_tools()
        toolbox = self._services.toolbox
        status = {each.name: each for each in await toolbox.status()}
        return tuple(
            {
                "name": spec.name, "description": spec.description,
                "origin": status[spec.name].origin if spec.name in status else None,
                "policy": toolbox.verdict(spec.name, allowed),
                "available": spec.name in status and status[spec.name].available,
            }
            for spec in specs_of(inputs.toolset)
        )  # fmt: skip

    async def reload_tools(self, conv: AsyncConversation) -> tuple[str, ...]:
        """As Hosting.reload_tools."""
        inputs = await conv.context_inputs()
        await repin(self._services, conv, inputs.toolset)
        return tuple(spec.name for spec in specs_of((await conv.context_inputs()).toolset))

    async def close(self) -> None:
        """As Hosting.close."""
        await self._conductor.close()
        await self._services.toolbox.close()
        await self._services.providers.close()
