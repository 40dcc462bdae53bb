"""Rows out of raw pages: the record format of SQLite's files, read without trusting anything.

Follows the published description of the format (https://sqlite.org/fileformat2.html). What breaks a
rule of it raises Unreadable; nothing is guessed.
"""

from __future__ import annotations

import struct

Value = int | float | str | bytes | None
Record = tuple[Value, ...]

_SIZES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
"""Bytes of the serial types 0 to 9."""
_REAL = struct.Struct(">d")


class Unreadable(Exception):
    """Bytes that are not what they should be."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of 1 to 9 bytes at a place, and where the next thing begins."""
    value = 0
    try:
        for step in range(8):
            byte = data[at + step]
            value = value << 7 | byte & 0x7F
            if byte < 0x80:
                return value, at + step + 1
        value = value << 8 | data[at + 8]
    except IndexError:
        raise Unreadable("a number runs over the end") from None
    return value - (1 << 64) if value >> 63 else value, at + 9


def record(payload: bytes) -> Record:
    """The columns of a payload."""
    size, at = varint(payload, 0)
    if not 0 < size <= len(payload):
        raise Unreadable("the header is longer than its record")
    kinds: list[int] = []
    while at < size:
        kind, at = varint(payload, at)
        if kind < 0 or kind in (10, 11):
            raise Unreadable(f"there is no serial type {kind}")
        kinds.append(kind)
    if at != size:
        raise Unreadable("the header does not end where it says")
    values: list[Value] = []
    for kind in kinds:
        length = _SIZES[kind] if kind < 10 else (kind - 12) // 2
        piece = payload[at : at + length]
        if len(piece) != length:
            raise Unreadable("a column runs over the end")
        values.append(_value(kind, piece))
        at += length
    if at != len(payload):
        raise Unreadable("bytes are left over")
    return tuple(values)


def _value(kind: int, piece: bytes) -> Value:
    if kind >= 12:
        if kind % 2 == 0:
            return piece
        try:
            text = piece.decode()
        except UnicodeDecodeError:
            raise Unreadable("a text is no UTF-8") from None
        if "\0" in text:  # the store writes none; zeros of a lost sector look like this
            raise Unreadable("a text holds NUL")
        return text
    if kind == 0:
        return None
    if kind == 7:
        return _REAL.unpack(piece)[0]
    if kind in (8, 9):
        return kind - 8
    return int.from_bytes(piece, "big", signed=True)


def order_key(columns: Record) -> tuple[tuple[int, object], ...]:
    """A key that sorts as SQLite sorts these columns (BINARY, ascending)."""
    return tuple(_rank(column) for column in columns)


def _rank(value: Value) -> tuple[int, object]:
    if value is None:
        return 0, 0
    if isinstance(value, bytes):
        return 3, value
    if isinstance(value, str):
        return 2, value.encode("utf-8", "surrogatepass")
    return 1, value
