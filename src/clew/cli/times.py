"""Times as people say them, both ways. Inside, everything is microseconds."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from clew.clock import SECOND, Micros

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY
_UNITS = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": WEEK, "y": 365 * DAY}


def ago(at: Micros, now: Micros) -> str:
    """How long ago, in a few characters; a date when it is long."""
    age = now - at
    if age < 0 or age >= 5 * WEEK:
        return day(at)
    if age < MINUTE:
        return "just now"
    for unit, size, limit in (("m", MINUTE, HOUR), ("h", HOUR, DAY), ("d", DAY, WEEK)):
        if age < limit:
            return f"{age // size}{unit} ago"
    return f"{age // WEEK}w ago"


def moment(at: Micros) -> str:
    """Local time to the minute."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at / SECOND))


def day(at: Micros) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(at / SECOND))


def stamp(at: Micros) -> str:
    """For programs: UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at / SECOND))


def parse_age(text: str) -> Micros | None:
    """90d, 12h, 2w; None when it is not one."""
    text = text.strip().lower()
    number, unit = text[:-1].rstrip(), _UNITS.get(text[-1:])
    if unit is None or not (number.isascii() and number.isdecimal()) or len(number) > 6:
        return None
    return int(number) * unit


def parse_moment(text: str, now: Micros) -> Micros | None:
    """A date, a date and time, an age (3d: three days ago), today, yesterday; None when neither.

    Without a zone it is local time.
    """
    age = parse_age(text)
    if age is not None:
        return now - age
    try:
        given = _named_day(text.strip().lower(), now) or datetime.fromisoformat(text.strip())
        return int(given.astimezone().timestamp() * SECOND)
    except (ValueError, OverflowError, OSError):
        return None


def _named_day(text: str, now: Micros) -> datetime | None:
    days = {"today": 0, "yesterday": 1}.get(text)
    if days is None:
        return None
    today = datetime.fromtimestamp(now / SECOND).date()
    return datetime.combine(today - timedelta(days=days), datetime.min.time())
