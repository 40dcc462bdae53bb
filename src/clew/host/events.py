"""What a host tells those who watch a turn. For screens: the truth is in the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from clew.compaction.outcome import Outcome
from clew.domain.parts import ToolCall, ToolResult
from clew.domain.turns import TurnState, Usage
from clew.providers.api import Model, ReasoningDelta, TextDelta


class TurnStarted(Struct, frozen=True):
    """A turn was opened, or taken up again (`resumed`) after a crash or an answer."""

    turn: int
    seqs: tuple[int, ...]
    """The messages it began with."""
    resumed: bool = False


class Queued(Struct, frozen=True):
    """Another holder runs a turn; the messages wait. `numbers`: of the inbox."""

    turn: int
    numbers: tuple[int, ...]


class Steered(Struct, frozen=True):
    """Messages of the inbox that entered the running turn."""

    numbers: tuple[int, ...]


class CallStarted(Struct, frozen=True):
    """A model is being asked. `tokens` of the context, of `limit` there are."""

    model: Model
    tokens: int
    limit: int


class Retrying(Struct, frozen=True):
    """A call failed and is made again in `seconds`, or at once by `model`. What was streamed of
    it counts no more: a screen takes it back."""

    why: str
    seconds: float
    model: Model


class Answered(Struct, frozen=True):
    """A message of the model is durable, as message `seq`."""

    seq: int
    calls: tuple[ToolCall, ...]
    usage: Usage
    cost: float | None
    partial: bool = False


class ToolStarted(Struct, frozen=True):
    """A tool is running."""

    call: ToolCall


class ToolFinished(Struct, frozen=True):
    """A tool has answered; its result is durable with the step."""

    call: ToolCall
    result: ToolResult
    seconds: float


class Asked(Struct, frozen=True):
    """Calls that a person must allow: the turn waits (`AsyncConversation.answer`)."""

    turn: int
    calls: tuple[ToolCall, ...]


class Compacting(Struct, frozen=True):
    """A compaction has begun."""

    trigger: Literal["soft", "hard", "user"] | None = None
    """None: it came before a request."""


class Compacted(Struct, frozen=True):
    """It has ended."""

    outcome: Outcome


class Titled(Struct, frozen=True):
    """The model has given a title."""

    title: str


NoticeKind = Literal["limit", "loop", "tools", "model", "config", "stop", "store"]


class Notice(Struct, frozen=True):
    """Something a person should know: a limit, a loop, a tool server or the store that is away."""

    kind: NoticeKind
    text: str


class TurnEnded(Struct, frozen=True):
    """A turn was closed, or waits for a person. `waiting`: messages for the next one."""

    turn: int
    state: TurnState
    waiting: int
    usage: Usage
    cost: float
    error: str | None = None


Event = (
    TurnStarted | Queued | Steered | CallStarted | TextDelta | ReasoningDelta | Retrying | Answered
    | ToolStarted | ToolFinished | Asked | Compacting | Compacted | Titled | Notice | TurnEnded
)  # fmt: skip
Emit = Callable[[Event], None]
