"""The right to run a conversation, and the turn that is run under it (T1).

A message opens a turn, or waits in the inbox of the one that is open; one transaction decides. A
turn that another process left is taken up before anything new is begun, when the policy says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from clew.domain.messages import Draft, Message, Role
from clew.domain.parts import ToolCall, answered_ids
from clew.domain.turns import CallPlan, CallResult, ModelCall, TurnKnown, Usage
from clew.errors import InputError, NotFound, Stale, TurnOpen
from clew.host.api import Report
from clew.host.limits import Spending, day_of
from clew.host.running import BY_PERSON, REMEMBERED, Running, added
from clew.host.services import Services
from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.turn import AsyncTurn

CLOSED = "the program that ran it ended"
"""The error of a turn that was left by a crash and closed by the policy."""


class Left(NamedTuple):
    """A turn for what was left. `resumed`: it was begun before."""

    turn: AsyncTurn
    resumed: bool


def marked(drafts: Sequence[Draft], queue: bool) -> Sequence[Draft]:
    """The drafts; with `queue` marked so that no running turn takes them."""
    if not queue:
        return drafts
    return [replace(d, meta={**(d.meta or {}), "queue": True}) for d in drafts]


async def left(
    services: Services, conv: AsyncConversation, plan: CallPlan, holder: str
) -> Left | None:
    """A turn for what was left: one that a crash interrupted or that waited for a person who has
    answered, messages that wait, or words at the end of the log that nobody has answered. None:
    there is nothing, or somebody is at it."""
    if (await conv.info()).turn is not None:
        if any(approval.state == "asked" for approval in await conv.approvals()):
            return None
        turn = await resume(services, conv, holder, waiting=True)
        if turn is not None:
            return Left(turn, True)
    info = await conv.info()
    if info.turn is not None or info.ended or not (info.waiting or await _unanswered(conv)):
        return None
    try:
        head = None if info.waiting else info.head
        begun = await conv.begin_turn(holder=holder, call=plan, head=head)
    except (Stale, TurnOpen, InputError):
        return None  # somebody else was first
    return Left(begun, False) if isinstance(begun, AsyncTurn) else None


async def resume(
    services: Services, conv: AsyncConversation, holder: str, *, waiting: bool = False
) -> AsyncTurn | None:
    """Take up the turn that is open here and whose holder is gone; with `waiting` also one that
    waits for a person. By the policy `close` it is closed as interrupted instead."""
    turn = next(iter(await conv.turns(1)), None)
    if turn is None or turn.state not in (("running", "waiting") if waiting else ("running",)):
        return None
    try:
        taken = await conv.resume_turn(holder=holder)
    except (NotFound, TurnOpen):
        return None
    if turn.state == "running" and services.config.chat.recovery == "close":
        await conv.interrupt_turn(CLOSED)
        return None
    return taken


async def prepare(run: Running) -> None:
    """What a turn starts from: what was spent today, and what the model should know of the turn
    before."""
    run.spending = await _day_spending(run.services)
    before = await _last_word(run)
    if before is not None:
        run.notices.append(before)


async def take_stock(run: Running) -> tuple[ToolCall, ...]:
    """What there is of a turn that was taken up: its spending, its newest messages; gives the
    calls of its last step that have no result. What its model call had said is asked for again."""
    number, first = run.number, run.turn.turn.first_seq
    failed = CallResult(state="failed", error="the program that made it ended")
    day = run.spending
    for call in await _calls(run.conv, number):
        if call.state == "planned":
            await run.conv.finish_call(call.number, failed)
        else:
            run.spend(call.usage, call.cost)
    run.spending = replace(run.spending, day_tokens=day.day_tokens, day_cost=day.day_cost)
    newest, open_ = deque[Message](maxlen=REMEMBERED), dict[str, ToolCall]()
    async for message in run.conv.messages(first=first):
        newest.append(message)
        made = {part.id: part for part in message.parts if isinstance(part, ToolCall)}
        if message.role is Role.ASSISTANT:
            open_ = made  # those of the last message
        run.ids.update(made)
        for id in answered_ids(message.parts):
            open_.pop(id, None)
    run.newest = list(newest)
    run.seqs = list(range(first, run.turn.appended.head + 1))
    return tuple(open_.values())


async def _calls(conv: AsyncConversation, turn: int) -> list[ModelCall]:
    """The model calls of the newest turn: they are among the newest calls."""
    look = 200
    while True:
        calls = await conv.calls(newest=look)
        if len(calls) < look or any(c.turn is not None and c.turn < turn for c in calls):
            return [call for call in calls if call.turn == turn]
        look *= 4


async def _unanswered(conv: AsyncConversation) -> bool:
    """Whether the log ends with words that nobody has tried to answer, or whose turn was broken
    off by a crash or by who took the right: not by a person, a limit, a failure or the policy."""
    page = await conv.log(limit=1, order="newest")
    if not page.items or page.items[0].role not in (Role.USER, Role.TOOL):
        return False
    number = page.items[0].turn
    if number is None:
        return page.items[0].role is Role.USER
    turn = next(iter(await conv.turns(1, before=number + 1)), None)
    if turn is None or turn.state != "interrupted":
        return False
    return turn.error not in (BY_PERSON, CLOSED)


async def _day_spending(services: Services) -> Spending:
    """What the profile has spent today, if there is a limit for it."""
    wanted = services.config.limits
    if not (wanted.day_tokens or wanted.day_cost):
        return Spending()
    rows = await services.profile.usage_by("model", *day_of(services.profile.clock.now()))
    return Spending(
        day_tokens=sum(row.usage.input + row.usage.output for row in rows),
        day_cost=sum(row.cost for row in rows),
    )


async def _last_word(run: Running) -> str | None:
    """That the turn before ended early, and why."""
    for turn in await run.conv.turns(1, before=run.number):
        if turn.state in ("interrupted", "failed") and turn.error:
            return f"Your last turn ended early: {turn.error}"
    return None


async def known(conv: AsyncConversation, outcome: TurnKnown) -> Report:
    """What came of messages that were there already: the answer they got."""
    if outcome.turn is None:
        return Report(turn=None, state="known", seqs=outcome.appended.seqs)
    number = outcome.turn.number
    text, seqs = "", list[int]()
    async for message in conv.messages(first=outcome.turn.first_seq):
        if message.turn != number:
            break
        seqs.append(message.seq)
        text = message.text if message.role is Role.ASSISTANT else text
    total, cost = Usage(), 0.0
    for call in await conv.calls():
        if call.turn == number:
            total, cost = added(total, call.usage), cost + (call.cost or 0.0)
    return Report(
        turn=number, state="known", text=text, seqs=tuple(seqs), usage=total, cost=cost,
        error=outcome.turn.error,
    )  # fmt: skip
