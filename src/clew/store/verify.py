"""Every invariant of docs/invariants.md as a check that reads the whole store.

Constraints keep these true; this recomputes them from the rows, so that a broken constraint, a
damaged file or a fault of ours is seen. It reads one conversation at a time, each in a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from clew.domain.compactions import Ref, Stub
from clew.domain.cuts import Cut, in_force_at
from clew.domain.erasure import tombstone
from clew.domain.parts import call_ids, unasked_ids
from clew.errors import Corrupt, NotFound
from clew.store import attempts, blobs, compactions, conversations, cuts, log, turns
from clew.store.backend import Transaction
from clew.store.conversations import Locked
from clew.store.database import Database
from clew.store.kit import Kit

PAGE = 200
WINDOW = 2000
"""Rows of one conversation held in memory at once."""


class Problem(Struct, frozen=True):
    """An invariant that does not hold, where, and what was found."""

    invariant: str
    conversation: str | None
    detail: str


def verify(db: Database, progress: Callable[[int, int], None] | None = None) -> list[Problem]:
    """All problems; an empty list when every invariant holds. `progress(done, of)` counts
    conversations."""
    found = db.read(lambda tx: list(_store_wide(tx)))
    last = db.read(lambda tx: tx.rows("conversation_count_all"))[0][0]
    after = done = 0
    while True:
        page = db.read(lambda tx, after=after: tx.rows("conversation_all", no=after, limit=PAGE))
        if not page:
            return found
        for no, id, _ in page:
            found.extend(db.read(lambda tx, no=no, id=id: list(_conversation(tx, db.kit, no, id))))
            done += 1
        after = page[-1][0]
        if progress is not None:
            progress(done, last)


def _store_wide(tx: Transaction) -> Iterator[Problem]:
    for (text,) in tx.rows("integrity"):
        if text != "ok":
            yield Problem("I-00", None, f"integrity check: {text}")
    for table, _, parent, _ in tx.rows("foreign_keys"):
        yield Problem("I-00", None, f"a row of {table} names no row of {parent}")
    for profile, source, key, conversation in tx.rows("binding_dangling"):
        yield Problem(
            "I-15", conversation, f"binding {profile}/{source}/{key!r} names no conversation"
        )
    for profile, source, foreign_id, conversation in tx.rows("alias_dangling"):
        yield Problem(
            "I-13", conversation, f"alias {profile}/{source}/{foreign_id!r} names no conversation"
        )


def _conversation(tx: Transaction, kit: Kit, no: int, id: str) -> Iterator[Problem]:
    locked = conversations.peek(tx, no)
    if locked is None:
        return
    if locked.binned_at is not None:
        return  # being deleted: its rows are on their way out
    try:
        for invariant, detail in _checks(tx, kit, locked):
            yield Problem(invariant, id, detail)
    except NotFound as error:
        yield Problem("I-17", id, f"a branch inherits from a conversation that is gone: {error}")
    except Corrupt as error:
        yield Problem("I-00", id, f"a row cannot be decoded: {error}")


Finding = tuple[str, str]
"""(invariant, detail)"""


def _checks(tx: Transaction, kit: Kit, row: Locked) -> Iterator[Finding]:
    parts = log.segments(tx, row.no, row.base, row.origin, row.head)
    cut_list = cuts.all_of(tx, row.no)
    yield from _seqs(tx, row)
    yield from _origin(tx, row)
    yield from _cuts(row, cut_list)
    yield from _blobs(tx, row)
    yield from _counters(tx, row, parts, cut_list)
    yield from _turns(tx, row)
    yield from _messages(tx, kit, row, parts)
    yield from _compactions(tx, kit, row, parts, cut_list)


def _seqs(tx: Transaction, row: Locked) -> Iterator[Finding]:
    count, first, last, keys, inherited = tx.rows("message_bounds", no=row.no, base=row.base)[0]
    if count != row.head - row.base or (count and (first, last) != (row.base + 1, row.head)):
        yield "I-01", f"{count} rows, seqs {first}..{last}; base {row.base}, head {row.head}"
    if keys:
        yield "I-05", f"{keys} keys of an inherited message name another message here"
    if inherited:
        yield "I-01", f"{inherited} rows lie at or below the base {row.base}"


def _origin(tx: Transaction, row: Locked) -> Iterator[Finding]:
    if row.base and row.origin is None:
        yield "I-17", f"base is {row.base} but there is no origin"
    if row.origin is None:
        return
    origin = conversations.peek(tx, row.origin)
    if origin is None:
        yield "I-17", "its origin is gone"
    elif origin.profile != row.profile:
        yield "I-17", f"its origin is in profile {origin.profile!r}"
    elif row.base > origin.head:
        yield "I-17", f"base {row.base} lies above the origin's head {origin.head}"


def _cuts(row: Locked, cut_list: Sequence[Cut]) -> Iterator[Finding]:
    for cut in cut_list:
        if not 0 < cut.from_seq <= cut.to_seq <= row.head:
            yield "I-06", f"cut {cut.number} hides {cut.from_seq}..{cut.to_seq} of 1..{row.head}"
    # A branch has copies of cuts that moved its origin's view and not its own.
    moves = 0 if row.kind == "branch" else sum(1 if cut.in_force else 2 for cut in cut_list)
    if row.view < moves:
        yield "I-06", f"the view is {row.view}; the cuts moved it {moves} times"


def _blobs(tx: Transaction, row: Locked) -> Iterator[Finding]:
    for digest in blobs.damaged(tx, row.no):
        yield "I-11", f"the bytes of the blob {digest} are not those that its hash names"


def _counters(
    tx: Transaction, row: Locked, parts: Sequence[log.Segment], cut_list: Sequence[Cut]
) -> Iterator[Finding]:
    visible = cuts.visible_count(tx, parts, cut_list, row.head)
    if visible != row.message_count:
        yield "I-18", f"message_count is {row.message_count}, visible are {visible}"
    waiting = len(tx.rows("inbox_waiting", no=row.no))
    if waiting != row.waiting:
        yield "I-18", f"waiting is {row.waiting}, the inbox holds {waiting}"
    generations = [r[0] for r in tx.rows("compaction_generations", no=row.no)]
    if generations != list(range(1, row.generation + 1)):
        yield "I-10", f"generation is {row.generation}, compactions are {generations}"
    for subscriber, number, kind, generation in tx.rows("boundary_odd", no=row.no):
        yield "I-20", f"{subscriber!r} waits for {kind} {number} of generation {generation}"
    for entry in tx.rows("inbox_taken_of", no=row.no):
        if entry[0] is None:
            yield "I-05", "a taken inbox message is not in the log"


def _turns(tx: Transaction, row: Locked) -> Iterator[Finding]:
    still_open = [r[0] for r in tx.rows("turn_open_of", no=row.no)]
    if still_open != ([] if row.turn is None else [row.turn]):
        yield "I-03", f"open turns are {still_open}, the conversation names {row.turn}"
    if row.holder is not None and row.turn is None:
        yield "I-04", "a right is held without an open turn"
    newest = tx.row("turn_last", no=row.no)
    if newest is not None and newest[0] and not row.fence:
        yield "I-04", f"there are {newest[0]} turns, and the fence was never moved"
    for number in still_open:
        state = turns.get(tx, row.no, number).state
        if (state == "running") != (row.holder is not None):
            yield "I-04", f"turn {number} is {state}, its right is held by {row.holder or 'nobody'}"
    for number, first, last, count in tx.rows("message_turns", no=row.no):
        turn = turns.get(tx, row.no, number)
        if last - first + 1 != count or first < turn.first_seq:
            yield "I-03", f"turn {number} holds {count} messages within seqs {first}..{last}"


def _messages(
    tx: Transaction, kit: Kit, row: Locked, parts: Sequence[log.Segment]
) -> Iterator[Finding]:
    calls: set[str] = set()
    taken = {r[0] for r in tx.rows("inbox_taken_of", no=row.no)}
    for first in range(row.base + 1, row.head + 1, WINDOW):
        last = min(first + WINDOW - 1, row.head)
        for message in log.read(tx, kit.codec, [(row.no, first, last)]):
            if message.is_erased and message.parts != tombstone(message.parts):
                yield "I-23", f"seq {message.seq} was erased and still says something"
            for digest in blobs.hashes(message.parts):
                try:
                    blobs.get(tx, [row.no], digest.hex())
                except NotFound:
                    yield "I-11", f"seq {message.seq} refers to a blob that is gone"
            # Within turns results follow their calls; a plain append may bring what it likes.
            unasked = unasked_ids([message.parts]) - calls
            calls.update(call_ids(message.parts))
            if message.turn is None or message.seq in taken or not unasked:
                continue
            before = log.ranges(parts, (), 1, message.seq - 1)
            if log.not_asked(tx, kit.codec, before, unasked):
                yield "I-07", f"the tool result at seq {message.seq} follows no call"
    for turn, call_id, there in tx.rows("approval_all", no=row.no):
        if there is None:
            yield "I-21", f"the call {call_id!r} is of turn {turn}, which is not there"
        elif call_id not in calls:
            yield "I-21", f"no message makes the call {call_id!r}, which a person must allow"


def _compactions(
    tx: Transaction, kit: Kit, row: Locked, parts: Sequence[log.Segment], cut_list: Sequence[Cut]
) -> Iterator[Finding]:
    known = {cut.number for cut in cut_list}
    for record in compactions.all_of(tx, kit, row.no):
        where = f"compaction {record.generation}"
        if not 0 < record.covers_to <= row.head:
            yield "I-08", f"{where} covers to {record.covers_to}, head is {row.head}"
            continue
        if not set(record.cuts) <= known:
            yield "I-08", f"{where} names cuts {record.cuts}, known are {sorted(known)}"
        for item in record.body:
            seqs = (item.first, item.last) if isinstance(item, Ref) else (1, 1)
            seqs = (item.seq, item.seq) if isinstance(item, Stub) else seqs
            if not 0 < seqs[0] <= seqs[1] <= record.covers_to:
                yield "I-08", f"{where} has {item} outside 1..{record.covers_to}"
        for item in compactions.out_of_order(record.body):
            yield "I-08", f"{where} names {item} again, or out of order"
        if record.kind == "ours" and record.cuts == in_force_at(cut_list, record.covers_to):
            covered = log.ranges(parts, cut_list, 1, record.covers_to)
            split = compactions.unanswered(tx, kit, covered)
            split |= compactions.split_in_turn(tx, kit, parts, cut_list, record.covers_to)
            if split:
                yield "I-08", f"{where} splits the calls {sorted(split)} from their results"
        if record.attempt is not None:
            state = attempts.get(tx, row.no, record.attempt).state
            if state != "committed":
                yield "I-09", f"{where} comes from attempt {record.attempt}, which is {state}"
