"""One model call: asked, streamed, asked again. What helps against a failure is decided by its
class (retry.py); here it is done."""

from __future__ import annotations

import asyncio
import time
from typing import Any, NamedTuple

from msgspec.structs import replace

from clew.context.build import Context
from clew.context.prefix import prefix_of
from clew.domain.parts import Part, Text, ToolCall
from clew.domain.turns import CallResult, Usage
from clew.errors import ClewError
from clew.host.events import CallStarted, Notice, Retrying
from clew.host.retry import Again, Compact, Fallback, GiveUp, next_step
from clew.host.running import Running
from clew.providers.api import (
    Body,
    Model,
    ReasoningDelta,
    Reply,
    Stop,
    TextDelta,
)
from clew.providers.errors import BadRequest, ProviderError, ServerFailed
from clew.store.aio.database import hop
from clew.store.aio.handles import blocking

LONGEST_ID = 512
"""Characters of the id of a call that is kept as it is."""


class Answer(NamedTuple):
    """What a model answered, and how the call went."""

    reply: Reply
    result: CallResult

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.reply.parts if isinstance(part, ToolCall))

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.reply.parts if isinstance(part, Text))


async def ask(run: Running, context: Context) -> Answer | None:
    """The answer of the model; None: the context must be built anew, since it was compacted, or
    another model is asked. Raises ProviderError when nobody is left to ask, and Stopped."""
    body, tried = await run.unless_stopped(_rendered(run, context)), 0
    while True:
        tried += 1
        run.pieces.clear()
        run.emit(CallStarted(run.route.model, context.tokens, context.limit))
        run.services.at("asked")
        began = time.monotonic()
        try:
            reply = await run.unless_stopped(_streamed(run, body))
        except ProviderError as error:
            if not await _helped(run, context, error, tried):
                return None
        else:
            run.compacted = False
            reply = replace(reply, parts=tuple(_having_id(run, part) for part in reply.parts))
            return Answer(reply, _result(run, context, body, reply, time.monotonic() - began))


async def _rendered(run: Running, context: Context) -> Body:
    request = run.services.request(blocking(run.conv), run.info, run.route.model, context)
    return await hop(run.route.provider.render, request)


async def _streamed(run: Running, body: Body) -> Reply:
    """The whole answer; its pieces are told as they come."""
    reply: Reply | None = None
    async for event in run.route.provider.stream(body):
        match event:
            case TextDelta(text):
                if not run.pieces:
                    run.services.at("streaming")
                run.pieces.append(text)
                run.emit(event)
            case ReasoningDelta():
                run.emit(event)
            case Reply():
                reply = event
            case _:
                pass
    if reply is None or not any(isinstance(part, Text | ToolCall) for part in reply.parts):
        raise _empty(run.route.model, "other" if reply is None else reply.stop)
    return reply


def _empty(model: Model, stop: Stop) -> ProviderError:
    """An answer that says nothing. Where it is known why, asking the same again is no use."""
    where = model.provider
    match stop:
        case "length":
            text = (
                f"{model.shown} used all the room of its reply for thinking and said nothing. Give "
                f'it more (`reply` in [models."{model.shown}"]), or let it think less '
                "(reasoning_effort in its settings)."
            )
            return BadRequest(text, provider=where)
        case "content_filter" | "refusal":
            text = (
                f"{model.shown} withheld its answer: a filter of the provider did not let it pass. "
                "Say it in other words, or choose another model (/model)."
            )
            return BadRequest(text, provider=where)
        case _:
            text = (
                f"{model.shown} gave an empty answer; ask again, or choose another model (/model)"
            )
            return ServerFailed(text, provider=where)


def _having_id(run: Running, part: Part) -> Part:
    """A call under an id that no other of the turn has: results and approvals know it by that, and
    some models count from nought in each answer, or give none."""
    if not isinstance(part, ToolCall):
        return part
    given = part.id if part.id.isprintable() and 0 < len(part.id) <= LONGEST_ID else "call"
    id, number = given, 2
    while id in run.ids:
        id, number = f"{given}_{number}", number + 1
    run.ids.add(id)
    return part if id == part.id else replace(part, id=id)


async def _helped(run: Running, context: Context, error: ProviderError, tried: int) -> bool:
    """Do what helps: true, ask the same again; false, the context must be built anew. Raises the
    error when nothing does."""
    step = next_step(
        error, tried=tried, tries=run.services.config.limits.retries,
        jitter=run.services.jitter(), more=bool(run.others), compacted=run.compacted,
    )  # fmt: skip
    match step:
        case Again(seconds):
            run.emit(Retrying(str(error), seconds, run.route.model))
            await run.unless_stopped(asyncio.sleep(seconds))
            return True
        case Compact():
            run.compacted = True
            compactor = await run.services.compactor(run.conv, run.route)
            target = context.tokens // 2  # by our own count it had fitted, so that says little
            outcome = await run.unless_stopped(compactor.compact(run.conv, "hard", target=target))
            if outcome.state in ("committed", "overtaken"):
                return False
            return await _helped(run, context, error, tried)
        case Fallback():
            await _switch(run, error)
            return False
        case GiveUp():
            raise _together(run, error)


def _together(run: Running, error: ProviderError) -> ProviderError:
    """The failure of the last model, and those of the models before: the person wanted them."""
    if not run.refused:
        return error
    text = f"{error} Before it: {' '.join(run.refused)}"
    return type(error)(text, provider=error.provider, status=error.status)


async def _switch(run: Running, error: ProviderError) -> None:
    """Ask the next model that can be asked: the call that failed is noted, the next one planned."""
    run.refused.append(f"{run.route.model.shown}: {error}")
    while run.others:
        name = run.others.pop(0)
        try:
            run.route = await run.services.route(name)
        except ClewError as wrong:
            run.emit(Notice("model", f"{name} cannot be asked: {wrong}"))
            continue
        run.compacted = False
        run.emit(Retrying(str(error), 0.0, run.route.model))
        failed = CallResult(state="failed", error=told(error))
        recorded = await run.turn.record(call=run.call, result=failed, next_call=run.plan())
        run.call = recorded.call
        return
    run.refused.pop()
    raise _together(run, error)


def told(error: ProviderError) -> str:
    """An error as the row of its call keeps it: short, and nothing of what was sent."""
    return f"{type(error).__name__}{f' {error.status}' if error.status else ''}"


def _result(run: Running, context: Context, body: Body, reply: Reply, seconds: float) -> CallResult:
    usage: Usage = reply.usage
    price = run.route.model.price
    cost = reply.cost if reply.cost is not None or price is None else price.cost(usage)
    payload: dict[str, Any] = body.payload
    return CallResult(
        usage=usage, cost=cost, latency=round(seconds * 1e6),
        prefix_hash=prefix_of(payload, body.messages), expected=context.expected,
        generation=context.generation, up_to_seq=context.up_to_seq,
    )  # fmt: skip
