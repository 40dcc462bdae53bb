"""What the doctor reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from clew.store.backend import Row

Ask = Callable[[str], list[Row]]
"""Runs a statement of sql/upkeep.*.sql by name; raises StoreError."""
Level = Literal["ok", "warn", "error"]


class Finding(Struct, frozen=True):
    """One fact about a store. `remedy` says what to do; None: there is nothing to do. `code` is
    for machines, and stays what it is; docs/operating/monitoring.md has all."""

    level: Level
    subject: str
    what: str
    remedy: str | None = None
    code: str = ""

    def __post_init__(self) -> None:
        if not self.code:
            force_setattr(self, "code", f"{self.subject}.{self.level}")


def size_text(size: int) -> str:
    """Bytes for people: 12 B, 3.4 KiB, 120 MiB."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def counted(number: int, what: str, plural: str | None = None) -> str:
    """1 message, 2 messages, 12,000 messages."""
    return f"{number:,} {what if number == 1 else plural or what + 's'}"
