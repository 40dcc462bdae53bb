"""A turn that runs: what its steps share while they follow one another."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from clew.domain.conversations import ConversationInfo
from clew.domain.messages import Draft, Message
from clew.domain.parts import ToolCall
from clew.domain.turns import CallPlan, Usage
from clew.errors import ClewError
from clew.host.events import Emit, Notice, NoticeKind
from clew.host.limits import Spending
from clew.host.services import Route, Services
from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.turn import AsyncTurn
from clew.tools.api import Verdict

T = TypeVar("T")
NO_UID = "0" * 32
BY_PERSON = "stopped by a person"
"""The error of a turn that ended so."""
GRACE = 10.0
"""Seconds that a call which is stopped has to end: more than the store or a compaction needs."""
REMEMBERED = 64
"""Messages of the turn that are kept at hand: what looks for loops wants no more."""


class Stopped(ClewError):
    """A person stopped the turn. Private to the host: it ends in run_turn."""


class Running:
    """The open turn of a conversation, in the hands of this host.

    `stop` ends it at once, `lost` says that it was another host who ended it.
    """

    def __init__(
        self, services: Services, conv: AsyncConversation, info: ConversationInfo,
        turn: AsyncTurn, route: Route, emit: Emit, stop: asyncio.Event,
    ) -> None:  # fmt: skip
        self.services, self.conv, self.info, self.turn = services, conv, info, turn
        self.route, self.emit, self.stop = route, emit, stop
        self.others = list(services.config.fallback)
        """Names of the models that may be asked when the present one fails."""
        self.refused: list[str] = []
        """Of those that have failed: which, and why."""
        self.lost = False
        self.call = turn.call
        """Number of the planned model call."""
        self.pieces: list[str] = []
        """Of the text that this call has streamed so far; the keeper stores it once a second."""
        self.ids: set[str] = set()
        """Of all calls of the turn."""
        self.open: dict[str, ToolCall] = {}
        """Calls of the model's last message that have no result in the log yet."""
        self.verdicts: dict[str, Verdict] = {}
        """What the policy says of each of these calls."""
        self.spending = Spending()
        self.usage, self.cost = Usage(), 0.0
        self.generation: int | None = None
        """Of the compaction that the last context was built on."""
        self.compacted = False
        """Whether this request was made smaller because the provider found it too large."""
        self.notices: list[str] = []
        """What the model is told with the next request only."""
        self.newest: list[Message] = []
        """The newest messages of the turn."""
        self.seqs = list(turn.appended.seqs)
        self.filled = 0
        """Tokens of the context with the reply."""
        self.text = ""
        """Of the last message of the model."""

    @property
    def number(self) -> int:
        return self.turn.turn.number

    @property
    def said(self) -> str:
        """What the model has said so far in the call that is on its way."""
        return "".join(self.pieces)

    def plan(self) -> CallPlan:
        """The next call of the present model, as a row before it is made."""
        return plan_of(self.route)

    def remember(self, drafts: Sequence[Draft], seqs: Sequence[int]) -> None:
        """Note messages of this turn that were stored."""
        self.seqs.extend(seqs)
        self.newest.extend(map(as_message, drafts, seqs))
        del self.newest[:-REMEMBERED]

    def tell(self, kind: NoticeKind, text: str) -> None:
        """Say something to the person, and to the model with the next request."""
        self.notices.append(text)
        self.emit(Notice(kind, text))

    def as_if(self, draft: Draft) -> Message:
        """A draft as the message it will be."""
        return as_message(draft, 0)

    def spend(self, usage: Usage, cost: float | None) -> None:
        """Count a model call."""
        tokens, dollars, old = usage.input + usage.output, cost or 0.0, self.spending
        self.spending = Spending(
            steps=old.steps + 1, tokens=old.tokens + tokens, cost=old.cost + dollars,
            day_tokens=old.day_tokens + tokens, day_cost=old.day_cost + dollars,
        )  # fmt: skip
        self.usage, self.cost = added(self.usage, usage), self.cost + dollars

    async def unless_stopped(self, work: Coroutine[Any, Any, T]) -> T:
        """The work's result; when a person stops the turn it is cancelled, its end awaited (for
        GRACE), and Stopped raised. What was done by then is done: a commit that was first stays."""
        task = asyncio.ensure_future(work)
        waiting = asyncio.ensure_future(self.stop.wait())
        try:
            await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                task.cancel()
                await asyncio.wait((task,), timeout=GRACE)
            if not task.done():  # it does not end: it is left alone, and so is what comes of it
                task.add_done_callback(lambda done: done.cancelled() or done.exception())
                raise Stopped("stopped by a person")
            if task.cancelled() and self.stop.is_set():
                raise Stopped("stopped by a person")
            if task.cancelled():
                raise ClewError("the call was cancelled, and nobody had stopped it")
            error = task.exception()
            if error is not None and not isinstance(error, Exception):
                raise ClewError(f"{type(error).__name__} was raised") from error
            return task.result()
        finally:
            waiting.cancel()
            if not task.done():
                task.cancel()


def plan_of(route: Route) -> CallPlan:
    """A call of a model, as a row before it is made."""
    return CallPlan(model=route.model.name)


def added(one: Usage, other: Usage) -> Usage:
    """Both together."""
    return Usage(
        one.input + other.input, one.output + other.output, one.cached + other.cached,
        one.reasoning + other.reasoning,
    )  # fmt: skip


def as_message(draft: Draft, seq: int) -> Message:
    """A draft that was stored, as what it is now."""
    return Message.of(
        seq=seq, uid=NO_UID, role=draft.role, parts=draft.parts, created_at=0, meta=draft.meta
    )
