"""Giving space back: in small steps, each a write turn of its own, so that nobody waits long.

A step moves at most 128 pages (half a megabyte) from the end of the file into free places and cuts
the end off. Whoever waits to write comes between two steps, by the group commit in one process and
by the turnstile between several. Some free pages stay: the next messages need them.

Only files that were made for it can do so (`auto_vacuum = INCREMENTAL`, from their first page on).
Others keep their free pages, which new messages use; `clew repair` and restoring a backup make a
file anew. PostgreSQL does all of this by itself.
"""

from __future__ import annotations

from typing import NamedTuple

from clew.store.backend import Backend, Transaction
from clew.store.search import Search

KEPT = 20
"""One page in so many may stay free."""
INCREMENTAL = 2
"""What the file says of itself."""


class Space(NamedTuple):
    """Pages, and bytes of each. `steps`: whether the file can shrink in steps."""

    free: int
    pages: int
    size: int
    steps: bool

    @property
    def surplus(self) -> int:
        """Free pages beyond those that stay."""
        return max(0, self.free - self.pages // KEPT) if self.steps else 0


def space(tx: Transaction) -> Space:
    """What is free in the file."""
    free, pages, size, mode = tx.rows("space_state")[0]
    return Space(free, pages, size, mode == INCREMENTAL)


def step(tx: Transaction) -> tuple[int, bool]:
    """One step: bytes that the file became smaller by, and whether there is more to do."""
    before = space(tx)
    if not before.surplus:
        return 0, False
    tx.rows("space_step")  # to its end: it works as its rows are taken
    after = space(tx)
    gone = before.pages - after.pages
    return gone * before.size, gone > 0 and after.surplus > 0


def give_back(backend: Backend, search: Search) -> int:
    """Give back what is free, of the log and of the search file; gives the bytes.

    What SQLite cut off is gone from the file with its next checkpoint."""
    total = search.give_back()
    more = backend.read(space).surplus > 0
    while more:
        freed, more = backend.write(step)
        total += freed
    return total
