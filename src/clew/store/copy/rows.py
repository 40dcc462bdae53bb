"""Rows of one conversation, written as they are by what brings it from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clew.store.backend import Transaction, Value
from clew.store.copy.conversations import COLUMNS

_FIRST = (*COLUMNS[:4], "base", "affinity", "created_at")
_CHANGING = COLUMNS[COLUMNS.index("view") :]


def insert_conversation(tx: Transaction, columns: Mapping[str, Value]) -> bool:
    """A conversation without messages and origin; False when its id is taken."""
    values = {name: columns[name] for name in _FIRST}
    return tx.changed("copy_conversation_insert", origin=None, **values) > 0


def update_conversation(
    tx: Transaction, no: int, origin: int | None, columns: Mapping[str, Value]
) -> None:
    """All that may change of its row, but for the span of its messages."""
    values = {name: columns[name] for name in _CHANGING}
    tx.run("copy_conversation_update", no=no, origin=origin, **values)


def insert_messages(
    tx: Transaction, no: int, base: int, rows: Sequence[Mapping[str, Value]], nth: int
) -> None:
    """Messages above its head, in their order, numbered in the transaction from `nth` on."""
    tx.batch(
        "copy_message_insert", [{**row, "no": no, "nth": nth + i} for i, row in enumerate(rows)]
    )
    tx.run("copy_conversation_span", no=no, base=base, head=rows[-1]["seq"])
