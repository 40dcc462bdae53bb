"""Boundaries and who is told of them: a list in each conversation, read from its beginning."""

from __future__ import annotations

from msgspec.structs import replace

from clew.domain.boundaries import (
    Boundary,
    BoundaryHandler,
    BoundaryKind,
    DeliveryReport,
    PendingBoundary,
    Subscriber,
)
from clew.errors import NotFound
from clew.store.boundaries import Telling
from clew.testing.reference import values
from clew.testing.reference.state import State, World

LEASE = 60_000_000
BACKOFF = (5_000_000, 30_000_000, 300_000_000, 3_600_000_000)


def add(
    world: World, state: State, kind: BoundaryKind, generation: int, reason: str, at: int,
    from_id: str | None = None, to_id: str | None = None,
) -> None:  # fmt: skip
    """Note one for every subscriber of the profile."""
    named = [
        row.foreign_id for row in world.aliases
        if row.conversation == state.id and row.kind == "segment"
    ]  # fmt: skip
    name = named[-1] if named else state.id
    boundary = Boundary(
        profile=state.profile, conversation=state.id, number=state.view, kind=kind,
        generation=generation, reason=reason, platform=state.source, from_id=from_id or name,
        to_id=to_id or name, at=at,
    )  # fmt: skip
    pending = PendingBoundary(boundary=boundary, attempts=0, next_at=0, error=None)
    state.boundaries += [(s, pending) for p, s in sorted(world.subscribers) if p == state.profile]


class Subscriptions:
    """The part of a profile's handle that is about boundaries."""

    def __init__(self, world: World, name: str) -> None:
        self._world, self.name = world, name

    def subscribe(self, name: str) -> bool:
        name = values.key(self._world.limits, "subscriber", name)
        if (self.name, name) in self._world.subscribers:
            return False
        self._world.subscribers[self.name, name] = self._world.clock.now()
        return True

    def unsubscribe(self, name: str) -> bool:
        name = values.key(self._world.limits, "subscriber", name)
        for state in self._mine():
            state.boundaries = [row for row in state.boundaries if row[0] != name]
        return self._world.subscribers.pop((self.name, name), None) is not None

    def subscribers(self) -> tuple[Subscriber, ...]:
        names = sorted(name for profile, name in self._world.subscribers if profile == self.name)
        return tuple(
            Subscriber(
                name=name, created_at=self._world.subscribers[self.name, name],
                pending=sum(len(self._left(state, name)) for state in self._mine()),
            )
            for name in names
        )  # fmt: skip

    def pending(self, name: str, limit: int = 100) -> tuple[PendingBoundary, ...]:
        self._check(name, limit)
        found: list[PendingBoundary] = []
        for state in sorted(self._mine(), key=lambda state: state.id):
            left = self._left(state, name)
            found += left[:1] + [replace(row, next_at=None) for row in left[1:]]
        return tuple(found[:limit])

    def deliver(self, name: str, handler: BoundaryHandler, *, limit: int = 100) -> DeliveryReport:
        self._check(name, limit)
        told, failed = 0, list[PendingBoundary]()
        for _ in range(limit):
            now = self._world.clock.now()
            due = [row for state in self._mine() for row in self._left(state, name)[:1]]
            due = [row for row in due if not now < (row.next_at or 0) <= now + BACKOFF[-1]]
            if not due:
                break
            mine = min(due, key=lambda row: row.next_at or 0)
            claimed = replace(mine, attempts=mine.attempts + 1, next_at=now + LEASE)
            self._put(name, mine, claimed)
            with Telling() as telling:
                handler(mine.boundary)
            error = telling.error
            if error is None:
                told += 1
                self._put(name, claimed, None)
                continue
            again = self._world.clock.now() + BACKOFF[min(claimed.attempts, len(BACKOFF)) - 1]
            text = values.remark(self._world.limits, error)
            failed.append(replace(claimed, next_at=again, error=text))
            self._put(name, claimed, failed[-1])
        return DeliveryReport(told=told, failed=tuple(failed))

    def _check(self, name: str, limit: int) -> None:
        self._world.limits.check_page(limit)
        if (self.name, name) not in self._world.subscribers:
            raise NotFound("subscriber", name)

    def _mine(self) -> list[State]:
        return [state for state in self._world.states.values() if state.profile == self.name]

    def _left(self, state: State, name: str) -> list[PendingBoundary]:
        return [row for subscriber, row in state.boundaries if subscriber == name]

    def _put(self, name: str, old: PendingBoundary, new: PendingBoundary | None) -> None:
        """Another in its place, or none; unless it is not there any more."""
        state = self._world.states.get(old.boundary.conversation)
        if state is not None and (name, old) in state.boundaries:
            at = state.boundaries.index((name, old))
            state.boundaries[at : at + 1] = [] if new is None else [(name, new)]
