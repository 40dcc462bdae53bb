"""What has to be read to be mended: values that do not decode, gaps in the numbering, results
without their calls, images without their bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import apsw
from msgspec import structs

from clew.domain.compactions import Ref
from clew.domain.messages import ROLE_CODES, Role
from clew.domain.parts import File, Image, Part, Parts, Text, ToolResult, call_ids, unasked_ids
from clew.errors import Corrupt, InputError
from clew.store import blobs
from clew.store.codec import Codec, escape_json, json_text, json_value
from clew.store.salvage_shapes import SQL
from clew.store.sqlite_driver import query
from clew.store.transfer_compare import STANDS_IN

LOST = "[a message was here: it was lost when the store was damaged]"
LOST_BYTES = "[an image or file was here: it was lost when the store was damaged]"
WINDOW = 500
Note = Callable[..., None]
"""note(what, count=1): one thing that was mended."""


def drop_undecodable(store: apsw.Connection, codec: Codec, note: Note) -> None:
    """Delete rows whose content cannot be read: what they held is lost."""
    for table, listed, drop, check in (
        ("message", "packed_message", "drop_message", (codec.parts, json_value)),
        ("inbox message", "packed_inbox", "drop_inbox", (codec.parts, json_value)),
        ("compaction", "packed_compaction", "drop_compaction",
         (codec.json, json_value, json_value)),
    ):  # fmt: skip
        for row in list(query(store, SQL[listed])):
            if not _decodes(check, row[1:]):
                query(store, SQL[drop], (row[0],))
                note(f"{table}s whose content cannot be decoded, left out")
    for table, listed, drop in (
        ("prompt", "packed_prompt", "drop_prompt"), ("tool set", "packed_toolset", "drop_toolset"),
    ):  # fmt: skip
        for digest, packed in list(query(store, SQL[listed])):
            if not _is_text_of(codec, digest, packed):
                query(store, SQL[drop], (digest,))
                note(f"{table}s that are not what their hash says, left out")
    for row, digest, data in list(query(store, SQL["packed_blob"])):
        if hashlib.sha256(data).digest() != digest:
            query(store, SQL["drop_blob"], (row,))
            note("images and files that are not what their hash says, left out")


def _decodes(check: Sequence[Callable[[Any], object]], columns: Sequence[Any]) -> bool:
    try:
        for decode, column in zip(check, columns, strict=True):
            decode(column)
    except (Corrupt, InputError, ValueError):
        return False
    return True


def _is_text_of(codec: Codec, digest: bytes, packed: bytes) -> bool:
    try:
        return hashlib.sha256(escape_json(codec.value(packed, Any))).digest() == digest
    except (Corrupt, ValueError):
        return False


def fill_gaps(store: apsw.Connection, codec: Codec, note: Note) -> dict[str, list[Ref]]:
    """Put a message in the place of each that is missing, so that all others keep their numbers:
    from the inbox if it came by way of it, else a text that says so. Gives the seqs that are lost
    for good, by conversation."""
    lost: dict[str, list[Ref]] = {}
    parts = codec.pack((Text(LOST),))
    for no, id, base, head, made_at in query(store, SQL["gaps"]):
        turn, at, seqs = None, made_at, list[int]()
        places = {row[0]: row[1:] for row in query(store, SQL["message_places"], (no, base))}
        follows = _turn_after(places, base, head)
        for seq in range(base + 1, head + 1):
            if seq in places:
                turn, at = places[seq]
                continue
            same = turn if turn == follows[seq] else None
            if _fill(store, no, id, seq, same, at, parts):
                note("messages found in the inbox")
            else:
                seqs.append(seq)
        if seqs:
            lost[id] = ranges(seqs)
            note("messages that are lost; a text stands in the place of each", len(seqs))
    return lost


def _turn_after(places: dict[int, Any], base: int, head: int) -> dict[int, int | None]:
    """Of each missing seq, the turn of the next message that is there."""
    found: dict[int, int | None] = {}
    turn: int | None = None
    for seq in range(head, base, -1):
        if seq in places:
            turn = places[seq][0]
        else:
            found[seq] = turn
    return found


def _fill(
    store: apsw.Connection, no: int, id: str, seq: int, turn: int | None, at: int, parts: bytes
) -> bool:
    """True: from the inbox."""
    known = query(store, SQL["evidence_row"], ("message_seq", repr((no, seq))))
    number = known[0][0] if known else None
    if number is not None and not query(store, SQL["id_free"], (number,))[0][0]:
        number = None
    query(store, SQL["message_from_inbox"], (no, seq, number, turn))
    if store.changes():
        return True
    uid = hashlib.sha256(f"{id} {seq}".encode()).digest()[:16]
    query(
        store, SQL["message_stand_in"],
        (number, no, seq, uid, turn, ROLE_CODES[Role.SYSTEM], parts, json_text(STANDS_IN), at),
    )  # fmt: skip
    return False


def ranges(seqs: list[int]) -> list[Ref]:
    """Ascending seqs as closed ranges."""
    found: list[Ref] = []
    for seq in seqs:
        if found and found[-1].last == seq - 1:
            found[-1] = Ref(found[-1].first, seq)
        else:
            found.append(Ref(seq, seq))
    return found


def settle_pairs(store: apsw.Connection, codec: Codec, note: Note) -> None:
    """Mend what messages refer to: calls that are lost, and bytes of images that are."""
    for no, _ in query(store, SQL["conversations"]):
        _blobs(store, codec, no, note)
        _results(store, codec, no, note)


def _results(store: apsw.Connection, codec: Codec, no: int, note: Note) -> None:
    """A result whose call is lost stays, and so does what follows it in its turn; but they are of
    no turn any more, in which results follow their calls."""
    calls: set[str] = set()
    taken = {row[0] for row in query(store, SQL["seqs_taken"], (no,))}
    off: set[int] = set()
    for owner, seq, turn, parts in _line(store, codec, no):
        unasked = unasked_ids([parts]) - calls
        calls.update(call_ids(parts))
        if owner != no or turn is None or turn in off or seq in taken or not unasked:
            continue
        off.add(turn)
        query(store, SQL["turn_off"], (no, turn, seq))
        note("turns that lost a call and kept its result; the rest of each is of no turn")
    for conversation, turn, call in query(store, SQL["approvals"]):
        if conversation == no and call not in calls:
            query(store, SQL["approval_drop"], (no, turn, call))
            note("approvals of calls that are lost, left out")


def _blobs(store: apsw.Connection, codec: Codec, no: int, note: Note) -> None:
    for number, _, _, packed in list(query(store, SQL["messages_of"], (no, 1 << 62))):
        parts = codec.parts(packed)
        missing: set[str] = set()
        for digest in blobs.hashes(parts):
            if query(store, SQL["blob_there"], (no, digest)):
                continue
            query(store, SQL["blob_elsewhere"], (no, digest))
            if not store.changes():
                missing.add(digest.hex())
        if missing:
            changed = codec.pack(tuple(_without(part, missing) for part in parts))
            query(store, SQL["parts_change"], (number, changed))
            note("messages that lost an image or file; a text stands in its place")


def _line(store: apsw.Connection, codec: Codec, no: int) -> Iterator[tuple[int, int, Any, Parts]]:
    """All messages of a conversation as a reader sees them, the inherited ones first."""
    family: list[tuple[int, int]] = []
    number, last = no, 1 << 62
    while number is not None and last > 0 and len(family) < WINDOW:
        family.append((number, last))
        found = query(store, SQL["family"], (number,))
        if not found:
            break
        _, number, base = found[0]
        last = min(last, base)
    for owner, last in reversed(family):
        for _, seq, turn, packed in list(query(store, SQL["messages_of"], (owner, last))):
            yield owner, seq, turn, codec.parts(packed)


def _without(part: Part, missing: set[str]) -> Part:
    """A text in the place of an image or file whose bytes are missing."""
    match part:
        case Image(hash=str(name)) | File(hash=str(name)) if name in missing:
            return Text(LOST_BYTES)
        case ToolResult(content=tuple(pieces)):
            content = tuple(_without(piece, missing) for piece in pieces)
            return structs.replace(part, content=content)
        case _:
            return part
