"""All that a stretch of messages says and does, merged with what earlier epochs hold."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from clew.compaction.ledger.calls import Doings
from clew.compaction.ledger.claim import Claim
from clew.compaction.ledger.exchanges import Exchanges
from clew.compaction.ledger.merge import Ledger
from clew.compaction.ledger.pending import Pending
from clew.compaction.ledger.rows import (
    Add,
    Close,
    Epoch,
    Gone,
    Operation,
    Row,
    Supersede,
    label_of,
)  # fmt: skip
from clew.compaction.ledger.speech import said
from clew.domain.messages import Message


class Gathered(msgspec.Struct):
    """All rows of a stretch of messages, before any is left out."""

    rows: list[Row]
    replaced: int
    gone: list[Gone]
    aged: int = 0
    """What was left open so long ago that it is not shown."""


def gather(
    earlier: Sequence[Epoch], messages: Sequence[Message], operations: Sequence[Operation] = ()
) -> Gathered:
    """Everything that the messages say and do, merged with what earlier epochs hold."""
    ledger, old_rows = _earlier(earlier)
    exchanges = Exchanges([row for row in old_rows if row.kind == "ask" and row.state == "open"])
    before = {(row.seq, row.text) for row in exchanges.open}
    pending = Pending(old_rows)
    doings = Doings(old_rows)
    for message in messages:
        doings.read(message)
        found = said(message)
        for one in found:
            if one.row.kind != "ask":
                ledger.add(one.row, one.claims, one.replaces)
        exchanges.read(message, found)
        pending.read(message, found)
    exchanges.finish()
    for done in exchanges.ended:
        pending.finish(f"done: {done.text}", done)
    by_seq = {message.seq: message for message in messages} if operations else {}
    for operation in operations:
        _apply(operation, ledger, exchanges, pending, by_seq)
    left = pending.standing()
    gone = [
        Gone(ledger.rows[place].seq, label_of(ledger.rows[place]))
        for place in sorted(ledger.dead)
        if place < ledger.sealed
    ]
    gone += [
        Gone(row.seq, label_of(row)) for row in exchanges.closed if (row.seq, row.text) in before
    ]
    gone += [Gone(row.seq, label_of(row)) for row in (*pending.closed, *doings.gone)]
    fresh = [row for row in exchanges.open if (row.seq, row.text) not in before]
    living = ledger.living()
    replaced = len(ledger.rows) - ledger.sealed - len(living) - ledger.repeated
    void = {ledger.rows[place].seq for place in ledger.dead}
    ended = [_without_void(row, void) for row in exchanges.ended]
    rows = [*living, *left, *fresh, *ended, *pending.ended, *doings.checklist(),
            *_new_files(doings, old_rows), *doings.errors(), *doings.commands()]  # fmt: skip
    return Gathered(rows, replaced, gone, pending.aged)


def _without_void(done: Row, void: set[int]) -> Row:
    """A done request without what its answer began with, when that no longer holds."""
    answer = (done.slot or "").removeprefix("answer:")
    if done.value and answer.isdecimal() and int(answer) in void:
        return msgspec.structs.replace(done, value=None)
    return done


def _new_files(doings: Doings, old_rows: list[Row]) -> list[Row]:
    """Files edited, and others that no earlier epoch names."""
    known = {row.text: row.state for row in old_rows if row.kind == "file"}
    told = {"seen": ("seen", "read", "edited"), "read": ("read", "edited")}
    return [
        row for row in doings.files.values()
        if known.get(row.text) not in told.get(row.state or "", ())
    ]  # fmt: skip


def _earlier(epochs: Sequence[Epoch]) -> tuple[Ledger, list[Row]]:
    """The rows of earlier epochs that still hold."""
    rows = holding(epochs)
    ledger = Ledger()
    for row in rows:
        if row.kind in ("rule", "decision", "fact", "note"):
            ledger.add(row, _claims_of(row))
    ledger.dead.clear()
    ledger.seal()
    return ledger, rows


def _claims_of(row: Row) -> list[Claim]:
    if row.slot is None:
        return []
    dimension, _, scope = row.slot.partition(":")
    return [Claim(dimension, tuple(scope.split()), row.value or "", False, False)]


def holding(epochs: Sequence[Epoch]) -> list[Row]:
    """The rows of epochs, without those that a later epoch declares void."""
    void: set[tuple[int, str]] = set()
    out: list[list[Row]] = []
    for epoch in reversed(epochs):
        out.append([row for row in epoch.rows if (row.seq, label_of(row)) not in void])
        void.update((one.seq, one.label) for one in epoch.gone)
    return [row for rows in reversed(out) for row in rows]


def _apply(
    operation: Operation, ledger: Ledger, exchanges: Exchanges, pending: Pending,
    by_seq: dict[int, Message],
) -> None:  # fmt: skip
    """What a model proposed. It adds rows, and takes none away but by an explicit pair of seqs of
    which the older has one row that can be replaced, or one of the same slot."""
    match operation:
        case Add(kind, text, seq):
            message = by_seq.get(seq)
            at = message.created_at if message else None
            ledger.add(Row(kind, " ".join(text.split()), seq, None, None, at or None, (), "model"))
        case Supersede(old, new):
            ledger.supersede(old, new)
        case Close(seq):
            exchanges.close(seq, None)
            ledger.close(seq)
            pending.close(seq)
