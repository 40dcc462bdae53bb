"""Time as a value: integer microseconds since 1970-01-01 UTC, always passed in.

The only place that asks the operating system for the time, so that tests and simulations can
replace it.
"""

from __future__ import annotations

import time
from typing import Protocol

Micros = int
SECOND: Micros = 1_000_000


class Clock(Protocol):
    """Anything that tells the time in microseconds since 1970-01-01 UTC."""

    def now(self) -> Micros: ...


class SystemClock:
    """The machine's wall clock."""

    def now(self) -> Micros:
        return time.time_ns() // 1000
