"""What stands in a spool, as bytes: pure functions, no file.

    0      two slots of 512 bytes: magic, format, sequence, epoch, CRC; the valid one with the
           higher sequence counts, so that a torn change of epoch leaves the one before
    1024   the mark (EMPTY, PENDING, GONE), and at 1032 the number of changes so far
    4096   records, one after another, each at a multiple of 8

A record is a header of 40 bytes and a payload (msgpack, zstd). The header has a CRC of its own, so
that the length of a damaged record is known; its state is one byte after that, written in place.
Each carries the file's epoch and its number in it: bytes of before the spool was last emptied are
never read as records. Where a header is missing, torn or of another epoch the records end.
"""

from __future__ import annotations

import struct
import zlib
from typing import Literal, NamedTuple

import msgspec
import zstandard
from msgspec import Struct

from clew.domain.conversations import NewConversation
from clew.domain.turns import CallResult

MAGIC, FORMAT = b"clewspl1", 1
SLOT_SIZE, MARK_AT, CHANGES_AT, FIRST = 512, 1024, 1032, 4096
EMPTY, PENDING, GONE = 0, 1, 2
"""Of the mark. GONE: this file was removed from its path; open it anew."""
HEADER, ALIGN = 40, 8
MOST = 1 << 30
"""Bytes of a payload; a frame that claims more is damaged."""

_SLOT = struct.Struct("<8sHxxxxxxQ8s")
_CRC = struct.Struct("<I")
_HEAD = struct.Struct("<4sIIQ8s")
"""Tag, length and CRC of the payload, number, epoch. The CRC of these follows, then the state."""
_TAG = b"CLEW"
STATE_AT = _HEAD.size + _CRC.size
"""Where in the header the state is."""

State = Literal["pending", "done", "unknown", "foreign", "refused", "damaged"]
"""`unknown`: the store has no such conversation. `foreign`: it is of another store. `refused`: no
rule of the log lets it in. These three are held: they wait for a person."""
STATES: dict[bytes, State] = {
    b"P": "pending", b"D": "done", b"U": "unknown", b"F": "foreign", b"R": "refused",
}  # fmt: skip
BYTES: dict[State, bytes] = {state: byte for byte, state in STATES.items()}
HELD: frozenset[State] = frozenset(("unknown", "foreign", "refused"))


class Spooled(Struct, frozen=True, omit_defaults=True):
    """One message: the columns it would have had. `parts` is JSON behind its tag, never compressed
    with a dictionary, which the reader may not have; `meta` is JSON text."""

    uid: bytes
    role: int
    parts: bytes
    at: int
    after: int = 0
    key: str | None = None
    author: str | None = None
    api_group: str | None = None
    replaces: int | None = None
    tokens: int | None = None
    meta: str | None = None
    blobs: tuple[tuple[bytes, bytes], ...] = ()
    """(SHA-256, bytes) of the images and files that it brings."""


class Delivery(Struct, frozen=True, omit_defaults=True):
    """What a channel delivered: by these `receive` finds its conversation, and knows it again."""

    source: str
    route: str
    account: str
    key: str
    new: NewConversation
    result: str | None = None


class Record(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One accepted batch of messages."""

    store: str
    """Id of the store that could not take them."""
    profile: str
    conversation: str
    """Its id; of a delivery whose conversation nobody could look up, the key of its route."""
    messages: tuple[Spooled, ...]
    head: int = 0
    """A head that the conversation had when they were accepted, or before that."""
    cause: str = ""
    at: int = 0
    """Microseconds: when they were accepted."""
    expect: int | None = None
    """Only onto this head, said the caller."""
    wait: bool = False
    """They wait in the inbox for a turn."""
    fence: int | None = None
    """Of the right that the turn was held by; None: no turn's step."""
    turn: int | None = None
    call: int | None = None
    """The model call that made the first message, and what it took."""
    result: CallResult | None = None
    delivery: Delivery | None = None


class Entry(NamedTuple):
    """Where a record stands, and how it is."""

    number: int
    epoch: bytes
    offset: int
    length: int
    """Of the payload."""
    state: State
    record: Record | None
    """None: done, or damaged."""

    @property
    def end(self) -> int:
        """Where the next one stands."""
        return self.offset + size_of(self.length)


class Scan(NamedTuple):
    """What was found, and where the next record goes. `torn`: the last bytes are no record."""

    entries: tuple[Entry, ...]
    end: int
    torn: bool


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record).decode


def pack(record: Record) -> bytes:
    """The payload of a record."""
    return zstandard.ZstdCompressor(level=3).compress(_encode(record))


def unpack(payload: bytes) -> Record:
    """The record of a payload; ValueError for what is none."""
    try:
        body = zstandard.ZstdDecompressor().decompress(payload, max_output_size=MOST)
    except zstandard.ZstdError as error:
        raise ValueError(f"not a record: {error}") from None
    return _decode(body)


def size_of(length: int) -> int:
    """Bytes that a record with such a payload takes."""
    return HEADER + length + -length % ALIGN


def frame(payload: bytes, number: int, epoch: bytes, state: State = "pending") -> bytes:
    """A record, whole."""
    head = _HEAD.pack(_TAG, len(payload), zlib.crc32(payload), number, epoch)
    head += _CRC.pack(zlib.crc32(head)) + BYTES[state]
    return head.ljust(HEADER, b"\0") + payload + bytes(-len(payload) % ALIGN)


def scan(data: bytes, epoch: bytes, base: int = FIRST, number: int = 1) -> Scan:
    """The records in `data`, which begins at offset `base` with the record `number`."""
    found: list[Entry] = []
    at = 0
    while True:
        entry = _entry(data, at, base, epoch, number + len(found))
        if entry is None or (entry.state == "damaged" and not _follows(data, entry, base, epoch)):
            break
        found.append(entry)
        at = entry.end - base
    rest = data[at : at + HEADER]
    return Scan(tuple(found), base + at, bool(rest.strip(b"\0")))


def _entry(data: bytes, at: int, base: int, epoch: bytes, number: int) -> Entry | None:
    """The record at a place; None where there is none, or not the one that comes next."""
    head = data[at : at + HEADER]
    if len(head) < HEADER:
        return None
    tag, length, crc, found, of = _HEAD.unpack_from(head)
    if (tag, found, of) != (_TAG, number, epoch):
        return None
    if zlib.crc32(head[: _HEAD.size]) != _CRC.unpack_from(head, _HEAD.size)[0]:
        return None
    state = STATES.get(head[STATE_AT : STATE_AT + 1], "pending")
    payload = data[at + HEADER : at + HEADER + length]
    record = None
    if state != "done":
        record = _whole(payload, length, crc)
        state = "damaged" if record is None else state
    return Entry(number, epoch, base + at, length, state, record)


def _whole(payload: bytes, length: int, crc: int) -> Record | None:
    if len(payload) != length or zlib.crc32(payload) != crc:
        return None
    try:
        return unpack(payload)
    except ValueError:
        return None


def _follows(data: bytes, entry: Entry, base: int, epoch: bytes) -> bool:
    """Whether a record follows: then this one was whole once, and is damaged, not torn."""
    return _entry(data, entry.end - base, base, epoch, entry.number + 1) is not None


def slot(sequence: int, epoch: bytes) -> bytes:
    """A slot of the file's head."""
    body = _SLOT.pack(MAGIC, FORMAT, sequence, epoch)
    return body + _CRC.pack(zlib.crc32(body))


def epoch_of(head: bytes) -> tuple[int, bytes] | None:
    """(sequence, epoch) of the newest valid slot; None: there is none."""
    return max(filter(None, (_slot_at(head, at) for at in (0, SLOT_SIZE))), default=None)


def _slot_at(head: bytes, at: int) -> tuple[int, bytes] | None:
    body = head[at : at + _SLOT.size]
    crc = head[at + _SLOT.size : at + _SLOT.size + _CRC.size]
    if len(crc) < _CRC.size or _CRC.unpack(crc)[0] != zlib.crc32(body):
        return None
    magic, kind, sequence, epoch = _SLOT.unpack(body)
    return (sequence, epoch) if (magic, kind) == (MAGIC, FORMAT) else None
