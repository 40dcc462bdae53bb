"""Turns, model calls and the right to run a conversation."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from clew.domain.messages import Appended

TurnState = Literal["running", "waiting", "done", "interrupted", "failed"]
OPEN_STATES: tuple[TurnState, ...] = ("running", "waiting")


class Right(Struct, frozen=True):
    """The right to run a conversation: every write made under it carries `fence`."""

    conversation: str
    fence: int
    holder: str
    held_at: int
    ttl: int
    """Microseconds after `held_at` from which others may take over."""


class Turn(Struct, frozen=True, kw_only=True):
    """Everything from one inbound message to its finished reply."""

    number: int
    uid: str
    state: TurnState
    key: str | None
    first_seq: int
    started_at: int
    ended_at: int | None = None
    error: str | None = None


class Usage(Struct, frozen=True, omit_defaults=True):
    """Tokens of one model call as its provider reported them.

    `input` is all that was sent, `cached` how many of these came from the provider's cache;
    `output` is all that came back, `reasoning` how many of these are thinking.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0


class Spent(Struct, frozen=True, kw_only=True):
    """What a model call of another tool cost."""

    model: str
    usage: Usage
    cost: float | None = None
    """US dollars."""
    latency: int | None = None
    """Microseconds."""


class Delivery(Struct, frozen=True):
    """A reply to send: where (a route key) and what (JSON). Written with the turn's end."""

    route: str
    payload: Any


DeliveryState = Literal["pending", "sent", "failed"]


class Delivered(Struct, frozen=True, kw_only=True):
    """The row of a delivery. Of one that was taken, `attempts` is the fence of who took it."""

    conversation: str
    number: int
    """Order of sending in the conversation."""
    turn: int
    route: str
    payload: Any
    state: DeliveryState
    attempts: int
    """How often it was taken."""
    next_at: int
    """Microseconds: when it is due, or since when it is sent or failed."""
    error: str | None = None
    """Why the last attempt failed."""

    @property
    def key(self) -> str:
        """The same for every attempt: by it a channel knows what it has sent already."""
        return f"{self.conversation}:{self.number}"


class Ask(Struct, frozen=True):
    """A tool call that a person must allow before it runs."""

    call_id: str
    name: str
    """Of the tool."""


class Approval(Struct, frozen=True, kw_only=True):
    """The row of an Ask. Only one that is `started` may have run."""

    turn: int
    call_id: str
    name: str
    state: Literal["asked", "allowed", "denied", "started"]
    always: bool
    """The person allowed the tool for the whole conversation."""
    by: str | None
    asked_at: int
    answered_at: int | None


class CallPlan(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A model call about to be made; stored before it, so that a crash leaves a row."""

    model: str
    purpose: Literal["turn", "summary", "title", "review"] = "turn"
    settings: dict[str, Any] | None = None
    expected: int | None = None
    """Our own count of the request in tokens of o200k, images included. The provider's count
    (`Usage.input`) divided by it tells how far its tokens are from ours."""


class CallResult(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How a model call ended."""

    state: Literal["done", "failed"] = "done"
    usage: Usage = Usage()
    cost: float | None = None
    """US dollars."""
    latency: int | None = None
    """Microseconds."""
    prefix_hash: str | None = None
    """Of the beginning of the request, as `context.prefix` has it."""
    error: str | None = None
    expected: int | None = None
    """As `CallPlan.expected`, where the context was built after the call was planned."""
    generation: int | None = None
    up_to_seq: int | None = None
    """What the request was built of, where that moved since: by a compaction, by the inbox."""


class ModelCall(Struct, frozen=True, kw_only=True):
    """The row of a model call."""

    number: int
    turn: int | None
    purpose: str
    model: str
    state: Literal["planned", "done", "failed"]
    generation: int
    up_to_seq: int
    usage: Usage
    cost: float | None
    latency: int | None
    started_at: int
    partial: str | None = None
    error: str | None = None
    api_group: str | None = None
    """Of a call that was imported: the messages that it made."""
    expected: int | None = None
    """As planned (`CallPlan.expected`)."""
    prefix_hash: str | None = None
    after_attempt: int | None = None
    """The attempt at a compaction that it belongs to, or the newest one when it was planned. None:
    there was none yet, or the call was imported."""


class ModelUsage(Struct, frozen=True):
    """Usage added up for one model."""

    model: str
    calls: int
    usage: Usage
    cost: float


SLOT = 15 * 60 * 1_000_000
"""Microseconds. Every zone's days begin and end with a quarter of an hour."""
UsageBy = Literal["model", "time", "conversation"]


class UsageRow(Struct, frozen=True, kw_only=True):
    """Usage added up for one model and purpose, of a slot of time or a conversation if asked so."""

    model: str
    purpose: str
    """turn, summary, title or review."""
    calls: int
    failed: int
    """Of the calls."""
    priced: int
    """Calls of which the cost is known; `cost` is theirs."""
    usage: Usage
    cost: float
    """US dollars."""
    at: int | None = None
    """Microseconds: where the slot begins, a quarter of an hour."""
    conversation: str | None = None
    title: str | None = None
    """Of the conversation."""


class TurnBegun(Struct, frozen=True, kw_only=True):
    """A turn was opened; `appended` are the messages it starts with, `call` the planned call."""

    turn: Turn
    right: Right
    appended: Appended
    call: int | None = None


class TurnQueued(Struct, frozen=True, kw_only=True):
    """Another holder's turn is open; the messages wait in the inbox for it."""

    appended: Appended
    turn: int


class TurnKnown(Struct, frozen=True, kw_only=True):
    """The messages were in the log already; `turn` is the one that took them, if any."""

    turn: Turn | None
    appended: Appended


class TurnEnded(Struct, frozen=True, kw_only=True):
    """A turn was closed; `waiting` messages in the inbox want the next one."""

    number: int
    state: TurnState
    waiting: int
    head: int


class Recorded(Struct, frozen=True, kw_only=True):
    """One step of a turn was stored. `taken`: inbox numbers that entered the log with it."""

    appended: Appended
    taken: tuple[int, ...]
    call: int | None
