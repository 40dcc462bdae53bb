"""What issue 6 promises of the host, in the order in which a quick run spends its time."""

from contextlib import nullcontext as running

from benchmarks.host.long import LONG
from benchmarks.host.prefix import PREFIX
from benchmarks.host.start import START
from benchmarks.host.turn import GROWN, TURN

__all__ = ["JOBS", "facts", "forget", "has", "prepare", "running"]

JOBS = (START, PREFIX, TURN, LONG, GROWN)


def facts(quick: bool) -> dict[str, str]:
    """What is run."""
    return {
        "model": "in memory, answers at once; its requests are rendered for Chat Completions",
        "workload": "prose by seed, W1 for conversations that are there already; processor time "
        "of all threads, compactions included, over consecutive turns",
    }


def prepare() -> None:
    """Nothing is kept between runs."""


def forget() -> None:
    """As `prepare`."""


def has(_: str) -> bool:
    return False
