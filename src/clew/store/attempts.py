"""Attempts: tries at a compaction, each open until it is committed, cancelled, overtaken or failed.

Commit and cancel are the same swap of the attempt's state, in one transaction with everything
else, so whoever comes first wins, across threads, processes and machines. Invariant: I-09.
"""

from __future__ import annotations

from msgspec.structs import replace

from clew.domain.compactions import Attempt, AttemptState, Trigger
from clew.errors import Cancelled, NotFound
from clew.store import conversations
from clew.store.backend import Row, Transaction
from clew.store.kit import Kit
from clew.store.unit import Once


def attempt_of(row: Row) -> Attempt:
    return Attempt(
        number=row[0], view=row[1], base_generation=row[2], state=row[3], trigger=row[4],
        started_at=row[5], model=row[6], verdict=row[7], summary_error=row[8], deadline=row[9],
        ended_at=row[10], tokens_before=row[11], tokens_after=row[12],
    )  # fmt: skip


def all_of(tx: Transaction, no: int) -> tuple[Attempt, ...]:
    """By number; never order them by time, clocks jump."""
    return tuple(attempt_of(row) for row in tx.rows("attempt_all", no=no))


def get(tx: Transaction, no: int, number: int) -> Attempt:
    row = tx.row("attempt_get", no=no, number=number)
    if row is None:
        raise NotFound("attempt", str(number))
    return attempt_of(row)


def cancel_all(tx: Transaction, no: int, now: int) -> None:
    """What a cut or an undo does to every open attempt."""
    tx.run("attempt_cancel_all", no=no, at=now)


def delete(tx: Transaction, no: int) -> None:
    tx.run("attempt_delete", no=no)


def swap(
    tx: Transaction, no: int, number: int, state: AttemptState, now: int,
    verdict: str | None = None, error: str | None = None, tokens_after: int | None = None,
) -> None:  # fmt: skip
    """Leave the state open; Cancelled when another got there first."""
    changed = tx.changed(
        "attempt_close", no=no, number=number, state=state, verdict=verdict, error=error, at=now,
        tokens_after=tokens_after,
    )  # fmt: skip
    if not changed:
        raise Cancelled(number, get(tx, no, number).state)


class Open(Once[Attempt]):
    """Begin an attempt: it remembers the view it read.

    Attempts of one conversation are opened one after the other, by the lock on its row. So of any
    number of open ones each but the first has rivals, and whoever has none may pay for a summary:
    the others know it.
    """

    def __init__(
        self, kit: Kit, no: int, name: str, trigger: Trigger, model: str | None,
        deadline: int | None, tokens_before: int | None,
    ) -> None:  # fmt: skip
        kit.choice("trigger", trigger, ("soft", "hard", "user"))
        self._kit, self._no, self._name, self._trigger = kit, no, name, trigger
        self._model, self._deadline = kit.label("model", model), deadline
        self._tokens, self._uid = tokens_before, kit.ids.uid()

    def is_stored(self, tx: Transaction) -> bool:
        return tx.row("attempt_by_uid", no=self._no, uid=self._uid) is not None

    def run(self, tx: Transaction) -> Attempt:
        now = self._kit.clock.now()
        row = conversations.lock(tx, self._no, self._name)
        tx.run("attempt_reap", no=row.no, at=now)
        rivals = tuple(open_[0] for open_ in tx.rows("attempt_open", no=row.no))
        last = tx.row("attempt_last", no=row.no)
        number = (last[0] if last else 0) + 1
        tx.run(
            "attempt_insert", no=row.no, number=number, uid=self._uid, view=row.view,
            generation=row.generation, trigger=self._trigger, model=self._model,
            deadline=self._deadline, at=now, tokens_before=self._tokens,
        )  # fmt: skip
        return replace(get(tx, row.no, number), rivals=rivals)


class Close(Once[Attempt]):
    """End an attempt without a result: cancelled or failed. Raises Cancelled if it was not open."""

    def __init__(
        self, kit: Kit, no: int, name: str, number: int, state: AttemptState, verdict: str | None,
        error: str | None,
    ) -> None:  # fmt: skip
        self._kit, self._no, self._name, self._number = kit, no, name, number
        self._state: AttemptState = state
        self._verdict = kit.remark(verdict)
        self._error = kit.remark(error)

    def is_stored(self, tx: Transaction) -> bool:
        return get(tx, self._no, self._number) == self._first

    def run(self, tx: Transaction) -> Attempt:
        conversations.lock(tx, self._no, self._name)
        swap(
            tx, self._no, self._number, self._state, self._kit.clock.now(), self._verdict,
            self._error,
        )  # fmt: skip
        return get(tx, self._no, self._number)


def erase(tx: Transaction, no: int) -> list[Row]:
    """What summarisers said; gives it."""
    taken = tx.rows("attempt_texts", no=no)
    tx.run("attempt_erase", no=no)
    return taken
