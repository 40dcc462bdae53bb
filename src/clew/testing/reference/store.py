"""The store and profile of the reference: what finds a conversation."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from msgspec.structs import replace

from clew.clock import Clock, SystemClock
from clew.config import Limits
from clew.domain.conversations import (
    ConversationInfo,
    ConversationSummary,
    ListFilter,
    NewConversation,
    Page,
)
from clew.domain.messages import Draft
from clew.domain.retention import Binned, Item, Policy, Pruned
from clew.domain.routes import Received, ResetOutcome
from clew.domain.turns import Delivered, DeliveryState, ModelUsage, UsageBy, UsageRow
from clew.errors import Ambiguous, InputError, InvalidCursor, KeyReused, NotFound
from clew.ids import Ids
from clew.testing.reference import boundaries, log, outbox, records, retention, usage, values
from clew.testing.reference.conversation import ReferenceConversation
from clew.testing.reference.state import State, World


class ReferenceStore:
    """Same methods as `clew.Store`, as far as conversations go."""

    def __init__(
        self, *, clock: Clock | None = None, ids: Ids | None = None, limits: Limits | None = None
    ) -> None:
        clock = clock or SystemClock()
        self._world = World(clock, ids or Ids(clock), limits or Limits())

    def __enter__(self) -> ReferenceStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def close(self) -> None:
        """Nothing is held."""

    def profile(self, name: str) -> ReferenceProfile:
        """A profile; it exists as soon as it has a conversation."""
        return ReferenceProfile(self._world, values.key(self._world.limits, "profile", name))

    def profiles(self) -> tuple[tuple[str, int], ...]:
        names = [s.profile for s in self._world.states.values() if s.binned_at is None]
        return tuple((name, names.count(name)) for name in sorted(set(names)))

    def prune(
        self, policy: Policy | None = None, *, dry_run: bool = False, profile: str | None = None
    ) -> Pruned:
        """What a policy says, at once; with `dry_run` on a copy of the world."""

        def unit(world: World) -> Pruned:
            return retention.prune(world, policy or Policy(), profile)

        if dry_run:
            return replace(copy.copy(self._world).write(unit), dry_run=True)
        return self._world.write(unit)

    def verify(self) -> list[str]:
        """Problems; nothing but lists and dicts is here to be damaged, so there are none."""
        return [
            f"{state.id}: message {at} has seq {message.seq}"
            for state in self._world.states.values()
            for at, message in enumerate(state.messages, 1)
            if message.seq != at
        ]


class ReferenceProfile(boundaries.Subscriptions):
    """Same methods, values and errors as `clew.Profile`, as far as conversations go."""

    def create(self, new: NewConversation | None = None, **fields: Any) -> ReferenceConversation:
        new = NewConversation(**fields) if new is None else replace(new, **fields)

        def unit(world: World) -> str:
            known = None if new.id is None else world.states.get(new.id)
            if known is not None and known.binned_at is not None:
                raise KeyReused(known.id, None, "conversation")
            if known is not None and known.profile == self.name:
                return records.again(known, "root", None, 0)
            return records.create(world, self.name, new).id

        return self._handle(self._world.write(unit))

    def open(self, id: str) -> ReferenceConversation:
        return self._handle(self._world.get(self.name, id).id)

    def resolve(self, text: str, *, source: str | None = None) -> ReferenceConversation:
        """Exact id, exact alias, then unique prefix of either."""
        text = text.strip()
        ids = [state.id for state in self._states()]
        if text in ids:
            return self._handle(text)
        rows = [
            row for row in self._world.aliases
            if row.profile == self.name and row.state != "deleted"
        ]  # fmt: skip
        named = {
            row.conversation for row in rows
            if row.foreign_id == text and source in (None, row.source)
        }  # fmt: skip
        for prefix in (text, text.lower()):
            if not named and text:
                named = {id for id in ids if id.startswith(prefix)}
                named |= {row.conversation for row in rows if row.foreign_id.startswith(prefix)}
        if not named:
            raise NotFound("conversation", text)
        if len(named) > 1:
            raise Ambiguous(text, sorted(named)[:20], len(named) > 20)
        return self._handle(named.pop())

    def conversation(
        self, key: str, *, source: str = "api", new: NewConversation | None = None
    ) -> ReferenceConversation:
        given = new or NewConversation(source=source)
        return self._handle(self._world.write(lambda w: self._route(w, source, key, given).id))

    def bound(self, key: str, *, source: str = "api") -> ReferenceConversation | None:
        id = self._world.bindings.get(self._place(source, key))
        return None if id is None else self._handle(id)

    def reset(
        self, key: str, *, source: str = "api", reason: str = "reset",
        new: NewConversation | None = None,
    ) -> ResetOutcome:  # fmt: skip
        place, given = self._place(source, key), new or NewConversation(source=source)

        def unit(world: World) -> ResetOutcome:
            old = world.bindings.get(place)
            if old is not None and old == given.id:
                return ResetOutcome(old, None, 0)
            waiting = 0 if old is None else len(world.get(self.name, old).waiting)
            fresh = self._begin_anew(world, place, given, reason)
            return ResetOutcome(fresh.id, old, waiting)

        return self._world.write(unit)

    def receive(
        self, route: str, drafts: Sequence[Draft], *, source: str, account: str, key: str,
        new: NewConversation | None = None, result: str | None = None, wait: bool = False,
    ) -> Received:  # fmt: skip
        limits = self._world.limits
        address = (
            self.name, values.key(limits, "source", source), values.key(limits, "account", account),
            values.key(limits, "inbound key", key),
        )  # fmt: skip
        given = new or NewConversation(source=source)
        wanted = values.named(self._world, drafts) if drafts else []

        def unit(world: World) -> Received:
            if (first := world.inbound.get(address)) is not None:
                return replace(first, again=True)
            state = self._route(world, source, route, given)
            appended = None
            if wanted and wait:
                log.open_for_append(state, world.clock.now())
                found = log.lookup(state, wanted)
                appended = log.put(world, state, wanted, found, log.fresh_of(wanted, found))
            elif wanted:
                appended = log.append(world, state, wanted, None, world.clock.now())
            received = Received(state.id, appended, False, result)
            world.inbound[address] = received
            return received

        return self._world.write(unit)

    def was_deleted(self, source: str, foreign_id: str) -> bool:
        states = {
            row.state for row in self._world.aliases
            if (row.profile, row.source, row.foreign_id) == (self.name, source, foreign_id)
        }  # fmt: skip
        return "deleted" in states and "claimed" not in states

    def list(
        self, want: ListFilter | None = None, *, limit: int = 50, cursor: str | None = None,
        pinned_first: bool = False,
    ) -> Page[ConversationSummary]:  # fmt: skip
        self._world.limits.check_page(limit)
        if cursor is not None and not cursor.isdecimal():
            raise InvalidCursor(cursor)
        want = want or ListFilter()
        rows = [records.info_of(self._world, s) for s in self._states() if s.kind != "delegate"]
        rows = [row for row in reversed(rows) if _wanted(want, row)]
        rows.sort(key=lambda row: (pinned_first and not row.pinned, -row.active_at))
        start = int(cursor or 0)
        following = str(start + limit) if len(rows) > start + limit else None
        return Page(tuple(row.summary() for row in rows[start : start + limit]), following)

    def take_delivery(self, routes: str | None = None) -> Delivered | None:
        if routes is not None:
            values.key(self._world.limits, "routes", routes)
        return self._world.write(lambda world: outbox.take(world, self.name, routes or ""))

    def settle_delivery(
        self, taken: Delivered, error: str | None = None, *, give_up: bool = False
    ) -> Delivered | None:
        return self._world.write(
            lambda world: outbox.settle(world, self.name, taken, error, give_up)
        )

    def deliveries(
        self, state: DeliveryState | None = None, limit: int = 100
    ) -> tuple[Delivered, ...]:
        self._world.limits.check_page(limit)
        if state not in (None, "pending", "sent", "failed"):
            raise InputError(f"state {state!r} is none of a delivery")
        rows = [row for mine in self._states() for row in reversed(mine.deliveries)]
        rows = [row for row in rows if state in (None, row.state)]
        return tuple(sorted(rows, key=lambda row: -row.next_at)[:limit])

    def usage(self, since: int = 0) -> tuple[ModelUsage, ...]:
        calls = [call for state in self._states() for call in state.calls]
        return usage.by_model(call for call in calls if call.started_at >= since)

    def usage_by(
        self, by: UsageBy = "model", since: int = 0, until: int | None = None
    ) -> tuple[UsageRow, ...]:
        return usage.rows(self._states(), by, since, until)

    def unfinished(self) -> tuple[ReferenceConversation, ...]:
        return tuple(
            self._handle(state.id)
            for state in self._states()
            if state.open_turn is not None or state.waiting
        )

    def bin(self, id: str) -> bool:
        """Nobody finds it any more; nothing of it is gone."""
        return self._world.write(lambda world: retention.bin(world, self.name, id))

    def unbin(self, id: str) -> ReferenceConversation:
        self._world.write(lambda world: retention.unbin(world, self.name, id))
        return self._handle(id)

    def binned(self, limit: int = 1000) -> tuple[Binned, ...]:
        self._world.limits.check_page(limit)
        return retention.binned(self._world, self.name)[:limit]

    def empty_bin(self) -> tuple[Item, ...]:
        why = "the bin was emptied"
        return tuple(self._world.write(
            lambda w: retention.empty(w, self.name, w.clock.now(), why)
        ))  # fmt: skip

    def delete(self, id: str) -> None:
        """Its branches keep all they show; delegates stay. Also from the bin."""
        self._world.write(lambda world: retention.delete(world, self.name, id))

    # ------------------------------------------------------------------ shared

    def _states(self) -> list[State]:
        return [
            state for state in self._world.states.values()
            if state.profile == self.name and state.binned_at is None
        ]  # fmt: skip

    def _handle(self, id: str) -> ReferenceConversation:
        return ReferenceConversation(self._world, id, self.name)

    def _place(self, source: str, key: str) -> tuple[str, str, str]:
        limits = self._world.limits
        return self.name, values.key(limits, "source", source), values.key(limits, "key", key)

    def _route(self, world: World, source: str, key: str, new: NewConversation) -> State:
        """The conversation of a key; one that ended at a boundary is followed by a new one."""
        place = self._place(source, key)
        bound = world.bindings.get(place)
        if bound is None:
            world.bindings[place] = self._make(world, source, new).id
        elif world.get(self.name, bound).end_reason in log.BOUNDARIES:
            self._begin_anew(world, place, new, None)
        return world.get(self.name, world.bindings[place])

    def _begin_anew(
        self, world: World, place: tuple[str, str, str], new: NewConversation, reason: str | None
    ) -> State:
        """Re-bind to a new conversation, which what waits is carried into."""
        old, now = world.bindings.get(place), world.clock.now()
        fresh = self._make(world, place[1], new)
        if old is not None:
            state = world.get(self.name, old)
            log.interrupt(world, state, now, "reset")
            if reason is not None:
                records.end(state, reason, now)
            fresh.inbox += state.waiting
            for entry in state.waiting:
                for digest in log.hashes(entry.named.draft.parts):
                    fresh.blobs[digest] = log.blob_of(world, state, digest) or b""
            log.withdraw(state)
            why = reason or state.end_reason or "reset"
            boundaries.add(world, fresh, "reset", 0, why, now, from_id=old, to_id=fresh.id)
        world.bindings[place] = fresh.id
        return fresh

    def _make(self, world: World, source: str, new: NewConversation) -> State:
        if (known := records.known_id(world, self.name, new.id)) is not None:
            raise KeyReused(known.id, None, "conversation")
        return records.create(world, self.name, replace(new, source=source))


def _wanted(want: ListFilter, row: ConversationInfo) -> bool:
    """Whether a list with this filter shows the conversation."""
    same = {
        "source": row.source, "project": row.git_root or row.cwd, "git_branch": row.git_branch,
        "model": row.model, "pinned": row.pinned, "archived": row.archived, "ended": row.ended,
        "automation": row.automation,
    }  # fmt: skip
    return (
        all(getattr(want, name) in (None, value) for name, value in same.items())
        and (want.title is None or _folded(want.title) in _folded(row.title or ""))
        and (want.since is None or row.active_at >= want.since)
        and (want.until is None or row.active_at < want.until)
    )


def _folded(text: str) -> str:
    """A to Z in small letters, the rest as it is."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)
