"""The bin: deletion that can be taken back, until its window is over (retention.py).

A conversation in the bin is whole, and nobody finds it: lists, search, ids, keys and foreign ids
pass it by, followers are told that it is deleted. Its branches read on. Its keys are bound anew by
whoever comes next, and do not come back with it; its foreign ids do, unless another has claimed
them.

The lock on the conversation's row decides between several who bin, restore and delete at once:
whoever comes second finds what the first did. Invariant: I-22.
"""

from __future__ import annotations

from collections.abc import Callable

from clew.domain.retention import Binned
from clew.errors import NotFound
from clew.store import aliases, bindings, conversations, turns
from clew.store.backend import Transaction
from clew.store.changes import note
from clew.store.conversations import Locked
from clew.store.kit import Kit
from clew.store.unit import Once


class Bin(Once[bool]):
    """The unit that puts a conversation into the bin; whether it did. Again is harmless.

    `still`: asked under the lock; False leaves it where it is."""

    def __init__(
        self, kit: Kit, profile: str, conversation: str,
        still: Callable[[Transaction, Locked], bool] | None = None,
    ) -> None:  # fmt: skip
        self._kit, self._profile, self._conversation = kit, profile, conversation
        self._still = still

    def is_stored(self, tx: Transaction) -> bool:
        row = tx.row("conversation_whole", id=self._conversation)
        return row is None or row[2] is not None

    def run(self, tx: Transaction) -> bool:
        no, row = lock_keys_and_row(tx, self._profile, self._conversation)
        self._no = no
        if row.binned_at is not None or not (self._still is None or self._still(tx, row)):
            return False
        row = hide(tx, self._kit, row)
        conversations.bin(tx, row, self._kit.clock.now())
        return True


class Unbin(Once[int]):
    """The unit that takes a conversation out of the bin; gives its number. Again is harmless."""

    def __init__(self, kit: Kit, profile: str, conversation: str) -> None:
        self._kit, self._profile, self._conversation = kit, profile, conversation

    def is_stored(self, tx: Transaction) -> bool:
        return tx.row("conversation_no", id=self._conversation) is not None

    def run(self, tx: Transaction) -> int:
        no = conversations.whole_number_of(tx, self._profile, self._conversation)
        self._no = no
        row = conversations.lock_whole(tx, no)
        if row is None or row.deleting:
            raise NotFound("conversation", self._conversation)
        if row.binned_at is not None:
            now = self._kit.clock.now()
            conversations.unbin(tx, row)
            aliases.revive(tx, row, now)
            note(tx, row.id, row.profile, "created", now)
        return no


def lock_keys_and_row(tx: Transaction, profile: str, conversation: str) -> tuple[int, Locked]:
    """Lock a conversation to take it from everybody, its keys before it, as everywhere. NotFound
    when it is gone, or on its way out."""
    no = conversations.whole_number_of(tx, profile, conversation)
    for place in bindings.of(tx, profile, conversation):
        bindings.lock(tx, place)
    row = conversations.lock_whole(tx, no)
    if row is None or row.deleting:
        raise NotFound("conversation", conversation)
    return no, row


def hide(tx: Transaction, kit: Kit, row: Locked) -> Locked:
    """Take from a conversation all by which it is found; its open turn ends."""
    now = kit.clock.now()
    bindings.unbind(tx, row.profile, row.id)
    row = turns.interrupt(tx, kit, row, now, "deleted")
    aliases.tombstone(tx, row.profile, row.id)
    note(tx, row.id, row.profile, "deleted", now, "{}")
    return row


def contents(tx: Transaction, profile: str, limit: int) -> tuple[Binned, ...]:
    """What can be restored, the latest first."""
    rows = tx.rows("conversation_binned", profile=profile, limit=limit)
    names = ("id", "title", "source", "kind", "origin", "messages", "active_at", "binned_at")
    return tuple(Binned(**dict(zip(names, row, strict=True))) for row in rows)
