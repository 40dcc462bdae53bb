"""Epochs: written once, frozen, and folded into one when they have become many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from clew.compaction.ledger.gather import Gathered, gather, holding
from clew.compaction.ledger.page import Page, fitted, narrative_part
from clew.compaction.ledger.pending import aged, is_request
from clew.compaction.ledger.rows import Epoch, Operation, Row
from clew.compaction.ledger.text import day, gone_line, heading
from clew.domain.compactions import BodyItem, Inline
from clew.domain.messages import Message, Role
from clew.domain.parts import Text, plain_text
from clew.domain.values import json_text, json_value

Count = Callable[[str], int]
_NARRATIVE = 3
"""A narrative takes at most one part of the room in this many."""


def write_epoch(
    earlier: Sequence[Epoch], messages: Sequence[Message], *, number: int, room: int, count: Count,
    narrative: str | None = None, operations: Sequence[Operation] = (),
) -> Epoch:  # fmt: skip
    """The epoch of these messages. Its text never takes more than `room`, as `count` measures it.

    `earlier`: the epochs before it, oldest first; they stay as they are. `narrative`: a model's
    text, for a section of its own. `operations`: what a model proposes about rows.
    """
    last = messages[-1].place if messages else max((epoch.last for epoch in earlier), default=0)
    first = messages[0].place if messages else last
    times = [message.created_at for message in (*messages[:1], *messages[-1:])]
    found = gather(earlier, messages, operations)
    told = narrative_part(narrative, room // _NARRATIVE, count)
    days = [day(time) for time in times]
    page = Page(heading(number, first, last, days, room, count), gone_line(found.gone), told,
                first, room, count, missing=found.aged)  # fmt: skip
    return _epoch(page, found, number, last)


def fold(epochs: Sequence[Epoch], *, number: int, room: int, count: Count) -> Epoch:
    """One epoch in the place of several, oldest first: their rows but for the superseded ones."""
    rows = _unique(holding(epochs))
    old = aged(rows, [row.seq for row in rows if is_request(row)])
    gone = sum(len(epoch.rows) + epoch.replaced for epoch in epochs) - len(rows)
    rows = [row for row in rows if row not in old]
    first = min((epoch.first for epoch in epochs), default=0)
    last = max((epoch.last for epoch in epochs), default=0)
    head = heading(number, first, last, [day(row.at) for row in rows], room, count)
    missing = len(old) + sum(epoch.left_out for epoch in epochs)
    page = Page(head, "", "", first, room, count, missing=missing)
    return _epoch(page, Gathered(rows, gone, []), number, last)


def _epoch(page: Page, found: Gathered, number: int, last: int) -> Epoch:
    rows, left, text = fitted(page, found.rows, last)
    return Epoch(
        number, page.first, last, tuple(rows), text, page.left_out(left), found.replaced,
        tuple(found.gone),
    )  # fmt: skip


def _unique(rows: list[Row]) -> list[Row]:
    """Files and commands that several epochs tell of are one row, the newest."""
    out: dict[tuple[str, str], Row] = {}
    for row in rows:
        keyed = row.kind in ("file", "command") and row.slot
        key = (row.kind, row.slot if keyed and row.slot else f"{row.seq} {row.text}")
        old = out.pop(key, None)
        out[key] = _joined(old, row) if old is not None and row.kind == "file" else row
    return list(out.values())


def _joined(old: Row, new: Row) -> Row:
    """Two epochs' rows of one file: what was done to it outlives a later look."""
    if old.state in ("edited", "deleted") and new.state not in ("edited", "deleted"):
        return old
    if old.state != new.state:
        return new
    was = tuple(sorted({*old.was, old.seq, *new.was} - {new.seq}))[-3:]
    return msgspec.structs.replace(new, was=was)


def inline_of(epoch: Epoch) -> Inline:
    """The epoch as an item of a compaction's body, as it comes back from the store."""
    data: dict[str, Any] = json_value(json_text(msgspec.to_builtins(epoch), "ledger"))
    del data["text"]
    return Inline(role=Role.USER, parts=(Text(epoch.text),), meta={"ledger": data})


def epoch_of(item: BodyItem) -> Epoch | None:
    """The epoch that an item holds, or None when it holds none."""
    if not isinstance(item, Inline) or not item.meta or "ledger" not in item.meta:
        return None
    try:
        return msgspec.convert({**item.meta["ledger"], "text": plain_text(item.parts)}, Epoch)
    except (msgspec.ValidationError, TypeError):
        return None
