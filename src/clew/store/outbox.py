"""The outbox: replies to send, written in the transaction that ends their turn.

A publisher takes what is due, sends it outside any transaction, and settles it: at least once, in
order within a conversation. Of the rows of one conversation the lowest that is pending alone can be
due; one that fails keeps those behind it waiting, and nobody else.

A claim locks nothing but its row, and moves the time at which it is due by LEASE: what a publisher
that is gone had taken comes due again. Whether a row is the lowest cannot change between a look and
a claim, since no row becomes pending again. The count of attempts and the time that the claim set
are the fence: to settle what was settled before, or taken by another meanwhile, changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from clew.domain.erasure import ERASED, names_person
from clew.domain.turns import Delivered, DeliveryState
from clew.errors import InputError
from clew.store.backend import Row, Transaction
from clew.store.codec import json_value
from clew.store.kit import Kit
from clew.store.unit import Once

LEASE = 60_000_000
"""Microseconds that a publisher has for one row."""
BACKOFF = (5_000_000, 30_000_000, 300_000_000, 3_600_000_000)
"""Microseconds from a failure to the next attempt, by how many there were; the last one stays."""


def add(
    tx: Transaction, no: int, turn: int, deliveries: Sequence[tuple[str, str]], now: int
) -> None:
    """Add (route, payload as JSON) rows, in order."""
    if not deliveries:
        return
    last = tx.row("outbox_last", no=no)
    for number, (route, payload) in enumerate(deliveries, (last[0] if last else 0) + 1):
        tx.run(
            "outbox_insert", no=no, number=number, turn=turn, route=route, payload=payload, at=now
        )


def of_turn(tx: Transaction, no: int, turn: int) -> tuple[Delivered, ...]:
    """The rows of one turn, in order."""
    return tuple(_delivered(row) for row in tx.rows("outbox_of_turn", no=no, turn=turn))


def all_of(
    tx: Transaction, kit: Kit, profile: str, state: DeliveryState | None, limit: int
) -> tuple[Delivered, ...]:
    """The rows of a profile, of one state or of all, the latest change first."""
    if state is not None:
        kit.choice("state", state, ("pending", "sent", "failed"))
    rows = tx.rows("outbox_all", profile=profile, state=state, limit=limit)
    return tuple(_delivered(row) for row in rows)


def delete(tx: Transaction, no: int) -> None:
    tx.run("outbox_delete", no=no)


# ---------------------------------------------------------------- publishing


def is_due(tx: Transaction, kit: Kit, profile: str, routes: str) -> bool:
    """Whether there is anything to take: a look that locks nothing."""
    return _first(tx, "outbox_is_due", profile, routes, _now(tx, kit)) is not None


class Take(Once[Delivered | None]):
    """Take one due row for LEASE; None: nothing is due.

    Two never get one row: on a file one of them runs after the other; on PostgreSQL the second
    skips the row that is locked, or sees that it is not due any more.
    """

    def __init__(self, kit: Kit, profile: str, routes: str) -> None:
        self._kit, self._profile, self._routes = kit, profile, routes
        self._place = 0

    def is_stored(self, tx: Transaction) -> bool:
        mine = self._first
        if mine is None:
            return False
        row = tx.row("outbox_get", no=self._place, number=mine.number)
        return row is not None and row[:2] == (mine.attempts, mine.next_at)

    def run(self, tx: Transaction) -> Delivered | None:
        now = _now(tx, self._kit)
        row = _first(tx, "outbox_due", self._profile, self._routes, now)
        if row is None:
            return None
        self._place, until = row[0], now + LEASE
        found = _delivered(row)
        tx.run("outbox_claim", no=self._place, number=found.number, until=until)
        return replace(found, attempts=found.attempts + 1, next_at=until)


class Settle(Once[Delivered | None]):
    """Note how an attempt went: sent, to be tried again, or failed for good; gives the row. None:
    it was taken by another meanwhile, settled, or deleted, and nothing was changed."""

    def __init__(
        self, kit: Kit, profile: str, mine: Delivered, error: str | None, give_up: bool
    ) -> None:
        if give_up and error is None:
            raise InputError("give_up without an error; say why the delivery cannot be sent")
        self._kit, self._profile, self._mine = kit, profile, mine
        self._error, self._give_up = kit.remark(error), give_up

    def is_stored(self, tx: Transaction) -> bool:
        if self._first is None:
            return False
        row = self._row(tx)
        return row is not None and row[1:] == (self._first.next_at, self._first.state)

    def run(self, tx: Transaction) -> Delivered | None:
        mine = self._mine
        if self._row(tx) != (mine.attempts, mine.next_at, "pending"):
            return None
        state, at = self._outcome(_now(tx, self._kit))
        tx.run(
            "outbox_settle", no=self._place(tx), number=mine.number, state=state, at=at,
            error=self._error,
        )  # fmt: skip
        return replace(mine, state=state, next_at=at, error=self._error)

    def _outcome(self, now: int) -> tuple[DeliveryState, int]:
        if self._error is None:
            return "sent", now
        if self._give_up:
            return "failed", now
        return "pending", now + BACKOFF[min(self._mine.attempts, len(BACKOFF)) - 1]

    def _row(self, tx: Transaction) -> Row | None:
        """(attempts, next_at, state) once nobody else is at the row."""
        return tx.row("outbox_get", no=self._place(tx), number=self._mine.number)

    def _place(self, tx: Transaction) -> int:
        """The conversation's inner number; 0, which none has, when it is gone."""
        row = tx.row("conversation_no", id=self._mine.conversation)
        return row[0] if row is not None and row[1] == self._profile else 0


def _first(tx: Transaction, statement: str, profile: str, routes: str, now: int) -> Row | None:
    """The row that has been due for longest. Nothing is put off by more than the longest back-off:
    what seems to be was written before a clock was set back."""
    for low, high in ((0, now), (now + BACKOFF[-1] + 1, 1 << 62)):
        row = tx.row(
            statement, profile=profile, routes=routes, size=len(routes), low=low, high=high
        )
        if row is not None:
            return row
    return None


def _now(tx: Transaction, kit: Kit) -> int:
    """By the store's clock, which publishers on several hosts share."""
    row = tx.row("outbox_clock")
    return kit.store_time(None if row is None else row[0])


def _delivered(row: Row) -> Delivered:
    return Delivered(
        conversation=row[1], number=row[2], turn=row[3], route=row[4], payload=json_value(row[5]),
        state=row[6], attempts=row[7], next_at=row[8], error=row[9],
    )  # fmt: skip


def texts(tx: Transaction, no: int) -> list[Row]:
    """All of a conversation: (number, turn, route, payload, error)."""
    return tx.rows("outbox_texts", no=no)


def erase(tx: Transaction, no: int, number: int, route: str) -> None:
    """What was to be sent; what was not sent yet fails. `route` takes the route's place."""
    tx.run("outbox_erase", no=no, number=number, route=route)


def erase_to(tx: Transaction, no: int, person: str) -> None:
    """What went to a person, by the route."""
    for number, _, route, _, _ in texts(tx, no):
        if names_person(route, person):
            erase(tx, no, number, ERASED)
