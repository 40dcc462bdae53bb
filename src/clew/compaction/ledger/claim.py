"""A claim: what a clause says about one subject."""

from __future__ import annotations

from typing import NamedTuple


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


class Tone(NamedTuple):
    """How a clause speaks: whether it says that something changes, or that it comes on top."""

    changes: bool
    adds: bool
