"""Bringing what is in a spool into its store: in order, exactly once, whoever does it.

A record is one unit of work, or several records of one conversation are. It looks first whether its
messages are there: in the conversation, by uid and key above the head that was seen, or in the
branch that they would go to. So a process may die between the commit and the note in the file, and
two processes may bring in one spool at once: the second finds what the first did, behind the
conversation's lock. Each of them goes by the order of the file and stops where it fails, so no
message overtakes another of its conversation.

Nothing is refused here. What does not fit the conversation any more (its turn is another's, it has
ended, a key names another message) goes to a conversation of its own, of the source `recovered`,
whose id follows from the spool's epoch: one per conversation and incident. What has no conversation
in this store is held until a person decides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from clew.domain.conversations import NewConversation
from clew.domain.messages import Draft
from clew.errors import BatchConflict, KeyReused, NotFound
from clew.ids import encode_base32
from clew.store import calls, conversations, log, turns
from clew.store.append import append
from clew.store.backend import Transaction
from clew.store.bindings import Receive, place_of
from clew.store.branches import BranchAt
from clew.store.conversations import Locked
from clew.store.drafts import prepare, prepare_all
from clew.store.kit import Kit
from clew.store.spool import messages
from clew.store.spool.record import Entry, Record, State
from clew.store.spool.spool import Spool

RECOVERED = "recovered"
"""The source of conversations made here."""
GROUP = 64
"""Records of one transaction, at most."""


class Brought(NamedTuple):
    """What became of one record. `state`: done, or why it is held."""

    entry: Entry
    state: State
    conversation: str | None = None
    """Where its messages are."""
    why: str | None = None
    """Why they are in a conversation of their own, or held."""

    @property
    def recovered(self) -> bool:
        """Whether they went to a conversation of their own."""
        return self.state == "done" and self.why is not None


def groups(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Neighbours that one unit can bring in, in the file's order."""
    group: list[Entry] = []
    for entry in entries:
        if group and (len(group) == GROUP or _key(group[0]) != _key(entry)):
            yield group
            group = []
        group.append(entry)
    if group:
        yield group


def _key(entry: Entry) -> tuple[object, ...]:
    record = entry.record
    assert record is not None
    alone = entry.number if record.delivery else None
    return record.store, record.conversation, record.fence, record.turn, alone


class Bring:
    """The unit that brings in records of one conversation. `anywhere`: of another store, too, when
    this one has the conversation: a person has asked for that. `aside`: they do not fit it, for
    this reason, and go to a conversation of their own."""

    def __init__(
        self, kit: Kit, spool: Spool, store: str, entries: Sequence[Entry], *,
        anywhere: bool = False, aside: str | None = None,
    ) -> None:  # fmt: skip
        self._kit, self._spool, self._store = messages.unlimited(kit), spool, store
        self._anywhere, self._aside = anywhere, aside
        self._ready = [(entry, _Ready(self._kit, entry)) for entry in entries]

    def __call__(self, tx: Transaction) -> list[Brought]:
        first = self._ready[0][1].record
        if first.store != self._store and not self._anywhere:
            return self._all("foreign", f"it is of another store ({first.store[:8]})")
        found = tx.row("conversation_no", id=first.conversation)
        if found is None:
            return self._all("unknown", f"there is no conversation {first.conversation} here")
        no, profile = found[:2]
        row = _lock(tx, no)
        # Asked behind the lock: what was erased with its conversation meanwhile must stay so.
        waiting = [pair for pair in self._ready if self._spool.is_pending(pair[0])]
        brought = [self._one(tx, entry, ready, row, profile) for entry, ready in waiting]
        if row is not None and first.turn is not None and not any(b.recovered for b in brought):
            _interrupt(tx, self._kit, no, first)
        return brought

    def _all(self, state: State, why: str) -> list[Brought]:
        return [Brought(entry, state, None, why) for entry, _ in self._ready]

    def _one(
        self, tx: Transaction, entry: Entry, ready: _Ready, row: Locked | None, profile: str
    ) -> Brought:
        record, branch = ready.record, recovered_id(ready.record, entry.epoch)
        if _is_beside(tx, self._kit, ready, branch):
            return Brought(entry, "done", branch, "it was brought there before")
        why = "the conversation is in the bin"
        if row is not None:
            row = conversations.lock(tx, row.no)  # as it is after the record before this one
            why = self._aside or _misfit(tx, self._kit, row, ready)
            if why is None:
                _into(tx, self._kit, row, ready)
                return Brought(entry, "done", record.conversation)
        beside(tx, self._kit, row, profile, ready, branch, why)
        return Brought(entry, "done", branch, why)


class _Ready:
    """A record and its messages, prepared twice: as they are, and free of the names that may
    clash."""

    def __init__(self, kit: Kit, entry: Entry) -> None:
        assert entry.record is not None
        self.record: Record = entry.record
        given = messages.drafts(self.record.messages, self.record.head)
        self.prepared = prepare(kit, given)
        self.renamed = prepare_all(kit, [_renamed(draft) for draft in given])


def _renamed(draft: Draft) -> Draft:
    """A message that may stand beside another of its names: by the same rule always, so that it
    is found again."""
    assert draft.uid is not None
    uid = hashlib.sha256(b"recovered" + bytes.fromhex(draft.uid)).digest()[:16].hex()
    meta = {**(draft.meta or {}), "recovered": {"uid": draft.uid, "key": draft.key}}
    return replace(draft, uid=uid, key=None, replaces=None, after=0, meta=meta)


def recovered_id(record: Record, epoch: bytes) -> str:
    """The id of the conversation that messages go to which do not fit theirs."""
    name = f"{record.store}:{record.conversation}:{epoch.hex()}"
    return encode_base32(int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "big"))


def _lock(tx: Transaction, no: int) -> Locked | None:
    """The conversation, locked; None: it is in the bin."""
    try:
        return conversations.lock(tx, no)
    except NotFound:
        return None


def _misfit(tx: Transaction, kit: Kit, row: Locked, ready: _Ready) -> str | None:
    """Why a record does not go into its conversation; None: it does, or is there."""
    record, prepared = ready.record, ready.prepared
    try:
        found = log.find(tx, kit, row, prepared, record.head)
        if log.all_there(prepared, found):
            return None
        log.missing(prepared, found)
    except (KeyReused, BatchConflict) as error:
        return str(error)
    if record.turn is not None and (row.turn, row.fence) != (record.turn, record.fence):
        return "its turn had ended, or another holder had it"
    if record.expect is not None and record.expect != row.head:
        return f"it was meant for head {record.expect}, and the conversation had moved on"
    if row.read_only:
        return "the conversation takes no messages"
    if row.ended_at is not None and row.boundary:
        return f"the conversation had ended ({row.end_reason})"
    return None


def _into(tx: Transaction, kit: Kit, row: Locked, ready: _Ready) -> None:
    """Append to the conversation itself what is not there yet. Raises InputError or Refused for
    what only shows now (a blob that is named and not there); the unit is rolled back then."""
    record, prepared = ready.record, ready.prepared
    found = log.find(tx, kit, row, prepared, record.head)
    if log.all_there(prepared, found):
        return
    if record.turn is None:
        append(tx, kit, row, prepared, record.head, record.expect, wait=record.wait)
        return
    row = log.insert(tx, row, prepared[-log.missing(prepared, found) :], record.turn)
    if record.call is not None and record.result is not None:
        calls.finish(tx, kit, row, record.call, record.result)


def _is_beside(tx: Transaction, kit: Kit, ready: _Ready, branch: str) -> bool:
    """Whether the messages are in the conversation of `recovered` already."""
    found = tx.row("conversation_no", id=branch)
    row = None if found is None else _lock(tx, found[0])
    if row is None:
        return False
    return log.all_there(ready.renamed, log.find(tx, kit, row, ready.renamed, 0))


def _interrupt(tx: Transaction, kit: Kit, no: int, record: Record) -> None:
    """Nobody goes on with the turn whose step was spooled: whoever held it was told to stop."""
    row = conversations.lock(tx, no)
    if (row.turn, row.fence) == (record.turn, record.fence):
        turns.interrupt(tx, kit, row, kit.clock.now(), f"the store was away: {record.cause}")


def beside(
    tx: Transaction, kit: Kit, origin: Locked | None, profile: str, ready: _Ready, id: str,
    why: str,
) -> None:  # fmt: skip
    """Append to the conversation of `recovered`, which is made if it is not there."""
    record = ready.record
    exists = tx.row("conversation_no", id=id)
    if exists is not None:
        no = exists[0]
    else:
        new = NewConversation(
            id=id, source=RECOVERED,
            meta={"recovered": {"from": record.conversation, "why": why, "cause": record.cause}},
        )  # fmt: skip
        seen = _seen(origin, record)
        if origin is None or not seen:
            no = conversations.create(tx, kit, profile, new, id=id)
        else:
            no = BranchAt(kit, origin.no, origin.id, new, seen).run(tx)
    row = conversations.lock(tx, no, id)
    append(tx, kit, row, ready.renamed, 0)


def _seen(origin: Locked | None, record: Record) -> int:
    """What the recovered messages follow: what their writer had seen, or all there is."""
    if origin is None:
        return 0
    return record.head if 0 < record.head <= origin.head else origin.head


class BringDelivery:
    """The unit of what a channel delivered: `receive`, again. Its key makes it exactly once."""

    def __init__(
        self, kit: Kit, spool: Spool, store: str, entry: Entry, *, anywhere: bool = False
    ) -> None:
        assert entry.record is not None
        assert entry.record.delivery is not None
        self._kit, self._spool, self._entry = messages.unlimited(kit), spool, entry
        self._foreign = entry.record.store != store and not anywhere
        self._record, delivery = entry.record, entry.record.delivery
        place = place_of(self._kit, self._record.profile, delivery.source, delivery.route)
        self._receive = Receive(
            self._kit, place, delivery.account, delivery.key,
            messages.drafts(self._record.messages), delivery.new, delivery.result,
            self._record.wait,
        )  # fmt: skip

    def __call__(self, tx: Transaction) -> list[Brought]:
        entry, record = self._entry, self._record
        if self._foreign:
            return [Brought(entry, "foreign", None, f"it is of another store ({record.store[:8]})")]
        if not self._spool.is_pending(entry):
            return []
        return [Brought(entry, "done", self._receive(tx).conversation)]


class BringAside:
    """The unit of a delivery that `receive` refuses: a conversation of its own."""

    def __init__(self, kit: Kit, spool: Spool, entry: Entry, why: str) -> None:
        self._kit, self._spool, self._entry, self._why = messages.unlimited(kit), spool, entry, why
        self._ready = _Ready(self._kit, entry)

    def __call__(self, tx: Transaction) -> list[Brought]:
        if not self._spool.is_pending(self._entry):
            return []
        record = self._ready.record
        id = recovered_id(record, self._entry.epoch)
        beside(tx, self._kit, None, record.profile, self._ready, id, self._why)
        return [Brought(self._entry, "done", id, self._why)]
