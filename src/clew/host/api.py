"""What a host gives to a screen, a channel or a program. `Host` (host.py) is the one there is;
screens are written against this, and tested with it alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from clew.compaction.outcome import Outcome
from clew.context.build import Context
from clew.domain.messages import Draft
from clew.domain.turns import TurnState, Usage
from clew.host.events import Emit
from clew.providers.api import Model
from clew.store.aio.conversation import AsyncConversation


class Report(Struct, frozen=True, kw_only=True):
    """How a message was answered. `text`: of the last message of the model."""

    turn: int | None
    state: TurnState | Literal["queued", "known"]
    """`queued`: another holder answers it; `known`: it was answered before."""
    text: str = ""
    seqs: tuple[int, ...] = ()
    """Of all messages of the turn."""
    usage: Usage = Usage()
    cost: float = 0.0
    error: str | None = None


class Hosting(Protocol):
    """Runs turns of one profile's conversations."""

    async def say(
        self, conv: AsyncConversation, drafts: Sequence[Draft], *, emit: Emit | None = None,
        queue: bool = False,
    ) -> Report:  # fmt: skip
        """Accept messages, and run the turn they begin to its end, and those of what came in
        meanwhile. Durable before the first event. While a turn runs here or elsewhere the messages
        go to the inbox (Queued, and a Report `queued` at once): the running turn takes them at its
        next step, or with `queue` the next turn does. Cancelling the task is a stop.

        Raises ProviderError when no model could answer: the turn is closed as failed. Spooled when
        the store is away: the messages are durable and not answered; they wait for the next turn
        as soon as it takes them."""
        ...

    async def go_on(self, conv: AsyncConversation, *, emit: Emit | None = None) -> Report | None:
        """Run what is left: a turn that was interrupted or that a person has answered, or waiting
        messages. None: there is nothing, or another holder is at it."""
        ...

    async def stop(self, conv: AsyncConversation) -> bool:
        """End the running turn at once, here or elsewhere: what was streamed is kept, marked as
        partial, the conversation is free. False: none was running."""
        ...

    async def answer(
        self, conv: AsyncConversation, call_id: str, allow: bool, *, always: bool = False,
        by: str | None = None,
    ) -> bool:  # fmt: skip
        """Allow or refuse a call that waits for a person; go_on() continues the turn. `always`: in
        this conversation. False: it did not wait any more."""
        ...

    async def compact(self, conv: AsyncConversation, *, emit: Emit | None = None) -> Outcome:
        """Compact because a person asks."""
        ...

    async def context(self, conv: AsyncConversation) -> Context:
        """What the next request would be, never compacted."""
        ...

    async def model_of(self, conv: AsyncConversation) -> Model:
        """The model that answers in this conversation."""
        ...

    async def use_model(self, conv: AsyncConversation, name: str) -> Model:
        """Have another model answer from now on. Raises InputError, NotConfigured."""
        ...

    async def models(self) -> tuple[Model, ...]:
        """All that can be chosen, those that servers list included."""
        ...

    async def tools(self, conv: AsyncConversation) -> tuple[dict[str, Any], ...]:
        """Pinned tools in order: name, origin, policy, available."""
        ...

    async def reload_tools(self, conv: AsyncConversation) -> tuple[str, ...]:
        """Pin the tools that are there now; gives their names. (`/tools reload`)"""
        ...

    async def recover(self, *, emit: Emit | None = None) -> int:
        """Take up what a crash left in this profile, by the policy; gives how many."""
        ...

    async def close(self) -> None:
        """Stop what runs, wait for side work, close providers and tool servers."""
        ...
