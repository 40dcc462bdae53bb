"""What issue 2 promises of the store's speed, in the order in which a quick run spends its time."""

from benchmarks.store.append import APPEND, APPEND_GROWN, APPEND_HERMES
from benchmarks.store.appenders import ASYNC
from benchmarks.store.compare import COMPARE
from benchmarks.store.concurrency import FLUSHES, PROCESSES
from benchmarks.store.disk import DISK
from benchmarks.store.lists import LISTS
from benchmarks.store.reads import CONTEXT
from benchmarks.store.searches import SEARCH
from benchmarks.store.startup import CLI, OPEN

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
