"""Units of work that are exactly-once although their transaction may run more than once.

A batch that failed is run again, and a commit whose outcome is unknown is run again after it may
have gone through. A unit therefore keeps what its first run answered; a later run first looks
whether that run is stored.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from clew.store.backend import Transaction

T = TypeVar("T")


class Once(Generic[T]):
    """A unit with `run` (do it) and `is_stored` (whether the first run's commit went through)."""

    _first: T | None = None

    def __call__(self, tx: Transaction) -> T:
        if self._first is not None and self.is_stored(tx):
            return self._first
        self._first = self.run(tx)
        return self._first

    def run(self, tx: Transaction) -> T:
        raise NotImplementedError

    def is_stored(self, tx: Transaction) -> bool:
        """Asked only on a later run. Idempotent units answer False: running again is harmless."""
        return False
