"""Goals: at most one active in a conversation (a unique index decides)."""

from __future__ import annotations

from clew.domain.notes import Goal
from clew.store.backend import Transaction
from clew.store.kit import Kit


def set_active(tx: Transaction, kit: Kit, no: int, text: str, now: int) -> Goal:
    """Make this the active goal; another active one is cleared. The same text changes nothing."""
    wanted = kit.label("goal", text) or ""
    current = active(tx, no)
    if current is not None and current.text == wanted:
        return current
    close(tx, no, "cleared", now)
    last = tx.row("goal_last", no=no)
    number = (last[0] if last else 0) + 1
    tx.run("goal_insert", no=no, number=number, text=wanted, at=now)
    return Goal(number=number, text=wanted, state="active", at=now)


def active(tx: Transaction, no: int) -> Goal | None:
    row = tx.row("goal_active", no=no)
    return None if row is None else Goal(number=row[0], text=row[1], state=row[2], at=row[3])


def close(tx: Transaction, no: int, state: str, now: int) -> bool:
    """Close the active goal as done or cleared; False when there is none."""
    return tx.changed("goal_close", no=no, state=state, at=now) > 0


def delete(tx: Transaction, no: int) -> None:
    tx.run("goal_delete", no=no)


def erase(tx: Transaction, no: int, number: int, text: str) -> None:
    """Put this text in the place of one."""
    tx.run("goal_erase", no=no, number=number, text=text)


def texts(tx: Transaction, no: int) -> list[tuple[int, str]]:
    """(number, text) of all, closed ones too."""
    return [(row[0], row[1]) for row in tx.rows("goal_texts", no=no)]
