"""Conversations that the source has deleted: they go from the copy by the steps of a deletion."""

from __future__ import annotations

from clew.store import conversations, deletion
from clew.store.backend import Transaction
from clew.store.changes import note
from clew.store.copy.target import Place, Target


def remove(target: Target, place: Place) -> None:
    """Delete a conversation from the copy; what its branches inherit they keep."""
    kit, left = target.db.kit, [True]

    def begin(tx: Transaction) -> None:
        row = conversations.lock_whole(tx, place.no)
        if row is not None and not row.deleting:
            now = kit.clock.now()
            conversations.doom(tx, row, now)
            note(tx, place.id, place.profile, "deleted", now, "{}")

    def step(tx: Transaction) -> None:
        left[0] = deletion.step(tx, kit, place.no)

    target.write(begin)
    while left[0]:
        target.write(step)
    del target.places[place.id]
    target.digests.pop(place.id, None)
    target.bare.discard(place.id)
    target.numbers = {no: other for no, other in target.numbers.items() if other is not place}
