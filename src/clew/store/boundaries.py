"""Boundaries: an outbox of events, told to each subscriber of the profile at least once.

The transaction that makes a boundary (a compaction, its undo, a reset) inserts one row for each
subscriber, so there is no boundary without its rows and none of a boundary that was rolled back.
Nothing waits for a subscriber, and what its handler raises harms nobody: the row stays and comes
due again, later each time. Invariant: I-20.

Of the rows of one conversation and subscriber the lowest alone has a time at which it is due; it
hands that on to the next one when it was told. So they are told in order, and one that fails keeps
the others waiting at no cost to anybody.

Locks, in this order: conversation, subscriber, row. Who makes a boundary and who ends a row hold
the conversation, so rows are committed in the order of their numbers and none is missed by the hand
that passes on. Who makes one also holds each subscriber until its commit, and leaves out one that
is gone by then. A claim locks nothing but one row.
"""

from __future__ import annotations

from traceback import format_exception_only
from types import TracebackType
from typing import NamedTuple

from clew.domain.boundaries import Boundary, BoundaryKind, PendingBoundary, Subscriber
from clew.errors import NotFound
from clew.store.backend import Row, Transaction
from clew.store.kit import Kit
from clew.store.unit import Once

LEASE = 60_000_000
"""Microseconds that a deliverer has for one row; after them it comes due again: its process may be
gone."""
BACKOFF = (5_000_000, 30_000_000, 300_000_000, 3_600_000_000)
"""Microseconds from a failure to the next delivery, by how many there were; the last one stays."""
STEP = 500
"""Rows that an `unsubscribe` deletes in one transaction."""


class Claim(NamedTuple):
    """A row that a deliverer has. `attempts` is its fence: another claim of the row raises it."""

    no: int
    subscriber: str
    boundary: Boundary
    attempts: int


# ---------------------------------------------------------------- where they are made


def add(
    tx: Transaction, no: int, profile: str, kind: BoundaryKind, generation: int, reason: str,
    at: int, from_id: str | None = None, to_id: str | None = None,
) -> None:  # fmt: skip
    """Note a boundary for every subscriber. The conversation is locked, and its view moved; an id
    that is None is the newest segment's, or the conversation's own."""
    # First a statement that waits for who unsubscribes: the next one sees what that has deleted.
    if tx.row("subscriber_hold", profile=profile) is None:
        return
    tx.run(
        "boundary_insert", no=no, kind=kind, generation=generation, reason=reason, at=at,
        from_id=from_id, to_id=to_id,
    )  # fmt: skip


def delete(tx: Transaction, no: int) -> None:
    tx.run("boundary_delete", no=no)


# ---------------------------------------------------------------- subscribers


class Subscribe(Once[bool]):
    """Tell a subscriber of every boundary from now on. False: it is told already."""

    def __init__(self, kit: Kit, profile: str, name: str) -> None:
        self._key = {"profile": profile, "name": kit.key("subscriber", name)}
        self._now = kit.clock.now()

    def run(self, tx: Transaction) -> bool:
        # By the primary key: the second of two waits for the first to commit and inserts nothing.
        if tx.changed("subscriber_insert", **self._key, at=self._now):
            return True
        row = tx.row("subscriber_get", **self._key)
        return bool(self._first) and row is not None and row[0] == self._now


class Forgotten(NamedTuple):
    """One step of an `unsubscribe`. `more`: there are rows left."""

    known: bool
    more: bool


class Unsubscribe(Once[Forgotten]):
    """Delete rows of a subscriber; the last step deletes the subscriber.

    It locks the subscriber first, which waits for those who are noting a boundary for it and keeps
    new ones out, so nothing is left that names it; the foreign key would refuse that."""

    def __init__(self, kit: Kit, profile: str, name: str) -> None:
        self._key = {"profile": profile, "name": kit.key("subscriber", name)}

    def run(self, tx: Transaction) -> Forgotten:
        if tx.row("subscriber_lock", **self._key) is None:
            return Forgotten(self._first is not None and self._first.known, False)
        if tx.changed("boundary_forget", **self._key, limit=STEP) == STEP:
            return Forgotten(True, True)
        tx.run("subscriber_delete", **self._key)
        return Forgotten(True, False)


def subscribers(tx: Transaction, profile: str) -> tuple[Subscriber, ...]:
    """By name."""
    rows = tx.rows("subscriber_all", profile=profile)
    return tuple(Subscriber(name=row[0], created_at=row[1], pending=row[2]) for row in rows)


def pending(
    tx: Transaction, kit: Kit, profile: str, name: str, limit: int
) -> tuple[PendingBoundary, ...]:
    """What a subscriber was not told yet, by conversation and number."""
    _known(tx, kit, profile, name)
    return tuple(
        PendingBoundary(boundary=_boundary(row), attempts=row[12], next_at=row[13], error=row[14])
        for row in tx.rows("boundary_pending", profile=profile, name=name, limit=limit)
    )


# ---------------------------------------------------------------- delivering


def is_due(tx: Transaction, kit: Kit, profile: str, name: str) -> bool:
    """Whether there is anything to claim: a look that locks nothing. NotFound: no subscriber."""
    return _first(tx, "boundary_is_due", profile, name, _now(tx, kit, profile, name)) is not None


class Take(Once[Claim | None]):
    """Take one due row for LEASE; None: nothing is due.

    Two deliverers never get one row: on a file one of them runs after the other; on PostgreSQL the
    second skips the row that is locked, or sees that it is not due any more.
    """

    def __init__(self, kit: Kit, profile: str, name: str) -> None:
        self._kit, self._profile, self._name = kit, profile, name

    def is_stored(self, tx: Transaction) -> bool:
        mine = self._first
        if mine is None:
            return False
        row = _row_of(tx, mine)
        return row is not None and row[0] == mine.attempts

    def run(self, tx: Transaction) -> Claim | None:
        now = _now(tx, self._kit, self._profile, self._name)
        row = _first(tx, "boundary_due", self._profile, self._name, now)
        if row is None:
            return None
        found = Claim(row[0], self._name, _boundary(row), row[12] + 1)
        tx.run(
            "boundary_claim", no=found.no, subscriber=self._name, number=found.boundary.number,
            until=now + LEASE,
        )  # fmt: skip
        return found


class Settle(Once[PendingBoundary | None]):
    """Delete a row that was told; else note why not and when to try again, and give that.

    Nothing is changed when the row was claimed by another meanwhile: what happens to it is for that
    one to say.
    """

    def __init__(self, kit: Kit, mine: Claim, error: str | None) -> None:
        self._kit, self._no, self._mine = kit, mine.no, mine
        self._error = kit.remark(error)

    def is_stored(self, tx: Transaction) -> bool:
        """Of a failure: it was noted, or the row is not this one's any more."""
        row = _row_of(tx, self._mine)
        noted = None if self._first is None else self._first.next_at
        return row is None or row[0] != self._mine.attempts or row[1] == noted

    def run(self, tx: Transaction) -> PendingBoundary | None:
        mine = self._mine
        key = {
            "no": mine.no, "subscriber": mine.subscriber, "number": mine.boundary.number,
            "attempts": mine.attempts,
        }  # fmt: skip
        tx.row("conversation_lock", no=mine.no)
        if self._error is None:
            if tx.changed("boundary_told", **key):
                tx.run("boundary_next", no=mine.no, subscriber=mine.subscriber)
            return None
        now = _now(tx, self._kit, mine.boundary.profile, mine.subscriber)
        again = now + BACKOFF[min(mine.attempts, len(BACKOFF)) - 1]
        tx.run("boundary_retry", **key, at=again, error=self._error)
        return PendingBoundary(
            boundary=mine.boundary, attempts=mine.attempts, next_at=again, error=self._error
        )


class Telling:
    """Around a call of a handler: an error of it is its own affair, and is kept as text.

    What ends a program (KeyboardInterrupt, a cancelled task) is no error of the handler's and
    passes; the row comes due again."""

    error: str | None = None

    def __enter__(self) -> Telling:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:  # fmt: skip
        if not isinstance(error, Exception):
            return False
        self.error = "".join(format_exception_only(error)).strip()
        return True


def _first(tx: Transaction, statement: str, profile: str, name: str, now: int) -> Row | None:
    """The row that has been due for longest. Nothing is put off by more than the longest back-off:
    what seems to be was written before a clock was set back."""
    for low, high in ((0, now), (now + BACKOFF[-1] + 1, 1 << 62)):
        row = tx.row(statement, profile=profile, name=name, low=low, high=high)
        if row is not None:
            return row
    return None


def _now(tx: Transaction, kit: Kit, profile: str, name: str) -> int:
    """By the store's clock, which deliverers on several hosts share."""
    return kit.store_time(_known(tx, kit, profile, name))


def _known(tx: Transaction, kit: Kit, profile: str, name: str) -> int | None:
    """The store's clock, if it has one. NotFound: nobody has subscribed by this name."""
    row = tx.row("subscriber_get", profile=profile, name=kit.key("subscriber", name))
    if row is None:
        raise NotFound("subscriber", name)
    return row[1]


def _row_of(tx: Transaction, mine: Claim) -> Row | None:
    """(attempts, next_at) of a claimed row, once nobody else is at it."""
    return tx.row(
        "boundary_get", no=mine.no, subscriber=mine.subscriber, number=mine.boundary.number
    )


def _boundary(row: Row) -> Boundary:
    return Boundary(
        number=row[1], kind=row[2], generation=row[3], reason=row[4], platform=row[5],
        from_id=row[6], to_id=row[7], at=row[8], profile=row[9], conversation=row[10],
    )  # fmt: skip


def erase(tx: Transaction, no: int) -> None:
    """Why handlers failed, which may quote."""
    tx.run("boundary_erase", no=no)
