"""What a summary of messages must not have lost: for the check before a commit."""

from __future__ import annotations

from collections.abc import Sequence

from clew.compaction.ledger.gather import gather
from clew.compaction.ledger.rows import Row
from clew.domain.messages import Message


def rows_of(messages: Sequence[Message]) -> list[Row]:
    """All that the parser finds in these messages and that still holds after them."""
    return list(gather((), messages).rows)


def rules_of(messages: Sequence[Message]) -> list[Row]:
    """The standing instructions that hold after these messages."""
    return [row for row in gather((), messages).rows if row.kind == "rule"]


def asks_of(messages: Sequence[Message]) -> list[Row]:
    """The requests that these messages leave open."""
    return [row for row in gather((), messages).rows if row.kind == "ask"]


def values_of(messages: Sequence[Message]) -> list[Row]:
    """The exact values that hold after these messages: rows with a slot and a value."""
    return [
        row for row in gather((), messages).rows
        if row.value and row.slot and row.kind in ("rule", "decision", "fact")
    ]  # fmt: skip
