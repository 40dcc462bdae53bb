"""What follow() yields."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

ChangeKind = Literal[
    "appended", "created", "cut", "undone", "compacted", "titled", "flagged", "ended", "reopened",
    "turn", "deleted", "erased",
]  # fmt: skip


class Change(Struct, frozen=True, kw_only=True):
    """Something changed in a conversation. Read it again to see what it is now.

    For "appended", `first_seq`..`last_seq` are new in the log.
    """

    conversation: str
    kind: ChangeKind
    first_seq: int | None = None
    last_seq: int | None = None


class Mark(Struct, frozen=True):
    """Where a follower is: everything up to here has been yielded. Means nothing but to the store
    that gave it, and is not to be kept beyond the process."""

    message: int | str
    change: int | str
    history: str = ""
    """Which history of the store these are places of."""
