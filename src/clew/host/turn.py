"""One turn, from the right to run it to its published reply. Read it from top to bottom.

    1 received   a message has come (Host.say), nothing is durable yet
    2, 3 begun   T1: right to run, messages, turn, the first model call planned (claims.py)
    4 context    what the model is asked, within its window; compacted first when it must (T3)
    5 asked      the model; nothing of the store is open meanwhile (calling.py)
    6 recorded   T2: its message; then the tools, their results T2 as they come (toolstep.py);
      finished   T2: the last message, deliveries, the turn closed, the right free
    7 compacted  T3: what the next request wants, beside everything else (beside.py)
    8 published  T4: deliveries are sent, likewise (publisher.py)

Each T is one transaction. Whatever ends the process between two of them leaves a turn that the
next host takes up (claims.resume): what was stored is not done again, what was not is repeated, and
a tool that may have run is said to have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from clew.compaction.outcome import Outcome
from clew.context.build import Context
from clew.domain.messages import Role, partial
from clew.domain.parts import ToolResult
from clew.domain.turns import CallResult, Delivery, TurnEnded, TurnState
from clew.errors import ClewError, RightLost, Spooled, StoreError, TooLarge
from clew.host import claims, events, limits, toolstep
from clew.host.api import Report
from clew.host.calling import Answer, ask, told
from clew.host.keeper import kept
from clew.host.running import BY_PERSON, Running, Stopped
from clew.host.toolsets import repin
from clew.providers.errors import ProviderError

LOST = "another host has taken over"


async def run_turn(run: Running, resumed: bool = False) -> tuple[Report, int]:
    """Run an open turn to its end; gives its report, and how many messages wait for the next one.

    `resumed`: it was begun before, and is taken up. Raises ProviderError when no model
    could answer, ContextTooLarge when nothing fits, and whatever else went wrong: the turn is
    closed as failed then, if the store can do so.
    """
    services = run.services
    services.at("begun")
    async with kept(run):
        try:
            await claims.prepare(run)
            left = await claims.take_stock(run) if resumed else ()
            came = await toolstep.take_up(run, left) if left else await _planned(run)
            while came == "on":
                if (reason := toolstep.over(run)) is not None:
                    return await _end(run, "failed", reason, limit=True)
                context = await _context(run)
                services.at("context")
                answer = await ask(run, context)
                if answer is None:
                    continue
                run.spend(answer.result.usage, answer.result.cost)
                run.notices.clear()
                services.at("answered")
                if not answer.calls:
                    return await _finish(run, answer, context)
                await toolstep.record(run, answer)
                came = await toolstep.run_all(run)
            return await _wait(run)
        except Stopped:
            return await _end(run, "interrupted", await _who(run) if run.lost else BY_PERSON)
        except RightLost:
            run.lost = True
            return await _end(run, "interrupted", await _who(run))
        except Spooled as spooled:
            return _spooled(run, spooled)
        except asyncio.CancelledError:  # the program ends
            await _end(run, "interrupted", BY_PERSON)
            raise
        except Exception as error:  # of anybody's: the turn must not stay open
            # What the store had no room or time for is gone on with, when somebody asks for that.
            state = "interrupted" if isinstance(error, StoreError) else "failed"
            with suppress(ClewError):
                await _end(run, state, _why(error), failure=error)
            raise


async def _planned(run: Running) -> toolstep.Came:
    """A turn that was taken up between two steps has no call that is planned."""
    if run.call is None and toolstep.over(run) is None:
        await toolstep.plan(run)
    return "on"


async def _context(run: Running) -> Context:
    """What the model is asked. When a compaction came in between, the tools that are there now are
    pinned: the request begins anew anyway."""
    compactor = await run.services.compactor(run.conv, run.route, _watching(run))
    nearly = limits.nearly(run.services.config.limits, run.spending)
    notices = [*run.notices, *([nearly] if nearly else [])]
    told = _telling(run)
    context = await run.unless_stopped(compactor.context(run.conv, notices=notices, told=told))
    before = run.generation
    if (
        before is not None
        and context.generation > before
        and await repin(run.services, run.conv, context.toolset)
    ):
        context = await run.unless_stopped(compactor.context(run.conv, notices=notices))
    run.generation = context.generation
    return context


def _watching(run: Running) -> Callable[[str], None]:
    """For a compaction, which runs in a thread: says when one has really begun."""
    loop = asyncio.get_running_loop()

    def watch(step: str) -> None:
        if step == "open":
            run.services.at("compacting")
            loop.call_soon_threadsafe(run.emit, events.Compacting())

    return watch


def _telling(run: Running) -> Callable[[Outcome], None]:
    """Likewise what came of it."""
    loop = asyncio.get_running_loop()

    def told(outcome: Outcome) -> None:
        run.services.at("compacted")
        loop.call_soon_threadsafe(run.emit, events.Compacted(outcome))

    return told


async def _finish(run: Running, answer: Answer, context: Context) -> tuple[Report, int]:
    """T2: the answer, what is to be sent, the end of the turn."""
    draft = toolstep.message(answer)
    ended = await run.turn.finish(
        [draft], call=run.call, result=answer.result,
        deliveries=await _deliveries(run, answer.text),
    )  # fmt: skip
    run.call, run.text = None, answer.text
    run.remember([draft], [ended.head])
    usage, cost = answer.result.usage, answer.result.cost
    run.emit(events.Answered(ended.head, (), usage, cost))
    if answer.reply.stop == "length":
        run.emit(events.Notice("limit", "The answer ends early: the model's reply was full."))
    run.services.at("finished")
    run.filled = context.tokens + usage.output
    _told(run, ended, None)
    return _report(run, "done"), ended.waiting


async def _deliveries(run: Running, text: str) -> list[Delivery]:
    """One for each route that the turn's messages came by (`meta.reply_to`)."""
    if run.services.publisher is None:
        return []
    routes: dict[str, None] = {}
    first = run.turn.turn.first_seq
    async for message in run.conv.messages(first=first):
        route = (message.meta or {}).get("reply_to")
        if message.role is Role.USER and isinstance(route, str):
            routes[route] = None
    payload = {"text": text, "conversation": run.conv.id, "turn": run.number}
    return [Delivery(route, payload) for route in routes]


async def compact_beside(run: Running) -> None:
    """T3 after the reply, when the next request would have to wait for it. Another attempt, a stop
    (which cancels it in the store) or the end of the program change nothing."""
    compactor = await run.services.compactor(run.conv, run.route, _watching(run))
    outcome = await compactor.compact(run.conv, "soft")
    if outcome.attempt is not None:
        _telling(run)(outcome)


async def _wait(run: Running) -> tuple[Report, int]:
    """T2: the turn waits for a person, its right is free."""
    ended = await run.turn.wait()
    run.emit(toolstep.asked(run))
    run.services.at("waiting")
    _told(run, ended, None)
    return _report(run, "waiting"), 0


async def _end(
    run: Running, state: TurnState, why: str, *, limit: bool = False,
    failure: BaseException | None = None,
) -> tuple[Report, int]:  # fmt: skip
    """T2: the turn ends without an answer. What was streamed is kept as a partial message, each
    open call has a result that says what became of it. When the right is lost nothing is written:
    who took it has stored what there was."""
    if limit:
        run.emit(events.Notice("limit", why))
    if run.lost:
        _told(run, TurnEnded(number=run.number, state=state, waiting=0, head=0), why)
        return _report(run, state, why), 0
    became = toolstep.STOPPED if why == BY_PERSON else toolstep.BROKEN
    drafts = [
        toolstep.result_message(ToolResult(id, became, call.name, is_error=True))
        for id, call in run.open.items()
    ]  # fmt: skip
    said = run.said if run.said.strip() else ""
    if said:
        drafts.append(partial(said))
    error = told(failure) if isinstance(failure, ProviderError) else why
    result = CallResult(state="failed", error=error)

    async def finish() -> TurnEnded:
        return await run.turn.finish(
            drafts, call=run.call, result=result, state=state, error=why
        )  # fmt: skip

    try:
        try:
            ended = await finish()
        except TooLarge:  # what was streamed is no message, and an end must not fail
            if not said:
                raise
            said, drafts = "", drafts[:-1]
            ended = await finish()
    except RightLost:
        run.lost = True
        return _report(run, state, LOST), 0
    seqs = range(ended.head - len(drafts) + 1, ended.head + 1)
    run.remember(drafts, seqs)
    if said:
        run.text = said
        run.emit(events.Answered(ended.head, (), run.usage, run.cost, partial=True))
    run.services.at("finished")
    _told(run, ended, why)
    return _report(run, state, why), ended.waiting


def _spooled(run: Running, spooled: Spooled) -> tuple[Report, int]:
    """The store is away. What the step brought is durable and comes in as soon as it can, and the
    turn is closed as interrupted then; here nothing more is written."""
    why = f"the store is away, and the turn stopped: {spooled.cause}"
    run.emit(events.Notice("store", str(spooled)))
    _told(run, TurnEnded(number=run.number, state="interrupted", waiting=0, head=0), why)
    return _report(run, "interrupted", why), 0


async def _who(run: Running) -> str:
    """Who ended a turn that was lost: a person, from elsewhere, or another host."""
    with suppress(ClewError):  # the conversation may be gone
        for turn in await run.conv.turns(1, before=run.number + 1):
            if turn.error == BY_PERSON:
                return BY_PERSON
    return LOST


def _why(error: BaseException) -> str:
    """An error in words for a person. Of what is not ours the kind alone: its text may hold what
    was sent."""
    return str(error) if isinstance(error, ClewError) else f"{type(error).__name__} was raised"


def _told(run: Running, ended: TurnEnded, error: str | None) -> None:
    run.emit(events.TurnEnded(ended.number, ended.state, ended.waiting, run.usage, run.cost, error))


def _report(run: Running, state: TurnState, error: str | None = None) -> Report:
    return Report(
        turn=run.number, state=state, text=run.text, seqs=tuple(run.seqs), usage=run.usage,
        cost=run.cost, error=error,
    )  # fmt: skip
