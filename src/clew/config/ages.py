"""Spans of time in the configuration: "90d", or "keep"."""

from __future__ import annotations

KEEP = "keep"
_HOUR = 3_600_000_000
_UNITS = {"h": _HOUR, "d": 24 * _HOUR, "w": 7 * 24 * _HOUR, "y": 365 * 24 * _HOUR}
LONGEST = 100 * _UNITS["y"]


def micros(text: str) -> int | None:
    """Microseconds; None for "keep". ValueError for what is no span, or one that is nothing."""
    text = text.strip().lower()
    if text == KEEP:
        return None
    number, unit = text[:-1].rstrip(), _UNITS.get(text[-1:])
    digits = number.isascii() and number.isdecimal() and len(number) <= 6
    if unit is None or not digits or not 0 < int(number) * unit <= LONGEST:
        raise ValueError(text)
    return int(number) * unit
