"""Presence: who is at work on a conversation, and what it says it does. Ends nothing, ever."""

from __future__ import annotations

from clew.domain.notes import Presence
from clew.store.backend import Transaction
from clew.store.kit import Kit


def beat(tx: Transaction, kit: Kit, no: int, owner: str, label: str | None, now: int) -> None:
    """A sign of life."""
    tx.run(
        "presence_beat", no=no, owner=kit.key("presence owner", owner),
        label=kit.label("presence label", label), at=now,
    )  # fmt: skip


def leave(tx: Transaction, no: int, owner: str) -> None:
    tx.run("presence_leave", no=no, owner=owner)


def all_of(tx: Transaction, no: int) -> tuple[Presence, ...]:
    rows = tx.rows("presence_all", no=no)
    return tuple(Presence(owner=r[0], heartbeat=r[1], label=r[2]) for r in rows)


def delete(tx: Transaction, no: int) -> None:
    tx.run("presence_delete", no=no)
