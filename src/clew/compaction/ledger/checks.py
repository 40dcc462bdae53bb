"""What a summary of messages must not have lost: for the check before a commit."""

from __future__ import annotations

from collections.abc import Sequence

from clew.compaction.ledger.gather import gather
from clew.compaction.ledger.rows import Row
from clew.domain.messages import Message


def rows_of(messages: Sequence[Message]) -> list[Row]:
    """All that the parser finds in these messages and that still holds after them."""
    return list(gather((), messages).rows)
