"""The store's own compression dictionary: trained once there are enough messages, kept in the
store, numbered. Old rows keep the number they were written with; nothing is rewritten."""

from __future__ import annotations

from clew.store.backend import Backend, Transaction
from clew.store.codec import train
from clew.store.kit import Kit

ENOUGH = 10_000
"""Messages from which training pays."""
EVERY = 1_000
"""Writes of one handle's process between two looks whether training is due."""
NEUTRAL = (
    b'[{"type":"file","media_type":"application/json","name":"","hash":"","size":,"url":""},'
    b'{"type":"image","media_type":"image/png","hash":"","width":,"height":}]'
    b'[{"type":"reasoning","text":"","model":"","signature":""},{"type":"tool_call","id":"call_'
    b'","name":"","arguments":"{\\"path\\":\\"\\",\\"command\\":\\"\\"}"}]'
    b'[{"type":"tool_result","call_id":"call_","content":"\\n","is_error":true}]'
    b'[{"type":"text","text":"'
)
"""What parts look like, and nothing that anybody said."""
RUNS, LENGTH = 40, 50
"""Samples: runs of messages from all over the store, so that no conversation dominates."""


def known(backend: Backend) -> dict[int, bytes]:
    """The store's dictionaries by number."""
    return {row[0]: row[1] for row in backend.read(lambda tx: tx.rows("dictionary_all"))}


def train_if_due(backend: Backend, kit: Kit) -> bool:
    """Train dictionary 1 when there is none and there are enough messages: some 50 ms, once in
    the life of a store, outside any transaction."""
    if kit.codec.current:
        return False
    kit.codec.learn()
    count, first, last = backend.read(lambda tx: tx.rows("message_span"))[0]
    if kit.codec.current or count < ENOUGH:
        return False
    packed = backend.read(lambda tx: _samples(tx, first, last))
    trained = train([kit.codec.json(data) for data in packed])
    now = kit.clock.now()
    # Two trainers meet at the primary key: the second's is dropped, and it learns the first's.
    backend.write(lambda tx: tx.run("dictionary_insert", version=1, bytes=trained, at=now))
    kit.codec.learn()
    return True


def retrain(backend: Backend, kit: Kit, version: int) -> None:
    """Add a dictionary of what is in the store now; from here on it is the one packed with. Of few
    messages none can be trained: then it is of the words that every message is made of."""
    count, first, last = backend.read(lambda tx: tx.rows("message_span"))[0]
    trained = NEUTRAL
    if count >= ENOUGH:
        packed = backend.read(lambda tx: _samples(tx, first, last))
        trained = train([kit.codec.json(data) for data in packed])
    now = kit.clock.now()
    backend.write(lambda tx: tx.run("dictionary_insert", version=version, bytes=trained, at=now))
    kit.codec.learn()


def drop(tx: Transaction, version: int) -> None:
    """Forget a dictionary that nothing is packed with."""
    tx.run("dictionary_drop", version=version)


def _samples(tx: Transaction, first: int, last: int) -> list[bytes]:
    found: list[bytes] = []
    for run in range(RUNS):
        begin = first + (last - first) * run // RUNS
        rows = tx.rows("message_sample", id=begin, limit=LENGTH)
        found.extend(row[0] for row in rows)
    return found
