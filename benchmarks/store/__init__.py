"""What issue 2 promises of the store's speed, in the order in which a quick run spends its time."""

from contextlib import nullcontext as running

from benchmarks.kept import forget, has
from benchmarks.store.append import APPEND, APPEND_GROWN, APPEND_HERMES
from benchmarks.store.appenders import ASYNC
from benchmarks.store.compare import COMPARE
from benchmarks.store.concurrency import FLUSHES, PROCESSES
from benchmarks.store.disk import DISK
from benchmarks.store.lists import LISTS
from benchmarks.store.reads import CONTEXT
from benchmarks.store.searches import SEARCH
from benchmarks.store.startup import CLI, OPEN
from benchmarks.stores import prepare

__all__ = ["JOBS", "facts", "forget", "has", "prepare", "running"]

JOBS = (
    APPEND,
    APPEND_HERMES,
    OPEN,
    LISTS,
    CONTEXT,
    SEARCH,
    ASYNC,
    CLI,
    FLUSHES,
    PROCESSES,
    DISK,
    APPEND_GROWN,
    COMPARE,
)


def facts(quick: bool) -> dict[str, str]:
    """What was written, and up to which size."""
    size = "200,000" if quick else "1,000,000"
    return {
        "workload": "W1: 200 conversations of 100 messages, 656 bytes each on average; realistic: "
        "70 % 600 B, 25 % 2 KB, 5 % 10 KB; grown stores: 12 conversations of 1,000 messages, "
        f"the rest of 38, up to {size} messages"
    }
