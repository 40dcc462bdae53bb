"""Everything that a store's tables hold, value by value: what a proof of an erasure reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from clew.errors import Corrupt
from clew.store.kit import Kit

PACKED = frozenset({
    ("message", "parts"), ("inbox", "parts"), ("compaction", "body"), ("prompt", "text"),
    ("toolset", "schemas"),
})  # fmt: skip
"""Columns whose values the codec packs."""


class StoredValue(NamedTuple):
    """One value of a row, as it is stored."""

    table: str
    column: str
    row: str
    """The row by its first columns: numbers and seqs, nothing that anybody said."""
    data: bytes

    @property
    def place(self) -> str:
        return f"{self.table}.{self.column} of {self.row}"

    def forms(self, kit: Kit) -> Iterator[bytes]:
        """As it is stored and, where it is packed, what is in it."""
        yield self.data
        if (self.table, self.column) in PACKED:
            try:
                yield kit.codec.json(self.data)
            except Corrupt:
                pass  # doctor and verify tell of it; as it is stored it was looked at


def stored(table: str, columns: list[str], row: tuple[Any, ...]) -> Iterator[StoredValue]:
    """The texts and bytes of a row."""
    name = f"({', '.join(str(v) for v in row[:2] if isinstance(v, int))})"
    for column, value in zip(columns, row, strict=True):
        if isinstance(value, str):
            yield StoredValue(table, column, name, value.encode("utf-8", "surrogatepass"))
        elif isinstance(value, bytes):
            yield StoredValue(table, column, name, bytes(value))


class FileTrace(NamedTuple):
    """A piece that was found in a file, where."""

    file: str
    at: int
    piece: bytes
