"""Turns, model calls and the right to run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from clew.domain.parts import answered_ids, call_ids
from clew.domain.turns import CallPlan, CallResult, ModelCall, Right, Turn, TurnState, Usage
from clew.errors import InputError, NotFound, RightLost
from clew.testing.reference.state import State, World
from clew.testing.reference.values import key, label, plain_json


def is_free(state: State, now: int) -> bool:
    """Whether another may take the right. Nobody dies here, so only time frees it."""
    return state.holder is None or abs(now - state.held_at) >= state.held_ttl


def is_busy(state: State, now: int) -> bool:
    """Whether an open turn keeps others from appending."""
    turn = state.open_turn
    return turn is not None and (not is_free(state, now) or turn.state == "waiting")


def set_turn(here: State, number: int, /, **fields: Any) -> Turn:
    """Change a turn."""
    turn = here.turns[number - 1] = replace(here.turns[number - 1], **fields)
    return turn


def close_turn(state: State, how: TurnState, now: int, error: str | None = None) -> None:
    """The open turn is over, its right free, its planned calls failed."""
    turn = state.open_turn
    if turn is None:
        return
    set_turn(state, turn.number, state=how, ended_at=now, error=error)
    state.holder = None
    state.calls = [
        replace(call, state="failed", error="interrupted")
        if call.turn == turn.number and call.state == "planned" else call
        for call in state.calls
    ]  # fmt: skip


def held(state: State, fence: int, turn: int | None = None) -> None:
    """RightLost unless the fence is the current one and the turn is open."""
    still_open = state.open_turn
    if state.fence != fence or still_open is None or turn not in (None, still_open.number):
        raise RightLost(state.id, fence)


def holder_name(world: World, name: str | None) -> str:
    """The holder's name, or a new one."""
    if name is None:
        return f"reference-{world.ids.uid().hex()}"
    return key(world.limits, "holder", name)


def take_right(state: State, holder: str, ttl: int, now: int) -> Right:
    """The next fence, for this holder."""
    state.fence += 1
    state.holder, state.held_at, state.held_ttl = holder, now, ttl
    return Right(state.id, state.fence, holder, now, ttl)


def plan_call(
    world: World, state: State, plan: CallPlan, now: int, turn: int | None = None,
    attempt: int | None = None,
) -> int:  # fmt: skip
    """Note a model call before it is made."""
    plain_json(world.limits, "settings", plan.settings)
    if plan.expected is not None and not 0 <= plan.expected <= 1 << 53:
        raise InputError(f"expected {plan.expected} is no count of tokens")
    call = ModelCall(
        number=len(state.calls) + 1, turn=turn, purpose=plan.purpose,
        model=key(world.limits, "model", plan.model), state="planned",
        generation=len(state.compactions), up_to_seq=state.head, usage=Usage(), cost=None,
        latency=None, started_at=now, expected=plan.expected,
        after_attempt=attempt or len(state.attempts) or None,
    )  # fmt: skip
    state.calls.append(call)
    return call.number


def finish_call(world: World, state: State, number: int, result: CallResult) -> None:
    """Note how it ended; the first result stays."""
    usage = result.usage
    counts = (
        usage.input, usage.output, usage.cached, usage.reasoning, result.latency or 0,
        result.expected or 0, result.generation or 0, result.up_to_seq or 0,
    )  # fmt: skip
    if not all(0 <= count <= 1 << 53 for count in counts):
        raise InputError("a number of the result is negative or too high")
    if not 0 < number <= len(state.calls):
        raise NotFound("model call", str(number))
    call = state.calls[number - 1]
    if call.state == "planned":
        state.calls[number - 1] = replace(
            call, state=result.state, usage=result.usage, cost=result.cost,
            latency=result.latency, error=label(world.limits, "call error", result.error),
            partial=None, prefix_hash=label(world.limits, "prefix hash", result.prefix_hash),
            expected=call.expected if result.expected is None else result.expected,
            generation=call.generation if result.generation is None else result.generation,
            up_to_seq=call.up_to_seq if result.up_to_seq is None else result.up_to_seq,
        )  # fmt: skip


def open_calls(state: State, turn: int) -> set[str]:
    """Tool calls of a turn that have no result yet."""
    mine = state.messages[state.turns[turn - 1].first_seq - 1 :]
    made = {call for message in mine for call in call_ids(message.parts)}
    return made - {call for message in mine for call in answered_ids(message.parts)}


def turn_of(state: State, seqs: Sequence[int]) -> Turn | None:
    """The turn that took messages which are there already."""
    number = state.messages[seqs[-1] - 1].turn if seqs else None
    return None if number is None else state.turns[number - 1]
