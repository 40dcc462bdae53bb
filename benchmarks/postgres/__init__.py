"""What clew does on PostgreSQL, in the order in which a quick run spends its time."""

from benchmarks.postgres import server
from benchmarks.postgres.append import APPEND
from benchmarks.postgres.compare import COMPARE
from benchmarks.postgres.facade import FACADE
from benchmarks.postgres.growth import GROWTH
from benchmarks.postgres.lists import LISTS
from benchmarks.postgres.reads import CONTEXT
from benchmarks.postgres.searches import SEARCH
from benchmarks.postgres.server import running

__all__ = ["JOBS", "facts", "forget", "has", "prepare", "running"]

JOBS = (APPEND, COMPARE, LISTS, CONTEXT, SEARCH, FACADE, GROWTH)


def facts(quick: bool) -> dict[str, str]:
    """The server, and what was written."""
    size = "50,000" if quick else "5,000,000"
    return {
        "server": server.facts(),
        "workload": "W1: messages of 656 bytes on average; grown stores: copies of two "
        f"conversations of 1,000 messages and 79 of 38, up to {size} messages",
    }


def prepare() -> None:
    """Nothing: a server and its databases last as long as a run."""


def forget() -> None:
    """Nothing is kept."""


def has(store: str) -> bool:
    """No store is kept from one run to the next."""
    return False
