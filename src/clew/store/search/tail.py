"""The rows of the log that an index does not know, in bounded numbers.

Ids ascend but may leave gaps of any size: how many rows there are is for the engine to say.
"""

from __future__ import annotations

from clew.store.backend import Transaction

END = 1 << 62
"""Above every id."""
_ALL = 1 << 40


def floor_of(tx: Transaction, above: int, below: int, limit: int) -> tuple[int, int]:
    """The newest `limit` rows with above < id < below: the id they are above, and how many."""
    row = tx.row("search_floor", above=above, below=below, limit=limit)
    return (above, 0) if row is None else (row[0], row[1])


def count(tx: Transaction, above: int, below: int = END) -> int:
    """How many rows there are with above < id < below, at most."""
    return floor_of(tx, above, below, _ALL)[1]
