"""The store's own compression dictionary: trained once there are enough messages, kept in the
store, numbered. Old rows keep the number they were written with; nothing is rewritten."""

from __future__ import annotations

from clew.store.backend import Transaction
from clew.store.codec import train
from clew.store.database import Database

ENOUGH = 10_000
"""Messages from which training pays."""
SAMPLES = 4_000


def train_if_due(db: Database) -> bool:
    """Train dictionary 1 when there is none and there are enough messages."""
    db.learn()
    if db.kit.codec.current:
        return False
    last = db.read(lambda tx: tx.row("message_last_id"))
    if last is None or last[0] < ENOUGH:
        return False
    packed = db.read(lambda tx: _samples(tx, last[0]))
    dictionary = train([db.kit.codec.json(data) for data in packed])
    now = db.kit.clock.now()

    def store(tx: Transaction) -> None:
        # Two trainers meet at the primary key; the second's is dropped and it learns the first's.
        tx.run("dictionary_insert", version=1, bytes=dictionary, at=now)

    db.write(store)
    db.learn()
    return True


def _samples(tx: Transaction, last: int) -> list[bytes]:
    """Messages from all over the store, in runs, so that no single conversation dominates."""
    runs, length = 40, SAMPLES // 40
    found: list[bytes] = []
    for run in range(runs):
        start = last * run // runs
        found.extend(row[0] for row in tx.rows("message_sample", id=start, limit=length))
    return found
