"""Units of work that are exactly-once although their transaction may run more than once.

A batch that failed is run again, and a commit whose outcome is unknown is run again after it may
have gone through, or while it may yet: a server that lost its client may still have the COMMIT
before it. A unit therefore keeps what its first run answered. A later run first locks the
conversation, which waits for that transaction to end, and then looks whether it is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from clew.store.backend import Transaction, Unit

T = TypeVar("T")


class Once(Generic[T]):
    """A unit with `run` (do it) and `is_stored` (whether the first run's commit went through)."""

    _first: T | None = None
    _no: int = 0
    """The conversation that the unit writes to. Units without one (0) must wait for their own
    first run by themselves, at a unique key."""

    def __call__(self, tx: Transaction) -> T:
        if self._first is not None:
            if self._no:
                tx.row("conversation_lock", no=self._no)
            if self.is_stored(tx):
                return self._first
        self._first = self.run(tx)
        return self._first

    def run(self, tx: Transaction) -> T:
        raise NotImplementedError

    def is_stored(self, tx: Transaction) -> bool:
        """Asked only on a later run. Idempotent units answer False: running again is harmless."""
        return False


class Act(Once[T]):
    """A unit of two functions: `work`, and `stored`, which tells whether what it did is there."""

    def __init__(self, work: Unit[T], stored: Callable[[Transaction], bool]) -> None:
        self._work, self._stored = work, stored

    def run(self, tx: Transaction) -> T:
        return self._work(tx)

    def is_stored(self, tx: Transaction) -> bool:
        return bool(self._first) and self._stored(tx)
