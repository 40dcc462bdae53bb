"""The tools of a conversation: pinned in its row when it is made, in an order that stays.

S35: what a model is told of tools changes with a new conversation, `/tools reload` or a compaction,
never because a server went away or came back.
"""

from __future__ import annotations

import platform

from clew.clock import Micros
from clew.config.values import Config
from clew.domain.conversations import ConversationInfo
from clew.host.prompt import Facts, system_prompt, today
from clew.host.services import Services
from clew.host.specs import Toolset, specs_of, toolset_of
from clew.store.aio.conversation import AsyncConversation


def prompt_of(config: Config, cwd: str | None, now: Micros) -> str:
    """The system prompt of a conversation that begins now."""
    facts = Facts(day=today(now), folder=cwd, platform=platform.system() or None)
    return system_prompt(config.system, facts, tools=config.tools.builtin)


async def ensure_pinned(services: Services, conv: AsyncConversation) -> ConversationInfo:
    """Give a conversation that was begun elsewhere what its requests begin with; gives its row."""
    info = await conv.info()
    prompt = toolset = None
    if info.prompt_hash is None:
        prompt = prompt_of(services.config, info.cwd, services.profile.clock.now())
    if info.toolset_hash is None:
        toolset = toolset_of(await services.toolbox.pin(None))
    if prompt is not None or toolset is not None:
        await conv.set_prompt(prompt, toolset)
    return info


async def repin(services: Services, conv: AsyncConversation, pinned: Toolset | None) -> bool:
    """Pin the tools there are now, in the order they have; whether that changed anything."""
    fresh = toolset_of(await services.toolbox.pin(specs_of(pinned)))
    if fresh == pinned:
        return False
    await conv.set_prompt(None, fresh)
    return True
