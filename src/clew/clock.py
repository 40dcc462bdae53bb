"""Time as a value: integer microseconds since 1970-01-01 UTC, always passed in.

The only place that asks the operating system for the time, so that tests and simulations can
replace it.
"""

from __future__ import annotations

import time
from typing import Protocol

from clew.errors import InputError

Micros = int
SECOND: Micros = 1_000_000
LATEST: Micros = 1 << 61
"""The last time that a caller may give: lists sort and page by times, and begin above it."""


class Clock(Protocol):
    """Anything that tells the time in microseconds since 1970-01-01 UTC."""

    def now(self) -> Micros: ...


class SystemClock:
    """The machine's wall clock."""

    def now(self) -> Micros:
        return time.time_ns() // 1000


def check_time(what: str, at: Micros | None) -> None:
    """Refuse a caller's time that a list could not sort or page by."""
    if at is not None and not 0 <= at <= LATEST:
        raise InputError(f"{what} is {at}; give microseconds since 1970, at most {LATEST}")
