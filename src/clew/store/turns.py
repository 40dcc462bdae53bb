"""Turns: opened with their messages, recorded step by step, closed with their deliveries.

At most one turn of a conversation is open (I-03, a unique index). While it is, only its holder
appends, under its fence (I-04); so the messages of a turn are contiguous and results follow their
calls. A turn whose right is free is closed as interrupted by whoever needs the conversation.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from clew.domain.messages import Appended, Draft, partial
from clew.domain.parts import answered_ids, call_ids, unasked_ids
from clew.domain.turns import (
    Ask,
    CallPlan,
    CallResult,
    Delivery,
    Recorded,
    Right,
    Turn,
    TurnBegun,
    TurnEnded,
    TurnKnown,
    TurnQueued,
    TurnState,
)
from clew.errors import InputError, NotFound, RightLost, TooLarge, TurnOpen
from clew.store import approvals, calls, conversations, inbox, log, outbox, rights
from clew.store.backend import Row, Transaction
from clew.store.changes import note
from clew.store.conversations import Locked
from clew.store.drafts import Prepared, prepare
from clew.store.kit import Kit
from clew.store.log import Found
from clew.store.unit import Once

ENDS = ("done", "failed", "interrupted", "waiting")
"""How a step may leave its turn; without one of these it goes on."""


def turn_of(row: Row) -> Turn:
    return Turn(
        number=row[0], uid=row[1].hex(), state=row[2], key=row[3], first_seq=row[4],
        started_at=row[5], ended_at=row[6], error=row[7],
    )  # fmt: skip


def get(tx: Transaction, no: int, number: int) -> Turn:
    row = tx.row("turn_get", no=no, number=number)
    if row is None:
        raise NotFound("turn", str(number))
    return turn_of(row)


def recent(tx: Transaction, no: int, limit: int, before: int) -> tuple[Turn, ...]:
    """Turns numbered below `before`, newest first."""
    return tuple(turn_of(r) for r in tx.rows("turn_all", no=no, before=before, limit=limit))


def ended_at(tx: Transaction, row: Locked, at: int) -> bool:
    """Whether the newest turn ended then."""
    return [turn.ended_at for turn in recent(tx, row.no, 1, 1 << 62)] == [at]


def _check_ttl(ttl: int) -> None:
    if ttl <= 0:
        raise InputError(f"ttl is {ttl}; give the microseconds a silent holder keeps the right")


def delete(tx: Transaction, no: int) -> None:
    tx.run("turn_delete", no=no)


def is_busy(tx: Transaction, kit: Kit, row: Locked) -> bool:
    """Whether an open turn keeps others from appending: it runs, or waits for a person."""
    if row.turn is None:
        return False
    if not is_free(kit, row):
        return True
    return get(tx, row.no, row.turn).state == "waiting"


def is_free(kit: Kit, row: Locked) -> bool:
    """Whether another may take the right to run."""
    now, shared = kit.store_time(row.clock), row.clock is not None
    return rights.is_free(row.holder, row.held_at, row.held_ttl, now, shared)


def close(
    tx: Transaction, row: Locked, state: TurnState, now: int, error: str | None = None
) -> Locked:
    """Close the open turn and release its right. Needs the row's lock."""
    if row.turn is None:
        return row
    tx.run("turn_close", no=row.no, number=row.turn, state=state, at=now, error=error)
    calls.interrupt(tx, row.no, row.turn)
    return conversations.set_turn(tx, conversations.release_right(tx, row), None)


def interrupt(tx: Transaction, kit: Kit, row: Locked, now: int, why: str | None = None) -> Locked:
    """End the open turn from outside: its holder's next write is refused (fence + 1). What its
    model had streamed becomes a message, marked as partial."""
    if row.turn is None:
        return row
    said = _said(tx, kit, row.no, row.turn)
    if said:
        row = log.insert(tx, row, said, row.turn)
    row = close(tx, row, "interrupted", now, why)
    note(tx, row.id, row.profile, "turn", now)
    return conversations.revoke_right(tx, row)


def _said(tx: Transaction, kit: Kit, no: int, turn: int) -> tuple[Prepared, ...]:
    """The message of what a call had streamed. One that is no message (only space, too large) stays
    beside its call: an end must not fail."""
    text = calls.streamed(tx, no, turn)
    if not text or not text.strip():
        return ()
    try:
        return prepare(kit, [partial(text)])
    except TooLarge:
        return ()


def take(tx: Transaction, kit: Kit, row: Locked, holder: str, ttl: int) -> tuple[Locked, Right]:
    """Take the right to run, which is free."""
    now = kit.store_time(row.clock)
    row = conversations.take_right(tx, row, holder, ttl, now)
    return row, Right(row.id, row.fence, holder, now, ttl)


class Begin(Once[TurnBegun | TurnQueued | TurnKnown]):
    """The unit that opens a turn: T1 of docs/ARCHITECTURE.md.

    One transaction: the right, the waiting inbox, the messages, the turn and its first planned
    call. When another holder's turn is open, the messages go to the inbox instead. When the
    messages are there already (a redelivery), nothing is opened and their turn is named.
    """

    def __init__(
        self, kit: Kit, no: int, name: str, drafts: Sequence[Draft], holder: str, ttl: int,
        key: str | None, call: CallPlan | None, head: int | None = None,
    ) -> None:  # fmt: skip
        _check_ttl(ttl)
        if drafts and head is not None:
            raise InputError("a turn begins with messages, or answers what stands at a head")
        self._kit, self._no, self._name, self._head = kit, no, name, head
        self._prepared = prepare(kit, drafts) if drafts else ()
        self._unasked = unasked_ids(draft.parts for draft in drafts)
        self._holder, self._ttl, self._call = kit.key("holder", holder), ttl, call
        self._key = None if key is None else kit.key("turn key", key)
        self._uid = kit.ids.uid()
        self._seen: int | None = None

    @property
    def prepared(self) -> tuple[Prepared, ...]:
        """The messages as they are written, with their uids."""
        return self._prepared

    @property
    def seen(self) -> int | None:
        """The head at the first run; None before it."""
        return self._seen

    def is_stored(self, tx: Transaction) -> bool:
        if not isinstance(self._first, TurnQueued):
            return tx.row("turn_by_uid", no=self._no, after=0, uid=self._uid) is not None
        row, queued = conversations.lock(tx, self._no, self._name), self._first.appended
        return log.is_outcome(tx, self._kit, row, self._prepared, self._seen, queued)

    def run(self, tx: Transaction) -> TurnBegun | TurnQueued | TurnKnown:
        kit, now = self._kit, self._kit.clock.now()
        row = conversations.lock(tx, self._no, self._name)
        found = log.find(tx, kit, row, self._prepared, self._seen)
        self._seen = row.head if self._seen is None else self._seen
        # All in the log, or withdrawn from the inbox: this was answered before.
        waiting = row.waiting and any(f is not None and f.number is not None for f in found)
        if self._prepared and log.all_there(self._prepared, found) and not waiting:
            return self._known(tx, row, found)
        if is_busy(tx, kit, row):
            turn = row.turn or 0
            if not self._prepared:
                raise TurnOpen(row.id, turn, row.holder)
            return TurnQueued(appended=inbox.put(tx, kit, row, self._prepared, found), turn=turn)
        conversations.check_expected(row, self._head, None)
        row = interrupt(tx, kit, row, now, "its holder was gone")
        conversations.open_for_append(tx, row, now)
        return self._open(tx, row, found, now)

    def _known(self, tx: Transaction, row: Locked, found: Sequence[Found | None]) -> TurnKnown:
        seqs = log.seqs(found)
        appended = Appended(seqs, row.head, 0, log.uids(self._prepared, found), log.numbers(found))
        if not seqs or seqs[-1] <= row.base:
            return TurnKnown(turn=None, appended=appended)
        number = log.at(tx, self._kit.codec, log.segments_of(tx, row), seqs[-1]).turn
        turn = None if number is None else get(tx, row.no, number)
        return TurnKnown(turn=turn, appended=appended)

    def _open(
        self, tx: Transaction, row: Locked, found: Sequence[Found | None], now: int
    ) -> TurnBegun:
        kit = self._kit
        fresh = log.missing(self._prepared, found)
        if self._head is None and not fresh and not row.waiting:
            raise InputError("a turn begins with a message; none was given and none waits")
        last = tx.row("turn_last", no=row.no)
        number = (last[0] if last else 0) + 1
        row, right = take(tx, kit, row, self._holder, self._ttl)
        first = row.head + 1
        tx.run(
            "turn_insert", no=row.no, number=number, uid=self._uid, key=self._key,
            first_seq=first, at=now,
        )  # fmt: skip
        row = conversations.set_turn(tx, row, number)
        # Drafts found in the inbox come from it now; only the others are new.
        row, _ = inbox.take(tx, kit, row, number)
        if fresh:
            log.check_asked(tx, kit.codec, row, self._unasked)
            row = log.insert(tx, row, self._prepared[-fresh:], number)
        call = None if self._call is None else calls.plan(tx, kit, row, self._call, now, number)
        appended = Appended(
            seqs=tuple(range(first, row.head + 1)), head=row.head, new=row.head + 1 - first,
            uids=log.uids(self._prepared, found),
        )  # fmt: skip
        return TurnBegun(turn=get(tx, row.no, number), right=right, appended=appended, call=call)


class Step(Struct, frozen=True, kw_only=True):
    """What one finished step of a turn brings; every field may be absent."""

    drafts: Sequence[Draft] = ()
    call: int | None = None
    """The planned call that ended, with its `result`."""
    result: CallResult | None = None
    next_call: CallPlan | None = None
    take_inbox: bool = False
    """Take waiting messages into the turn, if no call of it is open: those before the first that
    wants the next turn (`meta.queue`)."""
    asks: Sequence[Ask] = ()
    """Calls of these drafts that a person must allow before they run."""
    started: Sequence[str] = ()
    """Ids of calls that were allowed and are about to run."""
    state: TurnState | None = None
    """Close the turn (done, failed, interrupted), or let it wait for a person (waiting)."""
    error: str | None = None
    deliveries: Sequence[Delivery] = ()


class Record(Once[tuple[Recorded, TurnEnded | None]]):
    """The unit that stores one finished step of a turn: T2 of docs/ARCHITECTURE.md.

    The call that ended, its message or the tool results, the inbox taken at the boundary, the next
    planned call. With `state` it also closes the turn, adds the deliveries and releases the right;
    a turn that waits moves the fence, so that only who resumes it goes on.
    """

    def __init__(self, kit: Kit, no: int, right: Right, turn: int, step: Step) -> None:
        self._kit, self._no, self._right, self._turn, self._step = kit, no, right, turn, step
        self._prepared = prepare(kit, step.drafts) if step.drafts else ()
        self._unasked = unasked_ids(draft.parts for draft in step.drafts)
        if step.state is not None:
            kit.choice("the state that ends a step", step.state, ENDS)
        if step.result is not None:
            calls.check_result(step.result)
        self._asks = approvals.prepare(kit, step.drafts, step.asks)
        self._error = kit.remark(step.error)
        most = kit.limits.message  # a reply is in it
        self._deliveries = [
            (kit.key("route", d.route), kit.json("payload", d.payload, most) or "null")
            for d in step.deliveries
        ]
        self._seen: int | None = None
        self._now = 0
        """Of the first run, and so of every run: a turn that ended then was ended by this step."""

    @property
    def prepared(self) -> tuple[Prepared, ...]:
        """The messages as they are written, with their uids."""
        return self._prepared

    @property
    def seen(self) -> int | None:
        """The head at the first run; None before it."""
        return self._seen

    def is_stored(self, tx: Transaction) -> bool:
        """Only this holder writes under its fence, so any trace of the step is the whole of it."""
        assert self._first is not None
        recorded, ended = self._first
        if ended is not None:
            return self._has_ended(tx, ended.state)
        row = conversations.lock_fenced(tx, self._no, self._right.fence, self._right.conversation)
        if recorded.call is not None:
            call = tx.row("model_call_get", no=self._no, number=recorded.call)
            return call is not None and call[1] == self._turn
        if recorded.appended.new:
            found = log.find(tx, self._kit, row, self._prepared, self._seen)
            return log.all_there(self._prepared, found)
        return bool(recorded.taken) and (
            tx.row("inbox_state", no=self._no, number=recorded.taken[0]) == ("taken",)
        )

    def _has_ended(self, tx: Transaction, state: TurnState) -> bool:
        """Whether the turn ended, or waits, by this step and not by another who took it over: that
        moves the fence before it ends anything."""
        row = conversations.lock(tx, self._no, self._right.conversation)
        turn = get(tx, self._no, self._turn)
        if turn.state != state:
            return False
        if state == "waiting":  # which moves the fence by one itself
            return row.fence == self._right.fence + 1
        return row.fence == self._right.fence or turn.ended_at == self._now

    def run(self, tx: Transaction) -> tuple[Recorded, TurnEnded | None]:
        kit, step = self._kit, self._step
        self._now = now = self._now or kit.clock.now()
        row = conversations.lock_fenced(tx, self._no, self._right.fence, self._right.conversation)
        if row.turn != self._turn:
            raise RightLost(row.id, self._right.fence)
        found = log.find(tx, kit, row, self._prepared, self._seen)
        self._seen = row.head if self._seen is None else self._seen
        fresh = log.missing(self._prepared, found)
        if fresh:
            log.check_asked(tx, kit.codec, row, self._unasked)
            row = log.insert(tx, row, self._prepared[-fresh:], self._turn)
        seqs = (*log.seqs(found), *range(row.head - fresh + 1, row.head + 1))
        if step.call is not None and step.result is not None:
            calls.finish(tx, kit, row, step.call, step.result)
        taken: tuple[int, ...] = ()
        if step.take_inbox and row.waiting and not open_calls(tx, kit, row, self._turn):
            row, taken = inbox.take(tx, kit, row, self._turn, steering=True)
        approvals.ask(tx, row.no, self._turn, self._asks, now)
        approvals.start(tx, row.no, self._turn, step.started)
        call = None
        if step.next_call is not None:
            call = calls.plan(tx, kit, row, step.next_call, now, self._turn)
        conversations.renew_right(tx, row, kit.store_time(row.clock))
        appended = Appended(seqs, row.head, fresh, log.uids(self._prepared, found))
        recorded = Recorded(appended=appended, taken=taken, call=call)
        return recorded, self._finish(tx, row, now)

    def _finish(self, tx: Transaction, row: Locked, now: int) -> TurnEnded | None:
        state = self._step.state
        if state is None:
            return None
        if state == "waiting":
            tx.run("turn_state", no=row.no, number=self._turn, state="waiting")
            row = conversations.revoke_right(tx, row)
        else:
            outbox.add(tx, row.no, self._turn, self._deliveries, now)
            row = close(tx, row, state, now, self._error)
        return TurnEnded(number=self._turn, state=state, waiting=row.waiting, head=row.head)


def open_calls(tx: Transaction, kit: Kit, row: Locked, turn: int) -> set[str]:
    """Tool calls of the open turn that have no result yet."""
    first = get(tx, row.no, turn).first_seq
    calls_made: set[str] = set()
    answered: set[str] = set()
    for message in log.read(tx, kit.codec, [(row.no, first, row.head)]):
        calls_made.update(call_ids(message.parts))
        answered.update(answered_ids(message.parts))
    return calls_made - answered


class Resume(Once[TurnBegun]):
    """The unit that takes over an open turn: it waited for a person, or its holder is gone."""

    def __init__(self, kit: Kit, no: int, name: str, holder: str, ttl: int) -> None:
        _check_ttl(ttl)
        self._kit, self._no, self._name = kit, no, name
        self._holder, self._ttl = kit.key("holder", holder), ttl

    def is_stored(self, tx: Transaction) -> bool:
        assert self._first is not None
        row = conversations.lock(tx, self._no, self._name)
        return (row.fence, row.holder) == (self._first.right.fence, self._holder)

    def run(self, tx: Transaction) -> TurnBegun:
        row = conversations.lock(tx, self._no, self._name)
        if row.turn is None:
            raise NotFound("open turn", self._name)
        if row.holder != self._holder and not is_free(self._kit, row):
            raise TurnOpen(row.id, row.turn, row.holder)
        row, right = take(tx, self._kit, row, self._holder, self._ttl)
        number = row.turn or 0
        tx.run("turn_state", no=row.no, number=number, state="running")
        turn = get(tx, row.no, number)
        appended = Appended(tuple(range(turn.first_seq, row.head + 1)), row.head, 0)
        return TurnBegun(turn=turn, right=right, appended=appended)


def save_partial(tx: Transaction, kit: Kit, no: int, right: Right, call: int, text: str) -> None:
    """Keep what was streamed so far, outside the log; recovery makes a message of it."""
    renew(tx, kit, no, right)
    calls.save_partial(tx, kit, no, call, text)


def renew(tx: Transaction, kit: Kit, no: int, right: Right) -> None:
    """The holder's sign of life; RightLost when the right is lost."""
    row = conversations.lock_fenced(tx, no, right.fence, right.conversation)
    if row.turn is None or row.holder is None:
        raise RightLost(row.id, right.fence)
    conversations.renew_right(tx, row, kit.store_time(row.clock))


def erase(tx: Transaction, no: int, first: int = 1, last: int = 1 << 62) -> list[Row]:
    """Keys of turns, and why they ended; gives those of all."""
    taken = tx.rows("turn_texts", no=no)
    tx.run("turn_erase", no=no, first=first, last=last)
    return taken
