"""What came of one call for a compaction."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from clew.compaction.receipt import Receipt
from clew.domain.compactions import Compaction

State = Literal["committed", "refused", "cancelled", "overtaken", "failed"]


class Outcome(Struct, frozen=True, kw_only=True):
    """Only `committed` has changed anything but the list of attempts.

    refused: the guards held it back, or there was nothing to do. cancelled: somebody stopped it.
    overtaken: a cut or another compaction was there first. failed: the check found that too much
    would be missing, or it ran past its deadline.
    """

    state: State
    reason: str
    """One sentence for a person."""
    attempt: int | None = None
    compaction: Compaction | None = None
    receipt: Receipt | None = None
    notice: str | None = None
    """What a person should be told, once: the summariser failed, something had no room."""
