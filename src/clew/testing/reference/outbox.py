"""Replies to send: a list in each conversation, of which the first that is pending may be due."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from clew.domain.turns import Delivered, Delivery, DeliveryState
from clew.errors import InputError
from clew.testing.reference import values
from clew.testing.reference.state import State, World

LEASE = 60_000_000
BACKOFF = (5_000_000, 30_000_000, 300_000_000, 3_600_000_000)


def add(world: World, state: State, turn: int, deliveries: Sequence[Delivery]) -> None:
    """Behind those that are there."""
    for delivery in deliveries:
        row = Delivered(
            conversation=state.id, number=len(state.deliveries) + 1, turn=turn,
            route=delivery.route, state="pending", attempts=0, next_at=world.clock.now(),
            payload=values.plain_json(
                world.limits, "payload", delivery.payload, world.limits.message
            ),
        )  # fmt: skip
        state.deliveries.append(row)


def take(world: World, profile: str, routes: str) -> Delivered | None:
    """The one that has been due for longest, taken for a minute."""
    now, due = world.clock.now(), list[Delivered]()
    for state in world.states.values():
        if state.binned_at is not None:
            continue
        first = next((row for row in state.deliveries if row.state == "pending"), None)
        if state.profile == profile and first is not None and first.route.startswith(routes):
            due += [] if now < first.next_at <= now + BACKOFF[-1] else [first]
    if not due:
        return None
    mine = min(due, key=lambda row: row.next_at)
    taken = replace(mine, attempts=mine.attempts + 1, next_at=now + LEASE)
    world.states[mine.conversation].deliveries[mine.number - 1] = taken
    return taken


def settle(
    world: World, profile: str, taken: Delivered, error: str | None, give_up: bool
) -> Delivered | None:
    """Sent, or due again later, or failed; nothing when another has it."""
    if give_up and error is None:
        raise InputError("why is it given up?")
    error = values.remark(world.limits, error)
    state = world.states.get(taken.conversation)
    if state is None or state.profile != profile or not taken.number <= len(state.deliveries):
        return None
    row = state.deliveries[taken.number - 1]
    if row != taken:
        return None
    how: DeliveryState = "failed" if give_up else "pending"
    pause = 0 if give_up or error is None else BACKOFF[min(row.attempts, len(BACKOFF)) - 1]
    done = replace(
        taken, state="sent" if error is None else how, next_at=world.clock.now() + pause,
        error=error,
    )  # fmt: skip
    state.deliveries[taken.number - 1] = done
    return done
