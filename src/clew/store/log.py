"""The message table: inserting at the head, looking keys up, reading ranges across origins.

The only writer of `message`. Invariants: I-01 (seq is base+1..head), I-02 (never changes),
I-05 (a key names one message).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import NamedTuple

from clew.domain.cuts import Cut, hidden, visible_ranges
from clew.domain.erasure import ERASED_META
from clew.domain.messages import Appended, Message
from clew.domain.parts import call_ids
from clew.domain.values import json_text
from clew.errors import BatchConflict, InputError, KeyReused, NotFound
from clew.store import blobs
from clew.store.backend import Row, Transaction, Value
from clew.store.codec import Codec
from clew.store.conversations import Locked, appended
from clew.store.cut_rows import all_of
from clew.store.drafts import Prepared, preview_of, uid_bytes
from clew.store.kit import Kit

Segment = tuple[int, int, int]
"""(conversation number, first seq, last seq): a stretch of one numbering, in one conversation."""

MARK = json_text(ERASED_META) or ""
"""The meta of a tombstone, as the trigger on `message` has it."""

SCAN = 500
"""Rows read at once when a uid is looked for backwards."""


class Found(NamedTuple):
    """Where a draft already is, a seq of the log or a number of the inbox, and its uid there.
    Neither: it waited and was withdrawn."""

    uid: bytes
    seq: int | None
    number: int | None = None


def segments(
    tx: Transaction, no: int, base: int, origin: int | None, last: int, hold: bool = False
) -> list[Segment]:
    """What holds seqs 1..last, ascending: the origins' rows, then the conversation's own.

    `hold`: for a unit that writes. Until its end no deletion moves the inherited rows."""
    base_of = "conversation_base_hold" if hold else "conversation_base_of"
    found: list[Segment] = []
    while True:
        if last > base:
            found.append((no, base + 1, last))
        if base == 0 or origin is None:
            return found[::-1]
        no, last = origin, min(last, base)
        row = tx.row(base_of, no=no)
        if row is None:
            raise NotFound("origin", str(no))
        origin, base = row


def segments_of(tx: Transaction, row: Locked) -> list[Segment]:
    """As `segments`, of a conversation that the unit has locked."""
    return segments(tx, row.no, row.base, row.origin, row.head, hold=True)


# ------------------------------------------------------------------ looking up


def find(
    tx: Transaction, kit: Kit, row: Locked, prepared: Sequence[Prepared], seen: int | None
) -> list[Found | None]:
    """Which of the drafts are there already. KeyReused when a name has other content.

    `seen`: the head at this unit's first run, None on the first run. Minted uids cannot exist
    before it, so on a first run only keys and callers' uids cost a statement. An empty answer:
    none is there.
    """
    if seen is None and all(item.minted and item.key is None for item in prepared):
        return []
    found: list[Found | None] = [None] * len(prepared)
    keyed = [i for i, p in enumerate(prepared) if p.key is not None]
    if keyed:
        parts = segments_of(tx, row)
        for i in keyed:
            found[i] = _by_key(tx, kit, row, parts, prepared[i])
    wanted: dict[bytes, int] = {}
    after = row.head
    for i, item in enumerate(prepared):
        if found[i] is not None or (item.minted and seen is None):
            continue
        start = seen if item.minted and seen is not None else item.after
        wanted[item.uid], after = i, min(after, start)
    if wanted:
        _by_uid(tx, kit, row, prepared, wanted, after, found, again=seen is not None)
    return found


def _by_key(
    tx: Transaction, kit: Kit, row: Locked, parts: list[Segment], item: Prepared
) -> Found | None:
    for no, _, last in reversed(parts):
        hit = tx.row("message_by_key", no=no, key=item.key, last=last)
        if hit is not None:
            _same(kit, item, hit[0], hit[1], hit[2])
            return Found(hit[3], hit[0])
    hit = tx.row("inbox_by_key", no=row.no, key=item.key)
    if hit is None:
        return None
    _same(kit, item, hit[9], hit[2], hit[3])
    return Found(hit[1], hit[9], hit[0] if hit[8] == "waiting" else None)


def _by_uid(
    tx: Transaction, kit: Kit, row: Locked, prepared: Sequence[Prepared],
    wanted: dict[bytes, int], after: int, found: list[Found | None], again: bool,
) -> None:  # fmt: skip
    for no, first, last in segments_of(tx, row):
        if last <= after:
            continue
        for hit in tx.rows("message_uids", no=no, after=max(after, first - 1), last=last):
            i = wanted.get(hit[1])
            if i is not None:
                _same(kit, prepared[i], hit[0], hit[2], hit[3])
                found[i] = Found(hit[1], hit[0])
    if row.waiting:
        for hit in tx.rows("inbox_waiting", no=row.no):
            i = wanted.get(hit[1])
            if i is not None:
                _same(kit, prepared[i], None, hit[2], hit[3])
                found[i] = Found(hit[1], None, hit[0])
    if again:
        for hit in tx.rows("inbox_withdrawn", no=row.no):
            i = wanted.get(hit[1])
            if i is not None:
                _same(kit, prepared[i], None, hit[2], hit[3])
                found[i] = Found(hit[1], None)


def _same(kit: Kit, item: Prepared, seq: int | None, role: int, parts: bytes) -> None:
    """A key belongs to one content: role and parts. Compared decoded, since packing may differ."""
    alike = parts == item.parts or kit.codec.json(parts) == kit.codec.json(item.parts)
    if role != item.role or not alike:
        raise KeyReused(item.key or item.uid.hex(), seq)


def all_there(prepared: Sequence[Prepared], found: Sequence[Found | None]) -> bool:
    """Whether every draft is there already."""
    return len(found) == len(prepared) and all(found)


def is_outcome(
    tx: Transaction, kit: Kit, row: Locked, prepared: Sequence[Prepared], seen: int | None,
    outcome: Appended,
) -> bool:  # fmt: skip
    """Whether these drafts are there with this outcome, and not by another's hand."""
    found = find(tx, kit, row, prepared, seen)
    return all_there(prepared, found) and (
        (seqs(found), numbers(found), uids(prepared, found))
        == (outcome.seqs, outcome.numbers, outcome.uids)
    )


def missing(prepared: Sequence[Prepared], found: Sequence[Found | None]) -> int:
    """How many drafts, at the end of the batch, are not there yet; BatchConflict otherwise.

    What is there must be the batch's beginning, in the batch's order, without gaps.
    """
    if not found:
        return len(prepared)
    there = [f for f in found if f is not None]
    places = [f.seq for f in there if f.seq is not None]
    contiguous = places == list(range(places[0], places[0] + len(places))) if places else True
    if not contiguous or any(f is None for f in found[: len(there)]):
        raise BatchConflict(places)
    return len(prepared) - len(there)


def uids(prepared: Sequence[Prepared], found: Sequence[Found | None]) -> tuple[str, ...]:
    """The uids under which the batch is stored: the first writer's, where it was there already."""
    if not found:
        return tuple([item.uid.hex() for item in prepared])
    return tuple(
        (p.uid if f is None else f.uid).hex() for p, f in zip(prepared, found, strict=True)
    )


def seqs(found: Sequence[Found | None]) -> tuple[int, ...]:
    return tuple(f.seq for f in found if f is not None and f.seq is not None)


def numbers(found: Sequence[Found | None]) -> tuple[int, ...]:
    return tuple(f.number for f in found if f is not None and f.number is not None)


# ------------------------------------------------------------------ inserting


def insert(
    tx: Transaction, row: Locked, prepared: Sequence[Prepared], turn: int | None = None
) -> Locked:
    """Insert at head+1.. and move head. Gives the row as it is then."""
    rows: list[Mapping[str, Value]] = []
    seq = row.head
    for item in prepared:
        seq += 1
        rows.append(_columns(row.no, seq, item, turn))
    check_replaces(tx, row, prepared)
    if len(rows) == 1:
        tx.run("message_insert", **rows[0])
    else:
        tx.batch("message_insert", rows)
    keep_blobs(tx, row, prepared)
    visible = appended(tx, row, prepared)
    return row._replace(head=seq, message_count=row.message_count + visible)


def _columns(no: int, seq: int, item: Prepared, turn: int | None) -> dict[str, Value]:
    return {
        "no": no, "seq": seq, "uid": item.uid, "key": item.key, "turn": turn, "role": item.role,
        "author": item.author, "api_group": item.api_group, "replaces": item.replaces,
        "parts": item.parts, "meta": item.meta, "tokens": item.tokens, "at": item.at,
    }  # fmt: skip


def check_replaces(tx: Transaction, row: Locked, prepared: Sequence[Prepared]) -> None:
    """Refuse to stand in for a message that is not there, or that a cut hides: the new one would
    be shown nowhere."""
    if all(item.replaces is None for item in prepared):
        return
    cuts = all_of(tx, row.no)
    for seq, item in enumerate(prepared, row.head + 1):
        if item.replaces is None:
            continue
        if not 0 < item.replaces < seq:
            raise InputError(f"replaces names seq {item.replaces}; give an earlier seq of the log")
        if hidden(cuts, item.replaces):
            raise InputError(
                f"the message at seq {item.replaces} is hidden by a cut, and what replaces it "
                "would be, too; append it without `replaces`"
            )


def holders(tx: Transaction, row: Locked) -> list[int]:
    """The conversations that hold what this one shows, itself first."""
    return [row.no, *(no for no, _, _ in reversed(segments_of(tx, row)) if no != row.no)]


def keep_blobs(tx: Transaction, row: Locked, prepared: Sequence[Prepared]) -> None:
    """Store the bytes that drafts bring; those that they only name have to be here."""
    for item in prepared:
        if item.blobs:
            blobs.insert(tx, holders(tx, row), item.blobs)


def move(tx: Transaction, branch: int, no: int, first: int, last: int) -> None:
    """Copy rows of an origin that is being deleted into a branch, same seqs, same uids."""
    tx.run("message_move", branch=branch, no=no, first=first, last=last)


def delete(tx: Transaction, no: int, limit: int) -> list[int]:
    """Delete the newest `limit` rows of a deleted conversation; gives their ids."""
    ids = [row[0] for row in tx.rows("message_ids", no=no, limit=limit)]
    if ids:
        tx.run("message_delete", no=no, limit=limit)
    return ids


# ------------------------------------------------------------------ reading


def ranges(parts: Sequence[Segment], cuts: Sequence[Cut], first: int, last: int) -> list[Segment]:
    """The visible pieces of first..last with the conversation that holds each, ascending."""
    return [
        (no, max(a, start), min(b, end))
        for no, start, end in parts
        for a, b in visible_ranges(cuts, max(first, start), min(last, end))
    ]


def read(tx: Transaction, codec: Codec, pieces: Sequence[Segment]) -> list[Message]:
    """All messages of these pieces, in order; parts decode on access."""
    found: list[Message] = []
    for no, first, last in pieces:
        rows = tx.rows("message_range", no=no, first=first, last=last)
        found.extend(map(Message, rows, repeat(codec.parts)))
    return found


def read_some(
    tx: Transaction, codec: Codec, pieces: Sequence[Segment], limit: int, backward: bool
) -> list[Message]:
    """At most `limit` messages from one end of the pieces, in reading direction."""
    name = "message_range_backward" if backward else "message_range_forward"
    found: list[Message] = []
    for no, first, last in reversed(pieces) if backward else pieces:
        left = limit - len(found)
        if left <= 0:
            break
        rows: list[Row] = tx.rows(name, no=no, first=first, last=last, limit=left)
        found.extend(Message(row, codec.parts) for row in rows)
    return found


def replacing(tx: Transaction, parts: Sequence[Segment]) -> dict[int, int]:
    """For each message that replaces another: the seq where its place is. Imports only."""
    places: dict[int, int] = {}
    for no, first, last in parts:
        for row in sorted(tx.rows("message_replacements", no=no)):
            seq, replaced = int(row[0]), int(row[1])
            if first <= seq <= last:
                places[seq] = places.get(replaced, replaced)
    return places


def in_place(
    tx: Transaction,
    codec: Codec,
    parts: Sequence[Segment],
    cuts: Sequence[Cut],
    messages: list[Message],
) -> list[Message]:
    """Each replacing message in the place of the one it replaces, and nowhere else."""
    return [shown for _, shown in with_places(tx, codec, parts, cuts, messages)]


def with_places(
    tx: Transaction, codec: Codec, parts: Sequence[Segment], cuts: Sequence[Cut],
    messages: list[Message],
) -> list[tuple[int, Message]]:  # fmt: skip
    """As `in_place`, each message with the seq of its place."""
    places = replacing(tx, parts)
    if not places:
        return [(m.seq, m) for m in messages]
    newest = {root: seq for seq, root in places.items() if not hidden(cuts, seq)}
    return [
        (m.seq, at(tx, codec, parts, newest[m.seq]) if m.seq in newest else m)
        for m in messages
        if m.seq not in places
    ]


def seq_of(tx: Transaction, parts: Sequence[Segment], uid: str) -> int:
    """The seq of a uid, looked for from the newest row back; NotFound."""
    wanted = uid_bytes(uid)
    for no, first, last in reversed(parts):
        before = last + 1
        while before > first:
            rows = tx.rows("message_uids_backward", no=no, before=before, limit=SCAN)
            for seq, found in rows:
                if found == wanted and seq >= first:
                    return seq
            before = rows[-1][0] if rows else 0
    raise NotFound("message", uid)


def at(tx: Transaction, codec: Codec, parts: Sequence[Segment], seq: int) -> Message:
    """The message of one seq; NotFound."""
    found = read(tx, codec, ranges(parts, (), seq, seq))
    if not found:
        raise NotFound("message", str(seq))
    return found[0]


def inherited(messages: list[Message], base: int) -> list[Message]:
    """Messages as a branch shows them: turns of the origin are none of its own."""
    return [m.inherited() if m.seq <= base and m.turn is not None else m for m in messages]


def check_asked(tx: Transaction, codec: Codec, row: Locked, ids: set[str]) -> None:
    """Refuse a tool result that answers no call of this conversation."""
    if ids and (unasked := not_asked(tx, codec, segments_of(tx, row), ids)):
        raise InputError(
            f"tool results answer calls that this conversation has not made: {sorted(unasked)}"
        )


def not_asked(tx: Transaction, codec: Codec, pieces: Sequence[Segment], ids: set[str]) -> set[str]:
    """Which of these calls no message made, looked for from the newest back."""
    wanted = set(ids)
    for message in backwards(tx, codec, pieces):
        wanted -= set(call_ids(message.parts))
        if not wanted:
            break
    return wanted


def last_preview(tx: Transaction, codec: Codec, pieces: Sequence[Segment]) -> str | None:
    """What a list shows: the newest message that a person reads, within the last hundred."""
    for message in read_some(tx, codec, pieces, 100, backward=True):
        if (text := preview_of(message)) is not None:
            return text
    return None


def backwards(tx: Transaction, codec: Codec, pieces: Sequence[Segment]) -> Iterator[Message]:
    """Messages from the newest back, read in small steps."""
    for no, first, last in reversed(pieces):
        while last >= first:
            step = read_some(tx, codec, [(no, first, last)], 50, backward=True)
            yield from step
            last = step[-1].seq - 1 if step else first - 1


# ------------------------------------------------------------------ erasure


def authored(tx: Transaction, profile: str, author: str, after: int, upto: int) -> list[Row]:
    """Conversations after < no <= upto with messages of an author: (no, id, kind, origin, how many,
    how many messages of people are not the author's)."""
    return tx.rows("message_authored", profile=profile, author=author, after=after, upto=upto)


def erasable(
    tx: Transaction, no: int, first: int, last: int, limit: int, author: str | None = None
) -> list[Row]:
    """Messages that are no tombstones: (seq, id, parts, key, author, meta, turn, api_group)."""
    return tx.rows(
        "message_erasable", no=no, first=first, last=last, mark=MARK, author=author, limit=limit
    )


def erase(tx: Transaction, no: int, seq: int, parts: bytes) -> None:
    """The one change that a committed message knows (I-23)."""
    tx.run("message_erase", no=no, seq=seq, parts=parts, mark=MARK)


def packed(tx: Transaction, after: tuple[int, int], tags: tuple[bytes, bytes], n: int) -> list[Row]:
    """At most n messages that are packed in one of two ways."""
    plain, escaped = tags
    return tx.rows(
        "message_packed", no=after[0], seq=after[1], plain=plain, escaped=escaped, limit=n
    )


def repack(tx: Transaction, no: int, seq: int, new: bytes) -> None:
    """The same parts, packed in another way."""
    tx.run("message_repack", no=no, seq=seq, new=new)
