"""The first look at a file or folder: enough to tell its format, and bounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast, overload

from msgspec import Struct

from clew.importers.decode import decode, loose_keys
from clew.importers.records import Damaged
from clew.importers.source import Source

HEAD = 64 * 1024
"""Bytes that are looked at."""
_LINES, FEW = 50, 5


class Records(Sequence[dict[str, Any]]):
    """The JSON objects that stand on lines of their own, decoded as far as somebody looks: of most
    files the first tells the format."""

    def __init__(self, head: bytes) -> None:
        self._found: list[dict[str, Any]] = []
        self._rest = _objects(head)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | Sequence[dict[str, Any]]:
        last = index.stop if isinstance(index, slice) else index + 1
        while last is None or len(self._found) < last:
            try:
                self._found.append(next(self._rest))
            except StopIteration:
                break
        return self._found[index]

    def __len__(self) -> int:
        return len(self[:])

    def __bool__(self) -> bool:
        return bool(self[:1])


class Probe(Struct, frozen=True, kw_only=True):
    """What the first look found."""

    name: str
    """The file's or folder's own name."""
    head: bytes
    """The first bytes, without a byte order mark; empty for a folder."""
    records: Sequence[dict[str, Any]] = ()
    """The JSON objects that stand on lines of their own, of the first lines."""
    keys: frozenset[str] = frozenset()
    """Of a JSON document that is an object: its keys, as far as the head shows them."""
    item_keys: frozenset[str] = frozenset()
    """Of a JSON document that is an array of objects: the keys of the first of them."""
    tables: dict[str, frozenset[str]] = {}
    """Of an SQLite file: its tables and their columns."""
    entries: frozenset[str] = frozenset()
    """Of a folder: the names in it."""


def probe(source: Source) -> Probe:
    """Look at a source. Raises what opening it raises."""
    name = source.path.name if source.member is None else source.member.rsplit("/", 1)[-1]
    if source.is_folder:
        return Probe(name=name, head=b"", entries=source.entries())
    head = source.head(HEAD)
    if head.startswith(b"SQLite format 3\0"):
        return Probe(name=name, head=head, tables=source.tables())
    text = head.lstrip()
    keys = loose_keys(text) if text[:1] == b"{" else frozenset[str]()
    item_keys = frozenset[str]()
    if text[:1] == b"[" and text[1:].lstrip()[:1] == b"{":
        item_keys = loose_keys(text[1:].lstrip())
    return Probe(name=name, head=head, records=Records(head), keys=keys, item_keys=item_keys)


def probe_lines(source: Source, name: str) -> Probe:
    """Look at the first lines that can be read, however far in they stand."""
    rows: list[bytes] = []
    for number, piece in enumerate(source.lines()):
        if not isinstance(piece, Damaged) and len(piece.data) <= HEAD:
            rows.append(piece.data)
        if len(rows) == FEW or number == _LINES:
            break
    head = b"\n".join(rows)
    return Probe(name=name, head=head, records=Records(head), keys=loose_keys(head))


def _objects(head: bytes) -> Iterator[dict[str, Any]]:
    for row in head.split(b"\n", _LINES)[:_LINES]:
        if row.lstrip()[:1] != b"{":
            continue
        try:
            value = decode(row)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield cast(dict[str, Any], value)
