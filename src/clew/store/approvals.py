"""Approvals: tool calls of an open turn that a person must allow before they run.

A row stands before its call may run, written with the message that makes the call, and says whether
it may have run: `asked`, `allowed` and `denied` have not, `started` may. Who answers first wins:
the swap from `asked`, under the conversation's lock (I-21).
"""

from __future__ import annotations

from collections.abc import Sequence

from clew.domain.messages import Draft
from clew.domain.parts import call_ids
from clew.domain.turns import Approval, Ask
from clew.errors import InputError, NotFound
from clew.store.backend import Transaction
from clew.store.changes import note
from clew.store.conversations import Locked
from clew.store.kit import Kit


def prepare(kit: Kit, drafts: Sequence[Draft], asks: Sequence[Ask]) -> tuple[Ask, ...]:
    """Checked: each is of a call that these messages make, or InputError."""
    made = {id for draft in drafts for id in call_ids(draft.parts)} if asks else set[str]()
    for one in asks:
        if one.call_id not in made:
            raise InputError(f"{one.call_id!r} is no call of the messages that are stored with it")
    return tuple(Ask(kit.key("call id", a.call_id), kit.key("tool name", a.name)) for a in asks)


def ask(tx: Transaction, no: int, turn: int, asks: Sequence[Ask], now: int) -> None:
    """Note calls that want an answer; one that is noted stays as it is."""
    for one in asks:
        tx.run("approval_insert", no=no, turn=turn, call_id=one.call_id, name=one.name, at=now)


def of_turn(tx: Transaction, no: int, turn: int | None) -> tuple[Approval, ...]:
    """All of a turn, in the order they were asked."""
    if turn is None:
        return ()
    return tuple(
        Approval(
            turn=r[0], call_id=r[1], name=r[2], state=r[3], always=bool(r[4]), by=r[5],
            asked_at=r[6], answered_at=r[7],
        )
        for r in tx.rows("approval_of_turn", no=no, turn=turn)
    )  # fmt: skip


def always(tx: Transaction, no: int) -> tuple[str, ...]:
    """Names of the tools that a person has allowed for the whole conversation."""
    return tuple(row[0] for row in tx.rows("approval_always", no=no))


def answer(
    tx: Transaction, kit: Kit, row: Locked, call_id: str, allow: bool, keep: bool,
    by: str | None, now: int,
) -> bool:  # fmt: skip
    """Answer a call of the open turn; false when somebody did already. NotFound: no such call is
    asked for here."""
    by = kit.label("by", by)
    if row.turn is None or all(a.call_id != call_id for a in of_turn(tx, row.no, row.turn)):
        raise NotFound("call that waits for an answer", call_id)
    changed = tx.changed(
        "approval_answer", no=row.no, turn=row.turn, call_id=call_id,
        state="allowed" if allow else "denied", always=int(allow and keep),
        by=by, at=now,
    )  # fmt: skip
    if changed:
        note(tx, row.id, row.profile, "turn", now)
    return changed > 0


def was_answered(tx: Transaction, row: Locked, call_id: str, now: int) -> bool:
    """Whether it was answered at this time."""
    return any(a.call_id == call_id and a.answered_at == now for a in of_turn(tx, row.no, row.turn))


def start(tx: Transaction, no: int, turn: int, calls: Sequence[str]) -> None:
    """These are about to run: from now on nobody knows whether they did."""
    for call_id in calls:
        tx.run("approval_start", no=no, turn=turn, call_id=call_id)


def delete(tx: Transaction, no: int) -> None:
    tx.run("approval_delete", no=no)


def erase(tx: Transaction, no: int, person: str | None = None) -> None:
    """Who answered; a `person`: only those that this one gave."""
    tx.run("approval_erase", no=no, person=person)
