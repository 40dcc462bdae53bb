"""What came of a question: read from the log, so that it is the same whoever answered it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from clew.cli.failures import OK, PROBLEMS, STORE
from clew.domain.messages import Message, Role
from clew.domain.parts import ToolCall, ToolResult
from clew.domain.turns import Turn, TurnState, Usage
from clew.store.aio.conversation import AsyncConversation

State = TurnState | Literal["queued", "withdrawn"]
ENDED: tuple[State, ...] = ("done", "interrupted", "failed")
TURNS = 100
"""Newest turns among which is that of a message that belongs to none."""
CALLS = 1000
"""Newest model calls among which are those of the turn."""


class Called(Struct, frozen=True, kw_only=True):
    """A call of a tool. `error`: its result says that it failed; None: it has none yet."""

    id: str
    name: str
    arguments: str
    error: bool | None = None


class Answer(Struct, frozen=True, kw_only=True):
    """The object that `clew ask --json` prints."""

    conversation: str
    turn: int | None = None
    state: State
    text: str = ""
    """Of the last message of the model; what it had said when it was stopped."""
    seqs: tuple[int, ...] = ()
    """Messages of the turn."""
    tool_calls: tuple[Called, ...] = ()
    refused: tuple[str, ...] = ()
    """Tools that a person would have had to allow, and nobody could."""
    notices: tuple[str, ...] = ()
    """Limits that were met."""
    usage: Usage = Usage()
    cost: float = 0.0
    model: str | None = None
    """Of the last call."""
    error: str | None = None

    @property
    def code(self) -> int:
        """The exit code."""
        if self.state == "failed" and not self.notices:
            return STORE
        left = self.state == "queued" and self.error is None
        whole = left or (self.state == "done" and not self.refused and not self.notices)
        return OK if whole else PROBLEMS

    def facts(self) -> dict[str, Any]:
        """For programs: with every field, also of what is usually left out."""
        facts: dict[str, Any] = msgspec.to_builtins(self)
        return facts | {"usage": {name: getattr(self.usage, name) for name in _COUNTS}}


_COUNTS = Usage.__struct_fields__


async def read(conv: AsyncConversation, number: int | None, state: State | None = None) -> Answer:
    """What a turn has come to. `state`: where the turn itself does not say it, or there is none."""
    turn = None if number is None else await turn_of(conv, number)
    if turn is None:
        return Answer(conversation=conv.id, turn=number, state=state or "done")
    messages = [m async for m in conv.messages(first=turn.first_seq) if m.turn == turn.number]
    calls = [call for call in await conv.calls(CALLS) if call.turn == turn.number]
    return Answer(
        conversation=conv.id, turn=turn.number, state=state or turn.state, text=_said(messages),
        seqs=tuple(m.seq for m in messages), tool_calls=_called(messages),
        usage=_sum([call.usage for call in calls]), cost=sum(call.cost or 0.0 for call in calls),
        model=calls[-1].model if calls else None, error=turn.error,
    )  # fmt: skip


async def turn_of(conv: AsyncConversation, number: int) -> Turn | None:
    """A turn by its number."""
    found = await conv.turns(1, before=number + 1)
    return found[0] if found and found[0].number == number else None


async def turn_for(conv: AsyncConversation, message: Message) -> Turn | None:
    """The turn that has answered a message, or is at it. One that was put in the place of another
    (a retry) belongs to none: the first turn from there on is its own."""
    if message.turn is not None:
        return await turn_of(conv, message.turn)
    since = [turn for turn in await conv.turns(TURNS) if turn.first_seq >= message.seq]
    return min(since, key=lambda turn: turn.number, default=None)


def _said(messages: list[Message]) -> str:
    spoken = (m.text for m in reversed(messages) if m.role is Role.ASSISTANT)
    return next((text for text in spoken if text.strip()), "")


def _called(messages: list[Message]) -> tuple[Called, ...]:
    found: dict[str, Called] = {}
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, ToolCall):
            found[part.id] = Called(id=part.id, name=part.name, arguments=part.arguments)
        elif isinstance(part, ToolResult) and part.call_id in found:
            found[part.call_id] = replace(found[part.call_id], error=part.is_error)
    return tuple(found.values())


def _sum(usages: list[Usage]) -> Usage:
    return Usage(**{name: sum(getattr(usage, name) for usage in usages) for name in _COUNTS})
