"""Calls that a person must allow: a list in each conversation, in the order they were asked."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from clew.domain.turns import Approval, Ask
from clew.errors import NotFound
from clew.testing.reference.state import State, World
from clew.testing.reference.values import key, label


def ask(world: World, state: State, turn: int, asks: Sequence[Ask]) -> None:
    """Behind those that are there; one that is there stays as it is."""
    for one in asks:
        name = key(world.limits, "tool name", one.name)
        call = key(world.limits, "call id", one.call_id)
        if all((a.turn, a.call_id) != (turn, call) for a in state.approvals):
            state.approvals.append(
                Approval(
                    turn=turn, call_id=call, name=name, state="asked", always=False, by=None,
                    asked_at=world.clock.now(), answered_at=None,
                )
            )  # fmt: skip


def of_turn(state: State) -> tuple[Approval, ...]:
    """Those of the open turn."""
    turn = state.open_turn
    found = [a for a in state.approvals if turn is not None and a.turn == turn.number]
    return tuple(sorted(found, key=lambda a: (a.asked_at, a.call_id)))


def always(state: State) -> tuple[str, ...]:
    """Names of tools."""
    return tuple(sorted({a.name for a in state.approvals if a.always}))


def answer(
    world: World, state: State, call_id: str, allow: bool, keep: bool, by: str | None
) -> bool:
    """The first answer stays."""
    by = label(world.limits, "by", by)
    mine = next((a for a in of_turn(state) if a.call_id == call_id), None)
    if mine is None:
        raise NotFound("call that waits for an answer", call_id)
    if mine.state != "asked":
        return False
    state.approvals[state.approvals.index(mine)] = replace(
        mine, state="allowed" if allow else "denied", always=allow and keep, by=by,
        answered_at=world.clock.now(),
    )  # fmt: skip
    return True


def start(state: State, calls: Sequence[str]) -> None:
    """Those that were allowed may have run from now on."""
    for mine in of_turn(state):
        if mine.call_id in calls and mine.state == "allowed":
            state.approvals[state.approvals.index(mine)] = replace(mine, state="started")
