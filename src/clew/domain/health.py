"""What an open store says of itself."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

HealthState = Literal["ok", "spooling", "stopped"]
"""`spooling`: messages wait in the spool. `stopped`: this handle writes nothing any more."""


class Health(Struct, frozen=True, kw_only=True):
    """How a store is, told without asking its disk or server for more than the spool."""

    state: HealthState
    cause: str | None = None
    """Why it is not ok."""
    spooled: int = 0
    """Messages in the spool that the next write brings in."""
    held: int = 0
    """Messages in the spool that wait for a person (`clew spool`)."""
    damaged: int = 0
    """Records of the spool that cannot be read any more."""
    recovered: int = 0
    """Messages that this handle brought in, but into conversations of their own (source
    `recovered`), because theirs did not take them any more."""
    spool: str | None = None
    """Path of the spool's file; None: the store was opened without one."""
    room: int = 0
    """Bytes that are free in the spool; it is made by the first write."""
    spool_error: str | None = None
    """Why there is no room reserved: a message that the store cannot take is refused then."""
