"""Cuts: hiding the end of the log, and undoing that. Rows are never touched.

A cut names its target by uid and carries the head and view its caller saw, so a client with an old
picture is refused instead of cutting elsewhere. It ends the open turn (fence + 1), so no late
result lands behind it, and withdraws what waits in the inbox. Invariants: I-06, I-07.
"""

from __future__ import annotations

from collections.abc import Sequence

from clew.domain.cuts import Cut, CutOutcome, hidden
from clew.errors import CutOvertaken, InputError, NotFound
from clew.store import attempts, conversations, inbox, log, turns
from clew.store.backend import Transaction
from clew.store.changes import note
from clew.store.conversations import Locked
from clew.store.cut_rows import all_of as all_of
from clew.store.kit import Kit
from clew.store.unit import Once


class MakeCut(Once[CutOutcome]):
    """Hide the message `uid` and all after it."""

    def __init__(
        self, kit: Kit, no: int, name: str, uid: str, head: int | None, view: int | None,
        by: str | None,
    ) -> None:  # fmt: skip
        self._kit, self._no, self._name, self._target = kit, no, name, uid
        self._head, self._view, self._by = head, view, kit.label("by", by)
        self._uid = kit.ids.uid()

    def is_stored(self, tx: Transaction) -> bool:
        return tx.row("cut_by_uid", no=self._no, uid=self._uid) is not None

    def run(self, tx: Transaction) -> CutOutcome:
        row = conversations.lock(tx, self._no, self._name)
        return self.onto(tx, row)[1]

    def onto(self, tx: Transaction, row: Locked) -> tuple[Locked, CutOutcome]:
        """The cut itself, for units that hold the lock already."""
        conversations.check_expected(row, self._head, self._view)
        seq = log.seq_of(tx, log.segments_of(tx, row), self._target)
        return cut_from(tx, self._kit, row, seq, self._by, self._uid)


def cut_from(
    tx: Transaction, kit: Kit, row: Locked, seq: int, by: str | None, uid: bytes
) -> tuple[Locked, CutOutcome]:
    """Hide seq..head. Needs the row's lock."""
    now = kit.clock.now()
    conversations.open_for_append(tx, row, now)
    cuts = all_of(tx, row.no)
    if hidden(cuts, seq):
        raise InputError(f"the message at seq {seq} is hidden by a cut already; name a visible one")
    turn = row.turn
    row = turns.interrupt(tx, kit, row, now, "cut")
    row, withdrawn = inbox.withdraw(tx, row)
    number = cuts[-1].number + 1 if cuts else 1
    tx.run(
        "cut_insert", no=row.no, number=number, uid=uid, from_seq=seq, to_seq=row.head, by=by,
        at=now,
    )  # fmt: skip
    row = _moved(tx, kit, row, all_of(tx, row.no), "cut", now)
    return row, CutOutcome(number, seq, row.head, withdrawn, turn, row.head, row.view)


class LandedCuts:
    """Cuts that another tool made, stored between the messages that an import brings: what they
    hide is counted once, at the end."""

    def __init__(self, tx: Transaction, kit: Kit, row: Locked) -> None:
        self._tx, self._kit = tx, kit
        known = all_of(tx, row.no)
        self._number = known[-1].number if known else 0
        self._made = 0
        self._last = 0

    def store(self, row: Locked, seq: int, by: str, uid: bytes, at: int) -> None:
        """Hide seq..head, as the head is now."""
        self._made += 1
        self._last = at
        self._tx.run(
            "cut_insert", no=row.no, number=self._number + self._made, uid=uid, from_seq=seq,
            to_seq=row.head, by=self._kit.label("by", by), at=at,
        )  # fmt: skip

    def count(self, row: Locked) -> Locked:
        """Count what is visible now."""
        if not self._made:
            return row
        found = all_of(self._tx, row.no)
        return _moved(self._tx, self._kit, row, found, "cut", self._last, self._made)


class UndoCut(Once[CutOutcome]):
    """Undo the newest cut in force, while nothing was appended since."""

    def __init__(
        self, kit: Kit, no: int, name: str, number: int | None, head: int | None, view: int | None
    ) -> None:
        self._kit, self._no, self._name, self._number = kit, no, name, number
        self._head, self._view = head, view

    def is_stored(self, tx: Transaction) -> bool:
        assert self._first is not None
        number = self._first.number
        return any(c.number == number and not c.in_force for c in all_of(tx, self._no))

    def run(self, tx: Transaction) -> CutOutcome:
        kit, now = self._kit, self._kit.clock.now()
        row = conversations.lock(tx, self._no, self._name)
        conversations.check_expected(row, self._head, self._view)
        cuts = [c for c in all_of(tx, row.no) if c.in_force]
        if not cuts:
            raise NotFound("cut in force", self._name)
        newest = cuts[-1]
        if self._number not in (None, newest.number):
            if all(c.number != self._number for c in cuts):
                raise NotFound("cut in force", str(self._number))
            raise CutOvertaken(self._number or 0)
        if newest.to_seq != row.head:
            raise CutOvertaken(newest.number)
        conversations.open_for_append(tx, row, now)
        tx.run("cut_undo", no=row.no, number=newest.number, at=now)
        row = _moved(tx, kit, row, all_of(tx, row.no), "undone", now)
        return CutOutcome(
            newest.number, newest.from_seq, newest.to_seq, (), None, row.head, row.view
        )


def _moved(
    tx: Transaction, kit: Kit, row: Locked, cuts: Sequence[Cut], kind: str, now: int,
    moves: int = 1,
) -> Locked:  # fmt: skip
    """Move the view, recount what is visible, cancel every open attempt."""
    parts = log.segments_of(tx, row)
    pieces = log.ranges(parts, cuts, 1, row.head)
    count = visible_count(tx, parts, cuts, row.head)
    preview = log.last_preview(tx, kit.codec, pieces)
    conversations.view_moved(tx, row, count, preview, moves)
    attempts.cancel_all(tx, row.no, now)
    note(tx, row.id, row.profile, kind, now)
    return row._replace(view=row.view + moves, message_count=count)


def copy(tx: Transaction, origin: int, branch: int, base: int, below: int) -> None:
    """Give a branch the origin's cuts in force numbered below `below`, clipped to its base."""
    tx.run("cut_copy", branch=branch, no=origin, base=base, below=below)


def delete(tx: Transaction, no: int) -> None:
    tx.run("cut_delete", no=no)


def visible_count(
    tx: Transaction, parts: Sequence[log.Segment], cuts: Sequence[Cut], last: int
) -> int:
    """How many messages a reader sees in 1..last: no hidden ones, no replaced ones."""
    count = sum(end - start + 1 for _, start, end in log.ranges(parts, cuts, 1, last))
    return count - sum(1 for seq in log.replacing(tx, parts) if not hidden(cuts, seq))


def erase(tx: Transaction, no: int, person: str | None = None) -> None:
    """Who cut; a `person`: only those by this one."""
    tx.run("cut_erase", no=no, person=person)
