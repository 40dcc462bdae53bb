"""A clock that moves only when told to, and ids that are the same in every run."""

from __future__ import annotations

import random

from clew.ids import Ids


class FakeClock:
    """Starts at a fixed time; `step` microseconds pass with each look."""

    def __init__(self, start: int = 1_750_000_000_000_000, step: int = 1) -> None:
        self._now, self._step = start, step

    def now(self) -> int:
        self._now += self._step
        return self._now

    def advance(self, micros: int) -> None:
        """Let time pass, or jump back with a negative number."""
        self._now += micros


def seeded_ids(clock: FakeClock, seed: int = 0) -> Ids:
    """Ids that a run with the same seed gets again."""
    return Ids(clock, random.Random(seed).getrandbits)
