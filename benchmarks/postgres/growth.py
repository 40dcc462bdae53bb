"""Five million messages in hash partitions, against half a million of the same.

Both are copies (COPY) of a store that clew made, ten of each row in the large one, and both have
the same partitions. What is done is what the other jobs do, in the same rounds at both sizes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial

import clew
from benchmarks import clew_adapter, workload
from benchmarks.jobs import Bench, Job, Readings, say
from benchmarks.measure import Target, interleave, typical
from benchmarks.postgres import floor, server, stores
from benchmarks.postgres.clients import Group

_PARTITIONS = 16
_SIZES = {"500k": 500_000, "5m": 5_000_000}
_CLIENTS = 8
_EACH = 50
_ROUNDS = 9
_FLAT = 1.25


def growth(bench: Bench) -> Readings:
    """Appends, a context of 1,000 messages, the newest 50 conversations, a search."""
    took = {label: _fill(label) for label in _SIZES}
    group = Group(list(workload.w1(_CLIENTS, _EACH * (_ROUNDS + 1), first=300_000)), _EACH)
    with ExitStack() as stack:
        actions = {label: _actions(label, group, stack) for label in _SIZES}
        for what in _WORK:
            sides = {label: actions[label][what] for label in _SIZES}
            interleave(1, sides)
            samples = interleave(_ROUNDS, sides)
            note = f"filled in {took['5m']:.0f} s" if what == "append" else ""
            yield f"pg_growth_{what}", samples.ratio("5m", "500k", _WORK[what][0], note)
    for label in _SIZES:
        server.drop(f"growth-{label}")


def _actions(label: str, group: Group, stack: ExitStack) -> Mapping[str, Callable[[], float]]:
    """What is measured in the store of a size."""
    url = server.url(f"growth-{label}")
    clew_adapter.create(url, group.titles)
    store = stack.enter_context(clew.open(url))
    profile = store.profile(clew_adapter.PROFILE)
    ids = floor.ids(url)
    big = profile.open(ids[next(title for title in ids if title.startswith("big-"))])
    assert len(big.context_inputs().messages) == workload.BIG_MESSAGES
    query = clew.SearchQuery(text=workload.COMMON_WORD)
    return {
        "context": _milliseconds(big.context),
        "list": _milliseconds(partial(profile.list, limit=50)),
        "search": _milliseconds(partial(profile.search, query)),
        "append": group.clew(label, store, ids),
    }


def _milliseconds(action: Callable[[], object]) -> Callable[[], float]:
    return lambda: typical(3, action) * 1e3


def _fill(label: str) -> float:
    """Copy the half million so often that the size is reached; seconds."""
    say(f"    filling a store of {label} in {_PARTITIONS} partitions")
    smaller = _SIZES["500k"]
    stores.grown(smaller)
    started = time.perf_counter()
    stores.partitioned(f"growth-{label}", smaller, _SIZES[label] // smaller, _PARTITIONS)
    return time.perf_counter() - started


_WORK = {
    "context": ("ms", "read a context of 1,000 messages"),
    "list": ("ms", "list 50 conversations"),
    "search": ("ms", "search for a common word"),
    "append": ("messages/s", f"appends by {_CLIENTS} clients, messages per second"),
}


_LIMITS = {"context": _FLAT, "list": _FLAT, "append": 1 / _FLAT}
"""A search is compared, as in the smaller stores."""


def _target(what: str) -> Target:
    return Target(
        f"pg_growth_{what}",
        _LIMITS.get(what),
        at_least=what == "append",
        sides=("at 5m", "at 500k"),
        size=_SIZES["5m"],
        says=f"{_WORK[what][1]}, store of 5m in {_PARTITIONS} partitions, against one of 500k",
    )


GROWTH = Job("growth", growth, tuple(map(_target, _WORK)))
