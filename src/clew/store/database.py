"""What handles share: the backend and the kit."""

from __future__ import annotations

from contextlib import suppress
from typing import TypeVar

from clew.errors import ClewError
from clew.store import dictionary
from clew.store.backend import Backend, Unit
from clew.store.kit import Kit

T = TypeVar("T")


class Database:
    """One open store, as its handles see it."""

    def __init__(self, backend: Backend, kit: Kit) -> None:
        self.backend = backend
        self.kit = kit
        self._writes = 0

    def write(self, unit: Unit[T]) -> T:
        """Run a unit of work; returns once it is durable."""
        result = self.backend.write(unit)
        self._writes += 1
        if self._writes % dictionary.EVERY == 0:
            with suppress(ClewError):  # the unit is durable; training is tried again later
                dictionary.train_if_due(self.backend, self.kit)
        return result

    def wait(self, token: int, seconds: float) -> None:
        """Wait until somebody may have committed."""
        self.backend.wait(token, seconds)

    def read(self, reader: Unit[T]) -> T:
        """Run a reader on one snapshot."""
        return self.backend.read(reader)
