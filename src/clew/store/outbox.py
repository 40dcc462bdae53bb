"""The outbox: replies to send, written in the transaction that ends their turn."""

from __future__ import annotations

from collections.abc import Sequence

from clew.domain.turns import Delivered
from clew.store.backend import Transaction
from clew.store.codec import json_value


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
    return tuple(
        Delivered(number=r[0], route=r[1], payload=json_value(r[2]), state=r[3], attempts=r[4])
        for r in tx.rows("outbox_of_turn", no=no, turn=turn)
    )


def delete(tx: Transaction, no: int) -> None:
    tx.run("outbox_delete", no=no)
