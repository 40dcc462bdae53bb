"""Deleting a conversation: in bounded steps, each a unit of its own, taking nothing else with it.

The first step takes it from everybody, also from the bin: nobody restores it any more. Its branches
then take over the rows they inherit, highest first, each step copying rows with their blobs and
lowering the branch's base in one transaction, so a branch reads the same before, between and after.
Then its own rows go, newest first; last the records. What a crash interrupts, `pending` finds and
the next call goes on with.
Invariant: I-16.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from clew.store import (
    approvals,
    attempts,
    blobs,
    boundaries,
    calls,
    compactions,
    conversations,
    cuts,
    goals,
    inbox,
    log,
    outbox,
    presence,
    prompts,
    todos,
    turns,
)
from clew.store.backend import Backend, Transaction
from clew.store.bin import hide, lock_keys_and_row
from clew.store.changes import note
from clew.store.kit import Kit
from clew.store.unit import Once

STEP = 500
"""Rows moved or deleted in one transaction: some milliseconds of the write lock."""

_RECORDS: tuple[Callable[[Transaction, int], None], ...] = (
    calls.delete, approvals.delete, turns.delete, inbox.delete, outbox.delete, boundaries.delete,
    compactions.delete, attempts.delete, cuts.delete, blobs.delete, todos.delete, goals.delete,
    presence.delete, prompts.release,
)  # fmt: skip


class Begin(Once[int]):
    """The unit that begins the deletion of a conversation; gives its number.

    `binned_by`: only if it is in the bin since then or longer; 0 if it is not. Asked under the
    lock, so what somebody restores at the same time is restored or deleted, never both."""

    def __init__(
        self, kit: Kit, profile: str, conversation: str, binned_by: int | None = None
    ) -> None:
        self._kit, self._profile, self._conversation = kit, profile, conversation
        self._binned_by = binned_by

    def is_stored(self, tx: Transaction) -> bool:
        row = conversations.lock_whole(tx, self._first or 0)
        return row is None or bool(row.deleting)

    def run(self, tx: Transaction) -> int:
        no = self._begun(tx)
        if no is not None:
            return no if self._binned_by is None else 0  # another is at it
        no, row = lock_keys_and_row(tx, self._profile, self._conversation)
        by = self._binned_by
        if by is not None and (row.binned_at is None or row.binned_at > by):
            return 0
        if row.binned_at is None:
            row = hide(tx, self._kit, row)
        conversations.doom(tx, row, self._kit.clock.now())
        return no

    def _begun(self, tx: Transaction) -> int | None:
        """The number, if a call that was interrupted has begun: the deletion goes on."""
        row = tx.row("conversation_whole", id=self._conversation)
        return row[0] if row is not None and row[1] == self._profile and row[3] else None


def pending(tx: Transaction) -> list[int]:
    """Conversations whose deletion has begun and not ended."""
    return [row[0] for row in tx.rows("conversation_deleting")]


def finish(backend: Backend, kit: Kit, no: int) -> None:
    """Run the remaining steps of a deletion that has begun. Harmless in two processes at once."""
    while backend.write(lambda tx: step(tx, kit, no)):
        pass


def step(tx: Transaction, kit: Kit, no: int) -> bool:
    """One step; False when nothing is left of the conversation."""
    branch = _branch(tx, no)
    heir = None if branch is None else conversations.lock_whole(tx, branch)
    delegates = [] if branch is not None else _delegates(tx, no)
    for delegate in delegates:
        conversations.lock_whole(tx, delegate)
    row = conversations.lock_whole(tx, no)
    if row is None:
        return False
    if delegates:
        conversations.orphan(tx, no)
    if heir is not None and heir.origin == no and heir.base > 0:
        _hand_over(tx, kit, row, heir.no, heir.base)
        return True
    if _branch(tx, no) is not None:
        return True  # another has handed over to the first one meanwhile
    ids = log.delete(tx, no, STEP)
    if ids:
        detail = json.dumps({"ids": _runs(ids)})
        note(tx, row.id, row.profile, "deleted", kit.clock.now(), detail)
        return True
    if branch is not None:
        return True  # another has handed over to it meanwhile; no delegate is locked
    for delete in _RECORDS:
        delete(tx, no)
    conversations.delete(tx, no)
    return False


def _delegates(tx: Transaction, no: int) -> list[int]:
    """Those that come from this conversation and inherit nothing, in the order of their locks."""
    return sorted(row[0] for row in tx.rows("conversation_children", no=no) if row[3] == 0)


def _branch(tx: Transaction, no: int) -> int | None:
    """The number of a branch that inherits rows of this conversation."""
    for child, _, kind, base in tx.rows("conversation_children", no=no):
        if kind == "branch" and base > 0:
            return child
    return None


def _hand_over(
    tx: Transaction, kit: Kit, origin: conversations.Locked, branch: int, base: int
) -> None:
    """Give a branch the highest rows it inherits from this origin."""
    if base <= origin.base:  # what it inherits comes from further up: skip this conversation
        conversations.lower_base(tx, branch, base, origin.origin if base else None)
        return
    first = max(origin.base + 1, base - STEP + 1)
    log.move(tx, branch, origin.no, first, base)
    digests: set[bytes] = set()
    for message in log.read(tx, kit.codec, [(branch, first, base)]):
        digests |= blobs.hashes(message.parts)
    blobs.copy(tx, branch, origin.no, digests)
    left = first - 1
    from_whom = origin.no if left > origin.base else origin.origin
    conversations.lower_base(tx, branch, left, from_whom if left else None)


def _runs(ids: list[int]) -> list[list[int]]:
    """Ids as ascending closed ranges."""
    runs: list[list[int]] = []
    for value in sorted(ids):
        if runs and value == runs[-1][1] + 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    return runs
