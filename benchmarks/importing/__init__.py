"""What issue 4 promises of the speed of imports."""

from contextlib import nullcontext as running

from benchmarks.importing.sessions import LONG, SMALL
from benchmarks.importing.watching import WATCH

__all__ = ["JOBS", "facts", "forget", "has", "prepare", "running"]

JOBS = (SMALL, LONG, WATCH)


def facts(quick: bool) -> dict[str, str]:
    """What is imported."""
    size, count = ("50 MB", "1,000") if quick else ("100 MB and 1 GB", "10,000")
    return {
        "workload": "a real Claude Code session with sub-agents (774 KB) repeated with new ids up "
        f"to {size}, as one conversation; {count} sessions of ten of its records",
        "index": "the search index is not part of an import's time",
    }


def prepare() -> None:
    """Nothing is kept between runs."""


def forget() -> None:
    """As `prepare`."""


def has(_: str) -> bool:
    return False
