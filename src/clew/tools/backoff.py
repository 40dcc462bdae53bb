"""When to try again what could not be reached. A person who asks is not held up by it."""

from __future__ import annotations

import time

FIRST, MOST = 1.0, 60.0
"""Seconds between two tries: doubled with each that fails."""


class Backoff:
    """The waits of one server. Times are `time.monotonic`."""

    def __init__(self, first: float = FIRST, most: float = MOST) -> None:
        self._first, self._most = first, most
        self._wait, self._until = 0.0, 0.0

    def left(self, now: float | None = None) -> float:
        """Seconds until the next try is due; 0: now."""
        return max(0.0, self._until - (time.monotonic() if now is None else now))

    def failed(self, now: float | None = None) -> None:
        """Wait longer before the next."""
        self._wait = min(self._most, self._wait * 2 or self._first)
        self._until = (time.monotonic() if now is None else now) + self._wait

    def worked(self) -> None:
        """Begin anew; also when a person asks."""
        self._wait = self._until = 0.0
