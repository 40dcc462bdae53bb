"""How long to leave alone what failed: a minute, then twice as long each time, an hour at most."""

from __future__ import annotations

import time
from collections.abc import Callable

FIRST, LONGEST = 60.0, 3600.0
"""Seconds."""


class Backoff:
    """Of one thing that is tried again. For several threads: at worst one tries too early."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pause, self._next = FIRST, 0.0

    @property
    def due(self) -> bool:
        """Whether it may be tried now."""
        return self._clock() >= self._next

    def failed(self) -> None:
        """It failed again."""
        self._next = self._clock() + self._pause
        self._pause = min(2 * self._pause, LONGEST)

    def worked(self) -> None:
        """It works: the next failure is a first one."""
        self._pause, self._next = FIRST, 0.0
