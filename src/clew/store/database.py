"""What handles share: the backend and the kit. Retries a read that met a newer dictionary."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from clew.store.backend import Backend, Transaction, Unit
from clew.store.codec import UnknownDictionary
from clew.store.kit import Kit

T = TypeVar("T")


class Database:
    """One open store, as its handles see it."""

    def __init__(self, backend: Backend, kit: Kit) -> None:
        self.backend = backend
        self.kit = kit

    def write(self, unit: Unit[T]) -> T:
        """Run a unit of work; returns once it is durable."""
        try:
            return self.backend.write(unit)
        except UnknownDictionary:
            self.learn()
            return self.backend.write(unit)

    def read(self, reader: Unit[T]) -> T:
        """Run a reader on one snapshot."""
        try:
            return self.backend.read(reader)
        except UnknownDictionary:
            self.learn()
            return self.backend.read(reader)

    def learn(self) -> None:
        """Read the dictionaries that another process has trained since this one opened."""
        for version, data in self.backend.read(_dictionaries):
            if version > self.kit.codec.current:
                self.kit.codec.add(version, data)

    def decoded(self, decode: Callable[[bytes], T], data: bytes) -> T:
        """Decode a value read earlier, learning its dictionary if it is new."""
        try:
            return decode(data)
        except UnknownDictionary:
            self.learn()
            return decode(data)


def _dictionaries(tx: Transaction) -> list[tuple[int, bytes]]:
    return [(row[0], row[1]) for row in tx.rows("dictionary_all")]
