"""A claim: what a clause says about one subject."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from clew.compaction.ledger.words import CHANGE, MORE


class Claim(NamedTuple):
    """A clause's statement about one slot.

    `asserts`: says what holds, so that it may replace an equal slot by itself; else only mentions.
    `changes`: says that it changes something earlier, so that it may also replace a slot whose
    scope contains or is contained in its own.
    """

    dimension: str
    scope: tuple[str, ...]
    value: str
    asserts: bool
    changes: bool

    @property
    def slot(self) -> str:
        return f"{self.dimension}:{' '.join(self.scope)}"


class Tone:
    """How a clause speaks, looked at only when it claims something. `low`: all of it in lower
    case; `part`: the part that claims, when that is not all."""

    def __init__(self, low: str, part: str | None = None) -> None:
        self._low, self._part = low, part

    @cached_property
    def changes(self) -> bool:
        """Whether it says that something changes."""
        return CHANGE.search(self._low) is not None

    @cached_property
    def adds(self) -> bool:
        """Whether it says that something comes on top."""
        return not self.changes and MORE.search(self._part or self._low) is not None
