"""The unit of a plain append, without a turn of the caller's own."""

from __future__ import annotations

from collections.abc import Sequence

from clew.domain.messages import Appended, Draft
from clew.store import conversations, inbox, log, turns
from clew.store.backend import Transaction
from clew.store.conversations import Locked
from clew.store.drafts import Prepared, prepare
from clew.store.kit import Kit
from clew.store.unit import Once


class Append(Once[Appended]):
    """Append a batch, all or nothing; again with the same keys gives the first outcome.

    Encoding and compression happen here, in the constructor, before any lock. The order inside the
    transaction is the rule of every unit: lock the row, look for the keys, insert, move head. So
    two writers of one key meet at the row's lock, and the second finds the first's message.
    """

    def __init__(
        self, kit: Kit, no: int, name: str, drafts: Sequence[Draft], head: int | None = None
    ) -> None:
        self._kit, self._no, self._name, self._expect = kit, no, name, head
        self._prepared = prepare(kit, drafts)
        self._seen: int | None = None

    @property
    def prepared(self) -> tuple[Prepared, ...]:
        """The messages as they are written, with their uids."""
        return self._prepared

    @property
    def seen(self) -> int | None:
        """The head at the first run; None before it."""
        return self._seen

    def run(self, tx: Transaction) -> Appended:
        return self.onto(tx, conversations.lock(tx, self._no, self._name))

    def is_stored(self, tx: Transaction) -> bool:
        assert self._first is not None
        row = conversations.lock(tx, self._no, self._name)
        return log.is_outcome(tx, self._kit, row, self._prepared, self._seen, self._first)

    def before(self, tx: Transaction, row: Locked) -> Appended | None:
        """The first outcome, when the whole batch is there already."""
        found = log.find(tx, self._kit, row, self._prepared, self._seen)
        if not log.all_there(self._prepared, found):
            return None
        uids = log.uids(self._prepared, found)
        return Appended(log.seqs(found), row.head, 0, uids, log.numbers(found))

    def onto(self, tx: Transaction, row: Locked, *, wait: bool = False) -> Appended:
        """The append itself, for units that hold the lock already; `wait`: into the inbox, also
        while no turn is open."""
        seen = self._seen
        self._seen = row.head if seen is None else seen
        return append(tx, self._kit, row, self._prepared, seen, self._expect, wait=wait)


def append(
    tx: Transaction, kit: Kit, row: Locked, prepared: tuple[Prepared, ...],
    seen: int | None = None, expect: int | None = None, *, wait: bool = False,
) -> Appended:  # fmt: skip
    """Append what is not there yet, or queue it; onto head `expect` and no other, if given."""
    now = kit.clock.now()
    found = log.find(tx, kit, row, prepared, seen)
    fresh = log.missing(prepared, found)
    if fresh:
        conversations.check_expected(row, expect, None)
    if wait:
        conversations.open_for_append(tx, row, now)
        return inbox.put(tx, kit, row, prepared, found)
    if row.turn is not None:
        if turns.is_busy(tx, kit, row):
            return inbox.put(tx, kit, row, prepared, found)
        row = turns.interrupt(tx, kit, row, now, "its holder was gone")
    if fresh:
        conversations.open_for_append(tx, row, now)
        if row.waiting and expect is None:  # it came first
            row, _ = inbox.take(tx, kit, row)
            found = log.find(tx, kit, row, prepared, seen)
        row = log.insert(tx, row, prepared[-fresh:])
    return Appended(
        seqs=(*log.seqs(found), *range(row.head - fresh + 1, row.head + 1)),
        head=row.head,
        new=fresh,
        uids=log.uids(prepared, found),
        numbers=log.numbers(found),
    )
