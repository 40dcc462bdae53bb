"""What clew promises of crashes and of years, in the order in which a quick run spends its time."""

from contextlib import nullcontext as running

from benchmarks.crash.kills import KILLS
from benchmarks.crash.power import POWER
from benchmarks.crash.year import YEAR

__all__ = ["JOBS", "facts", "forget", "has", "prepare", "running"]

JOBS = (POWER, KILLS, YEAR)


def facts(quick: bool) -> dict[str, str]:
    """What is run."""
    return {
        "crash points": "tests/crash/power_sweep.py: every prefix of a record of what reached the "
        "disk, the unsynced part there, gone, in part, or torn; in memory, two processes",
        "kill -9": "tests/crash/kill_server.py: 1, 2 and 4 writers at once; in memory",
        "year": "a busy assistant by seed: automation and people; a day's maintenance each day, "
        "compactions, searches; on the disk",
    }


def prepare() -> None:
    """Nothing is kept between runs."""


def forget() -> None:
    """As `prepare`."""


def has(_: str) -> bool:
    return False
