"""Searches, newest first, 20 hits with snippets."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import clew
from benchmarks import clew_adapter, workload
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Target, interleave, typical
from benchmarks.postgres import server, stores

_SIZES = {"5k": 5_000, "50k": 50_000, "500k": 500_000}
_WORDS = {
    "rare_word": (workload.RARE_WORD, "a rare word"),
    "common_word": (workload.COMMON_WORD, "a common word"),
    "two_cjk": (workload.TWO_CJK, "two CJK characters"),
}


def searches(bench: Bench) -> Readings:
    """The index is complete, and the sizes are asked in the same rounds."""
    labels = [label for label in _SIZES if f"pg_search_common_word_{label}" in bench.wanted]
    actions: dict[str, Callable[[], float]] = {}
    hits: dict[str, int] = {}
    with ExitStack() as stack:
        for label in labels:
            url = server.url(stores.grown(_SIZES[label]))
            profile = stack.enter_context(clew.open(url)).profile(clew_adapter.PROFILE)
            for name, (word, _) in _WORDS.items():
                query = clew.SearchQuery(text=word)
                page = profile.search(query)
                assert not page.behind
                hits[f"{name}_{label}"] = len(page.hits)
                actions[f"{name}_{label}"] = _milliseconds(profile, query)
        interleave(1, actions)
        samples = interleave(bench.pick(7, 25), actions)
    for key, count in hits.items():
        note = f"{count} hits on the page"
        yield f"pg_search_{key}", samples.plain(key, None, "ms", note)


def _milliseconds(profile: clew.Profile, query: clew.SearchQuery) -> Callable[[], float]:
    return lambda: typical(3, lambda: profile.search(query)) * 1e3


SEARCH = Job(
    "search",
    searches,
    tuple(
        Target(
            f"pg_search_{name}_{label}",
            None,
            "ms",
            size=size,
            says=f"search {label} messages for {says}",
        )
        for label, size in _SIZES.items()
        for name, (_, says) in _WORDS.items()
    ),
)
