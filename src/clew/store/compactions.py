"""Compactions at the level of records; the engine that writes summaries is above the store.

A compaction is a record that says what stands for 1..covers_to. Which one is in effect follows
from the records and the cuts in force; nothing is ever retired or brought back.
Invariants: I-08 (what a compaction may cover), I-09 (one commit of an attempt), I-10 (generations).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from clew.domain.compactions import Attempt, BodyItem, Compaction, Inline, Proposal, Ref, Stub
from clew.domain.cuts import Cut, hidden, in_force_at, visible_ranges
from clew.domain.messages import Message
from clew.domain.parts import answered_ids, call_ids, unasked_ids
from clew.errors import Cancelled, InvalidCompaction, NotFound
from clew.store import aliases, attempts, boundaries, conversations, cuts, log, turns
from clew.store.backend import Row, Transaction
from clew.store.changes import note
from clew.store.codec import json_value
from clew.store.conversations import Locked
from clew.store.kit import Kit
from clew.store.unit import Once

_BODY = tuple[BodyItem, ...]
_TOKENS = 1 << 53
"""No count is higher: sums of them stay integers everywhere."""


def compaction_of(kit: Kit, row: Row) -> Compaction:
    return Compaction(
        generation=row[0], attempt=row[1], covers_to=row[2],
        body=kit.codec.value(row[3], _BODY), cuts=tuple(json_value(row[4])), kind=row[5],
        tokens_before=row[6], tokens_after=row[7], created_at=row[8], undone_at=row[9],
        receipt=json_value(row[10]), undone_tokens=row[11],
    )  # fmt: skip


def all_of(tx: Transaction, kit: Kit, no: int) -> tuple[Compaction, ...]:
    """Newest generation first."""
    return tuple(compaction_of(kit, row) for row in tx.rows("compaction_all", no=no))


def effective(
    tx: Transaction, kit: Kit, no: int, cut_list: Sequence[Cut], last: int = 1 << 62,
    without: int | None = None,
) -> Compaction | None:  # fmt: skip
    """The compaction in effect: the newest, not undone, that covers nothing above `last` and
    whose cuts are those in force at or below its cover. `without`: that generation aside."""
    for generation, covers_to, numbers in tx.rows("compaction_heads", no=no):
        if covers_to > last or generation == without:
            continue
        if tuple(json_value(numbers)) == in_force_at(cut_list, covers_to):
            row = tx.row("compaction_get", no=no, generation=generation)
            return None if row is None else compaction_of(kit, row)
    return None


def inherit(tx: Transaction, kit: Kit, branch: int, record: Compaction, now: int) -> None:
    """Give a branch its origin's compaction as generation 1, made by no attempt of its own."""
    tx.run(
        "compaction_insert", no=branch, generation=1, attempt=None, covers_to=record.covers_to,
        body=kit.codec.pack(record.body), cuts=msgspec.json.encode(record.cuts).decode(),
        kind=record.kind, tokens_before=record.tokens_before, tokens_after=record.tokens_after,
        at=now, receipt=kit.json("receipt", record.receipt),
    )  # fmt: skip


def delete(tx: Transaction, no: int) -> None:
    tx.run("compaction_delete", no=no)


def check_tokens(*counts: int) -> None:
    """Refuse what is no count of tokens."""
    for tokens in counts:
        if not 0 <= tokens <= _TOKENS:
            raise InvalidCompaction(f"{tokens} is no count of tokens; give 0..{_TOKENS}")


class Committed(NamedTuple):
    """The compaction, or None when the attempt was overtaken and is now marked so."""

    compaction: Compaction | None


class Commit(Once[Committed]):
    """Commit an attempt's result, or the record of another tool's compaction.

    One transaction: lock; already committed: its compaction; not open: Cancelled; the view moved:
    the attempt becomes `overtaken` (no strike, no cooldown) and nothing else is written; else
    swap, move view and generation, insert.
    """

    def __init__(
        self, kit: Kit, no: int, name: str, number: int | None, proposal: Proposal,
        segment: tuple[str, str] | None = None, verdict: str | None = None,
        error: str | None = None,
    ) -> None:  # fmt: skip
        self._kit, self._no, self._name, self._number = kit, no, name, number
        self._verdict, self._error = kit.remark(verdict), kit.remark(error)
        self._proposal, self._segment = proposal, None
        if segment is not None:
            self._segment = kit.key("alias source", segment[0]), kit.key("alias", segment[1])
        self._body = kit.codec.pack(proposal.body)
        self._receipt = kit.json("receipt", proposal.receipt)
        check_tokens(proposal.tokens_before, proposal.tokens_after)
        if number is not None and not proposal.body:
            raise InvalidCompaction("a compaction without items would drop what it covers")
        if number is not None and proposal.tokens_after >= proposal.tokens_before:
            raise InvalidCompaction(
                f"{proposal.tokens_after} tokens after, {proposal.tokens_before} before: "
                "a compaction must shrink what it stands for"
            )

    def is_stored(self, tx: Transaction) -> bool:
        assert self._first is not None
        record = self._first.compaction
        if record is None:
            return attempts.get(tx, self._no, self._number or 0).state == "overtaken"
        row = tx.row("compaction_get", no=self._no, generation=record.generation)
        return row is not None and compaction_of(self._kit, row) == record

    def run(self, tx: Transaction) -> Committed:
        now = self._kit.clock.now()
        row = conversations.lock(tx, self._no, self._name)
        attempt = None
        if self._number is not None:
            done = tx.row("compaction_of_attempt", no=row.no, attempt=self._number)
            if done is not None:
                return Committed(compaction_of(self._kit, done))
            attempt = attempts.get(tx, row.no, self._number)
            if attempt.state != "open":
                raise Cancelled(self._number, attempt.state)
            if attempt.view != row.view:
                attempts.swap(tx, row.no, self._number, "overtaken", now)
                return Committed(None)
        cut_list = cuts.all_of(tx, row.no)
        check(tx, self._kit, row, cut_list, self._proposal)
        if attempt is not None:
            attempts.swap(
                tx, row.no, attempt.number, "committed", now, self._verdict, self._error,
                self._proposal.tokens_after,
            )  # fmt: skip
        made = self._insert(tx, row, cut_list, now)
        self._tell(tx, row, attempt, made, now)
        return Committed(made)

    def _tell(
        self, tx: Transaction, row: Locked, attempt: Attempt | None, made: Compaction, now: int
    ) -> None:
        """Subscribers hear of ours alone: another tool's came about there, at its own time."""
        renamed = None if self._segment is None else self._segment[1]
        if attempt is not None:
            boundaries.add(
                tx, row.no, row.profile, "compaction", made.generation, attempt.trigger, now,
                to_id=renamed,
            )  # fmt: skip
        if self._segment is not None:  # after that: it reads what the name was before
            aliases.claim(
                tx, self._kit, row, *self._segment, from_seq=row.head + 1, kind="segment"
            )  # fmt: skip

    def _insert(
        self, tx: Transaction, row: Locked, cut_list: Sequence[Cut], now: int
    ) -> Compaction:
        plan, generation = self._proposal, row.generation + 1
        conversations.compacted(tx, row, generation)
        numbers = in_force_at(cut_list, plan.covers_to)
        tx.run(
            "compaction_insert", no=row.no, generation=generation, attempt=self._number,
            covers_to=plan.covers_to, body=self._body, cuts=msgspec.json.encode(numbers).decode(),
            kind="ours" if self._number is not None else "foreign",
            tokens_before=plan.tokens_before, tokens_after=plan.tokens_after, at=now,
            receipt=self._receipt,
        )  # fmt: skip
        note(tx, row.id, row.profile, "compacted", now)
        stored = tx.row("compaction_get", no=row.no, generation=generation)
        assert stored is not None
        return compaction_of(self._kit, stored)


def land(
    tx: Transaction, kit: Kit, row: Locked, covers_to: int, body: tuple[BodyItem, ...],
    receipt: dict[str, Any], at: int, tokens: tuple[int | None, int | None],
) -> Locked:  # fmt: skip
    """Store another tool's compaction. It may have been made in the middle of a call: then what
    it covers ends before that. Nothing is stored that covers nothing, or puts nothing in the
    place of what it covers."""
    cut_list = cuts.all_of(tx, row.no)
    covers_to = _settled(tx, kit, row, cut_list, covers_to)
    items = tuple(item for item in body if _is_shown(item, covers_to, cut_list))
    if not covers_to or not items or out_of_order(items):
        return row
    generation = row.generation + 1
    conversations.compacted(tx, row, generation)
    tx.run(
        "compaction_insert", no=row.no, generation=generation, attempt=None, covers_to=covers_to,
        body=kit.codec.pack(items),
        cuts=msgspec.json.encode(in_force_at(cut_list, covers_to)).decode(), kind="foreign",
        tokens_before=tokens[0], tokens_after=tokens[1], at=at,
        receipt=kit.json("receipt", receipt),
    )  # fmt: skip
    note(tx, row.id, row.profile, "compacted", at)
    return row._replace(generation=generation, view=row.view + 1)


def _is_shown(item: BodyItem, covers_to: int, cut_list: Sequence[Cut]) -> bool:
    """Whether an item lies within what is covered and shows anything."""
    match item:
        case Ref(first=first, last=last):
            return last <= covers_to and bool(visible_ranges(cut_list, first, last))
        case Stub(seq=seq):
            return seq <= covers_to and not hidden(cut_list, seq)
        case Inline():
            return True


def _settled(
    tx: Transaction, kit: Kit, row: Locked, cut_list: Sequence[Cut], covers_to: int
) -> int:
    """The highest seq, at most `covers_to`, that keeps every call and its results on one side."""
    parts = log.segments_of(tx, row)
    above = log.ranges(parts, cut_list, covers_to + 1, row.head)
    wanted = unasked_ids(message.parts for message in _forwards(tx, kit, above))
    below = log.ranges(parts, cut_list, 1, covers_to)
    if wanted:
        wanted -= log.not_asked(tx, kit.codec, below, wanted)
    wanted |= unanswered(tx, kit, below)
    passed: set[str] = set()
    """Calls whose results lie between here and the border."""
    for message in log.backwards(tx, kit.codec, below):
        if not wanted:
            break
        made = set(call_ids(message.parts))
        passed |= set(answered_ids(message.parts))
        if made & wanted:
            covers_to = message.seq - 1
            wanted |= passed
            passed = set()
        wanted -= made
        passed -= made
    return covers_to


def check(
    tx: Transaction, kit: Kit, row: Locked, cut_list: Sequence[Cut], proposal: Proposal
) -> None:
    """Refuse a compaction that breaks a rule of I-08: InvalidCompaction says which."""
    covers_to = proposal.covers_to
    if not 0 < covers_to <= row.head:
        raise InvalidCompaction(f"covers_to {covers_to} is not within 1..{row.head}")
    if row.turn is not None and covers_to >= turns.get(tx, row.no, row.turn).first_seq:
        raise InvalidCompaction(f"covers_to {covers_to} reaches into the open turn {row.turn}")
    for item in proposal.body:
        match item:
            case Ref(first=first, last=last):
                if not 0 < first <= last <= covers_to:
                    raise InvalidCompaction(f"{item} does not lie within 1..{covers_to}")
            case Stub(seq=seq):
                if not 0 < seq <= covers_to or hidden(cut_list, seq):
                    raise InvalidCompaction(f"stub of seq {seq} names no visible covered message")
            case Inline():
                pass
    for item in out_of_order(proposal.body):
        raise InvalidCompaction(f"{item} names a message again, or one before those named already")
    _check_pairs(tx, kit, row, cut_list, covers_to)


def out_of_order(body: Sequence[BodyItem]) -> list[Ref | Stub]:
    """Items that do not lie above all that the items before them name: a message stands in a body
    once, and in the order of the log."""
    found: list[Ref | Stub] = []
    reached = 0
    for item in body:
        if isinstance(item, Inline):
            continue
        first, last = (item.first, item.last) if isinstance(item, Ref) else (item.seq, item.seq)
        if first <= reached:
            found.append(item)
        reached = max(reached, last)
    return found


def _check_pairs(
    tx: Transaction, kit: Kit, row: Locked, cut_list: Sequence[Cut], covers_to: int
) -> None:
    """A call and its results stay on one side of the border.

    Read are the messages above, which are few, for results of calls that were not made above, too;
    only if there are any, those below; and the end of those below for calls that want a result.
    """
    parts = log.segments_of(tx, row)
    above = log.ranges(parts, cut_list, covers_to + 1, row.head)
    below = log.ranges(parts, cut_list, 1, covers_to)
    answered = unasked_ids(message.parts for message in _forwards(tx, kit, above))
    split = answered - log.not_asked(tx, kit.codec, below, answered) if answered else set[str]()
    if split:
        raise InvalidCompaction(
            f"covers_to {covers_to} splits the calls {sorted(split)} from results above it"
        )
    if unanswered(tx, kit, below):
        raise InvalidCompaction(f"covers_to {covers_to} covers a tool call that wants its result")


def _forwards(tx: Transaction, kit: Kit, pieces: Sequence[log.Segment]) -> Iterator[Message]:
    """Messages in order, read in steps."""
    for no, first, last in pieces:
        while first <= last:
            step = log.read_some(tx, kit.codec, [(no, first, last)], 200, backward=False)
            yield from step
            first = step[-1].seq + 1 if step else last + 1


def split_in_turn(
    tx: Transaction, kit: Kit, parts: Sequence[log.Segment], cut_list: Sequence[Cut],
    covers_to: int,
) -> set[str]:  # fmt: skip
    """Calls at or below `covers_to` whose results lie above it, of the turn that spans the border.

    For verify: what a turn brings is there before the first compaction that covers a part of it,
    so it was the commit that split them. (A plain append may bring a result at any later time, and
    a result that a cut ever hid may have been hidden then.)
    """
    split: set[str] = set()
    for no, first, last in parts:
        if not first <= covers_to < last:
            continue
        turn = log.at(tx, kit.codec, parts, covers_to).turn
        made: set[str] = set()
        wanted: set[str] = set()
        for message in _forwards(tx, kit, [(no, covers_to + 1, last)]):
            if turn is None or message.turn != turn:
                break
            if not any(cut.from_seq <= message.seq <= cut.to_seq for cut in cut_list):
                wanted.update(set(answered_ids(message.parts)) - made)
            made.update(call_ids(message.parts))
        below = log.ranges(parts, cut_list, first, covers_to) if wanted else []
        for message in log.backwards(tx, kit.codec, below):
            if message.turn != turn:
                break
            split.update(wanted & set(call_ids(message.parts)))
    return split


def unanswered(tx: Transaction, kit: Kit, pieces: Sequence[log.Segment]) -> set[str]:
    """Calls at the very end of these messages that no result answers yet."""
    answered: set[str] = set()
    for message in log.backwards(tx, kit.codec, pieces):
        if results := answered_ids(message.parts):
            answered.update(results)
            continue
        return set(call_ids(message.parts)) - answered
    return set()


class UndoCompaction(Once[bool]):
    """Take a compaction out of effect; the log stands in its place again."""

    def __init__(self, kit: Kit, no: int, name: str, generation: int, tokens: int | None) -> None:
        self._kit, self._no, self._name, self._generation = kit, no, name, generation
        self._tokens, self._now = tokens, kit.clock.now()
        if tokens is not None:
            check_tokens(tokens)

    def is_stored(self, tx: Transaction) -> bool:
        return bool(self._first) and self._record(tx).undone_at == self._now

    def _record(self, tx: Transaction) -> Compaction:
        row = tx.row("compaction_get", no=self._no, generation=self._generation)
        if row is None:
            raise NotFound("compaction", str(self._generation))
        return compaction_of(self._kit, row)

    def run(self, tx: Transaction) -> bool:
        now = self._now
        row = conversations.lock(tx, self._no, self._name)
        self._record(tx)
        changed = tx.changed(
            "compaction_undo", no=row.no, generation=self._generation, at=now, tokens=self._tokens
        )
        if not changed:
            return False
        attempts.cancel_all(tx, row.no, now)
        conversations.compacted(tx, row, row.generation)
        boundaries.add(tx, row.no, row.profile, "undo", self._generation, "undo", now)
        note(tx, row.id, row.profile, "undone", now)
        return True


def expand(
    tx: Transaction,
    kit: Kit,
    parts: Sequence[log.Segment],
    cut_list: Sequence[Cut],
    compaction: Compaction,
) -> list[tuple[BodyItem, list[Message]]]:
    """Each body item with the messages it names, hidden ones left out.

    What stands together in the log is read at once: a body may name hundreds of short runs.
    """
    spans = [span for item in compaction.body if (span := _span(item)) is not None]
    pieces = [
        piece for first, last in _joined(spans)
        for piece in log.ranges(parts, cut_list, first, last)
    ]  # fmt: skip
    rows = log.read(tx, kit.codec, pieces) if pieces else []
    shown = log.with_places(tx, kit.codec, parts, cut_list, rows)
    places = [place for place, _ in shown]
    expanded: list[tuple[BodyItem, list[Message]]] = []
    for item in compaction.body:
        named: list[Message] = []
        if (span := _span(item)) is not None:
            here = slice(bisect_left(places, span[0]), bisect_right(places, span[1]))
            named = [message for _, message in shown[here]]
        expanded.append((item, named))
    return expanded


def _span(item: BodyItem) -> tuple[int, int] | None:
    """The seqs that an item names."""
    match item:
        case Ref(first=first, last=last):
            return first, last
        case Stub(seq=seq):
            return seq, seq
        case Inline():
            return None


def _joined(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in their order, those that touch as one."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def erase(tx: Transaction, kit: Kit, row: Locked, seq: int, now: int) -> tuple[Locked, list[Row]]:
    """Take every compaction that covers this seq out of effect, and its body and receipt away: it
    may hold what the message said. The log stands in its place; the next one is made without it.
    Gives what was taken: (generation, body, receipt, undone_at)."""
    taken = [
        old for old in tx.rows("compaction_erasable", no=row.no, seq=seq)
        if (old[1], old[2]) != (_nothing(kit), None) or old[3] is None
    ]  # fmt: skip
    for generation, _, _, undone in taken:
        if undone is None:
            tx.run("compaction_undo", no=row.no, generation=generation, at=now, tokens=None)
            conversations.compacted(tx, row, row.generation)  # each undo has a view of its own
            boundaries.add(tx, row.no, row.profile, "undo", generation, "undo", now)
            row = row._replace(view=row.view + 1)
        tx.run("compaction_erase", no=row.no, generation=generation, body=_nothing(kit))
    return row, taken


def _nothing(kit: Kit) -> bytes:
    return kit.codec.pack(())


def packed(tx: Transaction, after: tuple[int, int], tags: tuple[bytes, bytes], n: int) -> list[Row]:
    """At most n bodies that are packed in one of two ways."""
    plain, escaped = tags
    return tx.rows(
        "compaction_packed", no=after[0], seq=after[1], plain=plain, escaped=escaped, limit=n
    )


def repack(tx: Transaction, no: int, generation: int, new: bytes) -> None:
    """The same body, packed in another way."""
    tx.run("compaction_repack", no=no, seq=generation, new=new)
