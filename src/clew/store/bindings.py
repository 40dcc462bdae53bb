"""Bindings and inbound: how a stable outside key finds its conversation, exactly once.

The primary key of a binding decides a race of two first messages: the loser's insert does nothing
and it reads the winner. Only a reset replaces one. Everything a channel delivers is an inbound
row in the transaction that acts on it, so a redelivery gets the first result whatever the binding
says by then. Invariants: I-05, I-15.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from clew.domain.conversations import NewConversation
from clew.domain.messages import Draft
from clew.domain.routes import Received, ResetOutcome
from clew.errors import Ended, KeyReused
from clew.store import boundaries, conversations, inbox, turns
from clew.store.append import Append
from clew.store.backend import Transaction
from clew.store.codec import json_text, json_value
from clew.store.conversations import Locked
from clew.store.drafts import Prepared
from clew.store.kit import Kit
from clew.store.unit import Once

INBOUND_KEPT = 10_000
"""Deliveries that are remembered whatever the clock says; some 2 MB."""


class Bound(Struct, frozen=True):
    """The conversation of a binding. `created`: this call minted it."""

    conversation: str
    created: bool


class Place(Struct, frozen=True):
    """A binding's key: always inside a profile."""

    profile: str
    source: str
    key: str


def place_of(kit: Kit, profile: str, source: str, key: str) -> Place:
    return Place(profile, kit.key("source", source), kit.key("binding key", key))


def find(tx: Transaction, place: Place) -> str | None:
    """The bound conversation's id."""
    row = tx.row("binding_get", profile=place.profile, source=place.source, key=place.key)
    return None if row is None else row[0]


def lock(tx: Transaction, place: Place) -> str | None:
    """As `find`, locked until the unit's end. Lock order: inbound, binding, conversation."""
    row = tx.row("binding_lock", profile=place.profile, source=place.source, key=place.key)
    return None if row is None else row[0]


def find_live(tx: Transaction, place: Place) -> tuple[int, str] | None:
    """The bound conversation, unless a boundary has ended it: then a new one has to follow."""
    id = find(tx, place)
    if id is None:
        return None
    no = conversations.number_of(tx, place.profile, id)
    row = conversations.peek(tx, no)
    return None if row is None or (row.ended_at is not None and row.boundary) else (no, id)


def of(tx: Transaction, profile: str, conversation: str) -> tuple[Place, ...]:
    """The keys bound to a conversation."""
    rows = tx.rows("binding_of", profile=profile, conversation=conversation)
    return tuple(Place(profile, row[0], row[1]) for row in rows)


class Bind(Once[Bound]):
    """Find the conversation of a key, or mint and bind one.

    A binding whose conversation ended at a boundary is reset in the same transaction.
    """

    def __init__(self, kit: Kit, place: Place, new: NewConversation) -> None:
        self._kit, self._place, self._new = kit, place, new
        self._id = new.id or kit.ids.conversation()

    def run(self, tx: Transaction) -> Bound:
        return self.onto(tx)

    def onto(self, tx: Transaction) -> Bound:
        """For units that route as part of something else."""
        place, now = self._place, self._kit.clock.now()
        bound = lock(tx, place)
        if bound is None:
            bound = _claim(tx, place, self._id, now)
        if bound is None:
            new = replace(self._new, source=place.source)
            conversations.create(tx, self._kit, place.profile, new, id=self._id, unused=True)
            return Bound(self._id, True)
        row = conversations.lock_by_id(tx, place.profile, bound)
        if row.ended_at is not None and row.boundary:
            reset_onto(tx, self._kit, place, self._new, self._id, None)
            return Bound(self._id, True)
        return Bound(bound, bound == self._id)


def _insert(tx: Transaction, place: Place, conversation: str, now: int) -> bool:
    """Bind a key that is not bound; False if another has done so: its commit was waited for."""
    return bool(
        tx.changed(
            "binding_insert", profile=place.profile, source=place.source, key=place.key,
            conversation=conversation, at=now,
        )
    )  # fmt: skip


def _claim(tx: Transaction, place: Place, id: str, now: int) -> str | None:
    """Bind a key that is not bound: None; or what another has bound it to meanwhile."""
    while not _insert(tx, place, id, now):
        bound = lock(tx, place)
        if bound is not None:
            return bound
        if any(other.source == place.source for other in of(tx, place.profile, id)):
            raise KeyReused(id, None, "conversation")
        # Another has bound it, and a deletion has unbound it since: it is free again.
    return None


def reset_onto(
    tx: Transaction, kit: Kit, place: Place, new: NewConversation, id: str, reason: str | None
) -> Locked | None:
    """Re-bind to a new conversation: turn interrupted, inbox carried over, old one ended. Gives the
    old one, which may have been bound by another reset a moment ago."""
    now = kit.clock.now()
    old = lock(tx, place)
    if old is None:
        old = _claim(tx, place, id, now)
        if old == id:
            return None  # by this unit's first run
    row: Locked | None = None
    if old is not None:
        row = conversations.lock_by_id(tx, place.profile, old)
        row = turns.interrupt(tx, kit, row, now, "reset")
        if reason is not None:
            conversations.end(tx, row, reason, now)
    no = conversations.create(
        tx, kit, place.profile, replace(new, source=place.source, id=None), id=id, unused=True
    )
    if row is not None:
        inbox.carry(tx, kit, row, conversations.lock(tx, no))
        tx.run(
            "binding_replace", profile=place.profile, source=place.source, key=place.key,
            conversation=id, old=row.id, at=now,
        )  # fmt: skip
        why = reason or row.end_reason or "reset"
        boundaries.add(tx, no, place.profile, "reset", 0, why, now, from_id=row.id, to_id=id)
    return row


class Reset(Once[ResetOutcome]):
    """A person or policy begins anew under the same key; the old conversation stays as history."""

    def __init__(self, kit: Kit, place: Place, new: NewConversation, reason: str) -> None:
        self._kit, self._place, self._new, self._reason = kit, place, new, reason
        self._id = new.id or kit.ids.conversation()

    def is_stored(self, tx: Transaction) -> bool:
        # Waits for its own first run; another reset may have followed that.
        bound = lock(tx, self._place)
        return bound == self._id or tx.row("conversation_no", id=self._id) is not None

    def run(self, tx: Transaction) -> ResetOutcome:
        conversations.check_reason(tx, self._reason, boundary=True)
        if lock(tx, self._place) == self._id:
            return ResetOutcome(self._id, None, 0)
        old = reset_onto(tx, self._kit, self._place, self._new, self._id, self._reason)
        if old is None:
            return ResetOutcome(self._id, None, 0)
        return ResetOutcome(self._id, old.id, old.waiting)


class Receive(Once[Received]):
    """What a channel delivers: dedupe, route, append, in one transaction."""

    def __init__(
        self, kit: Kit, place: Place, account: str, key: str, drafts: Sequence[Draft],
        new: NewConversation, result: str | None, wait: bool = False,
    ) -> None:  # fmt: skip
        self._kit, self._place, self._wait = kit, place, wait
        self._address = {
            "profile": place.profile, "source": place.source,
            "account": kit.key("account", account), "key": kit.key("inbound key", key),
        }  # fmt: skip
        kit.json("result", result)
        self._bind, self._result = Bind(kit, place, new), result
        self._append = Append(kit, 0, "", drafts) if drafts else None

    @property
    def prepared(self) -> tuple[Prepared, ...]:
        """The messages as they are written, with their uids."""
        return () if self._append is None else self._append.prepared

    def run(self, tx: Transaction) -> Received:
        place, now = self._place, self._kit.clock.now()
        # An outcome that nobody else can see before it is whole.
        if not tx.changed("inbound_insert", **self._address, at=now):
            before = self._before(tx)
            if before is not None:  # by a delivery before this one, or by its own first run
                return before if before == self._first else replace(before, again=True)
        conversation = self._bind.onto(tx).conversation
        appended = None
        if self._append is not None:
            row = conversations.lock_by_id(tx, place.profile, conversation)
            if row.ended_at is not None and row.boundary:
                raise Ended(row.id, str(row.end_reason), True)
            appended = self._append.onto(tx, row, wait=self._wait)
        received = Received(conversation, appended, False, self._result)
        tx.run(
            "inbound_finish", **self._address, conversation=conversation,
            result=json_text(msgspec.to_builtins(received)),
        )  # fmt: skip
        return received

    def _before(self, tx: Transaction) -> Received | None:
        """The first result of this delivery."""
        row = tx.row("inbound_get", **self._address)
        return None if row is None else msgspec.convert(json_value(row[1]), Received)


def expire_inbound(tx: Transaction, before: int) -> int:
    """Forget deliveries older than any channel redelivers, beyond the newest INBOUND_KEPT."""
    return tx.changed("inbound_expire", before=before, keep=INBOUND_KEPT)


def unbind(tx: Transaction, profile: str, conversation: str) -> None:
    """A deleted conversation's keys find a new one next time."""
    tx.run("binding_delete", profile=profile, conversation=conversation)


def keys(tx: Transaction, profile: str) -> list[tuple[str, str, str, str]]:
    """All bound keys: ("binding", source, key, conversation)."""
    return [("binding", r[0], r[1], r[2]) for r in tx.rows("binding_keys", profile=profile)]


def forget(tx: Transaction, profile: str, source: str, key: str) -> None:
    """Unbind one key."""
    tx.run("binding_forget", profile=profile, source=source, key=key)


def deliveries(tx: Transaction, profile: str) -> list[tuple[str, str, str, str]]:
    """All deliveries: (source, account, key, conversation)."""
    return [(r[0], r[1], r[2], r[3]) for r in tx.rows("inbound_keys", profile=profile)]


def forget_delivery(tx: Transaction, profile: str, source: str, account: str, key: str) -> None:
    """One delivery: should it come again, it is new."""
    tx.run("inbound_forget", profile=profile, source=source, account=account, key=key)


def forget_deliveries_of(tx: Transaction, profile: str, conversation: str) -> None:
    """All that led to a conversation."""
    tx.run("inbound_forget_of", profile=profile, conversation=conversation)
