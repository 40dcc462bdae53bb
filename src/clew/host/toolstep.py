"""The tools of a step: which calls may run, what becomes of each, all durable in order.

A call is in the log, with the question whether a person must allow it, before it may run (T2). So
after a crash a call without a result and without such a question may have run, and one that was
asked about has not, unless it is marked as started. Nothing runs twice unless it is harmless.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from clew.domain.messages import Draft, Role
from clew.domain.parts import ToolCall, ToolResult
from clew.domain.turns import Ask, CallPlan
from clew.host import limits, loops
from clew.host.calling import Answer
from clew.host.events import Answered, Asked, Steered, ToolFinished, ToolStarted
from clew.host.running import Running
from clew.tools.api import ToolCallContext

INTERRUPTED = (
    "[interrupted: the program ended while this call ran. It may have had effects; look before "
    "you make it again.]"
)
AGAIN = "The program ended while {} ran; it only reads, so it is run again."
STOPPED = "[stopped by the person: this call may have had effects]"
BROKEN = "[the turn failed while this call was open: it may have had effects]"
DENIED = "[this call was not allowed; it was not run]"
FORBIDDEN = "[the configuration does not allow this tool; it was not run]"

Came = Literal["on", "waiting"]
"""The turn goes on with the next model call, or waits for a person."""


async def record(run: Running, answer: Answer) -> None:
    """Store the model's message with its calls, and which of them a person must allow (T2)."""
    toolbox = run.services.toolbox
    await toolbox.prepare(call.name for call in answer.calls)
    allowed = await run.conv.allowed_tools()
    run.verdicts = {call.id: toolbox.verdict(call.name, allowed) for call in answer.calls}
    asks = [Ask(call.id, call.name) for call in answer.calls if run.verdicts[call.id] == "ask"]
    draft = message(answer)
    recorded = await run.turn.record(
        [draft], call=run.call, result=answer.result, asks=asks
    )  # fmt: skip
    run.call = None
    run.pieces.clear()
    run.remember([draft], recorded.appended.seqs)
    run.open = {call.id: call for call in answer.calls}
    run.text = answer.text
    run.emit(
        Answered(recorded.appended.seqs[-1], answer.calls, answer.result.usage, answer.result.cost)
    )
    run.services.at("recorded")


def message(answer: Answer) -> Draft:
    """The model's message."""
    reply = answer.reply
    meta = {} if reply.stop in ("stop", "tool_calls") else {"stop": reply.stop}
    return Draft(role=Role.ASSISTANT, parts=reply.parts, meta=meta or None)


async def run_all(run: Running) -> Came:
    """Bring every open call to a result, and plan the next model call with the last of them; or
    find that a person must be asked."""
    calls = [call for call in run.open.values() if run.verdicts[call.id] == "allow"]
    forbidden = [
        ToolResult(call.id, FORBIDDEN, call.name, is_error=True)
        for call in run.open.values() if run.verdicts[call.id] == "deny"
    ]  # fmt: skip
    return await _run(run, calls, forbidden)


async def take_up(run: Running, calls: Sequence[ToolCall]) -> Came:
    """The same for a turn that another process left: what may have run is reported, and run again
    only where that does no harm."""
    run.open = {call.id: call for call in calls}
    await run.services.toolbox.prepare(call.name for call in calls)
    asked = {a.call_id: a for a in await run.conv.approvals()}
    now: list[ToolCall] = []
    ready: list[ToolResult] = []
    started: list[str] = []
    for call in calls:
        approval = asked.get(call.id)
        state = None if approval is None else approval.state
        if state == "asked":
            continue
        if state == "denied":
            ready.append(ToolResult(call.id, DENIED, call.name, is_error=True))
        elif state == "allowed":
            now.append(call)
            started.append(call.id)
        elif run.services.toolbox.is_read_only(call.name):
            now.append(call)
            run.tell("tools", AGAIN.format(call.name))
        else:
            ready.append(ToolResult(call.id, INTERRUPTED, call.name, is_error=True))
    if started:
        await run.turn.record(started=started)
    return await _run(run, now, ready)


async def _run(run: Running, calls: Iterable[ToolCall], ready: list[ToolResult]) -> Came:
    """Run calls at once, and store each result as soon as it is there: a slow tool, or a crash,
    costs no other's."""
    running = {asyncio.ensure_future(_one(run, call)): call for call in calls}
    try:
        if not running:
            return await _store(run, ready)
        came: Came = "on"
        while running:
            came = await _store_some(run, running, ready)
            ready = []
        return came
    except Exception:  # a stop, most often
        await _keep_done(run, running)
        raise
    finally:
        await _cancel(running)


async def _store_some(
    run: Running, running: dict[asyncio.Task[ToolResult], ToolCall], ready: Sequence[ToolResult]
) -> Came:
    done, _ = await run.unless_stopped(asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED))
    run.services.at("ran")
    results = [*ready, *(task.result() for task in done)]
    for task in done:
        del running[task]
    return await _store(run, results)


async def _keep_done(run: Running, running: Mapping[asyncio.Task[ToolResult], ToolCall]) -> None:
    """End what runs, and store the results of what was done by then."""
    await _cancel(running)
    done = [task.result() for task in running if not task.cancelled() and not task.exception()]
    if done and not run.lost:
        await _record(run, [result_message(result) for result in done], done)


async def _cancel(running: Iterable[asyncio.Task[ToolResult]]) -> None:
    tasks = list(running)
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


async def _one(run: Running, call: ToolCall) -> ToolResult:
    run.emit(ToolStarted(call))
    run.services.at("tool")
    began = time.monotonic()
    where = ToolCallContext(run.conv, run.services.profile, run.stop, call.id)
    result = await run.services.toolbox.call(call, where)
    run.emit(ToolFinished(call, result, time.monotonic() - began))
    return result


async def _store(run: Running, results: Sequence[ToolResult]) -> Came:
    """Store results (T2); with those of the last calls also what waits in the inbox, if the turn
    takes it, and the next model call, unless the turn ends here."""
    drafts = [result_message(result) for result in results]
    left = run.open.keys() - {result.call_id for result in results}
    last = not left
    plan = run.plan() if last and over(run, drafts) is None else None
    if not drafts and plan is None:
        return "on" if last else "waiting"
    await _record(run, drafts, results, plan)
    run.services.at("results")
    return "on" if last else "waiting"


async def _record(
    run: Running, drafts: Sequence[Draft], results: Sequence[ToolResult],
    plan: CallPlan | None = None,
) -> None:  # fmt: skip
    recorded = await run.turn.record(
        drafts, next_call=plan, take_inbox=plan is not None and steers(run)
    )
    run.call = recorded.call
    run.remember(drafts, recorded.appended.seqs)
    for result in results:
        run.open.pop(result.call_id, None)
    if recorded.taken:
        head = recorded.appended.head
        run.seqs.extend(range(head - len(recorded.taken) + 1, head + 1))
        run.emit(Steered(recorded.taken))


async def plan(run: Running) -> None:
    """Plan the next model call of a turn that was taken up between two steps."""
    await _record(run, (), (), run.plan())


def steers(run: Running) -> bool:
    """Whether messages that come in meanwhile enter the turn."""
    return run.services.config.chat.busy == "steer"


def over(run: Running, drafts: Sequence[Draft] = ()) -> str | None:
    """Why the turn must end here, in words for a person: a limit, or a loop. `drafts`: messages
    about to be stored."""
    reached = limits.check(run.services.config.limits, run.spending)
    if reached is not None:
        return reached.text
    messages = [*run.newest, *(run.as_if(draft) for draft in drafts)]
    loop = loops.find(messages, run.services.config.limits.repeats)
    return None if loop is None else loop.shown


def result_message(result: ToolResult) -> Draft:
    """A tool's answer as a message."""
    return Draft(role=Role.TOOL, parts=(result,))


def asked(run: Running) -> Asked:
    """What a person must allow."""
    return Asked(run.number, tuple(run.open.values()))
