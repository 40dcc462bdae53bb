"""Searches, newest first, 20 hits with snippets."""

from __future__ import annotations

from pathlib import Path

import clew
from benchmarks import clew_adapter, floor, stores, workload
from benchmarks.clew_adapter import ClewAdapter
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Target, interleave, typical

_SIZES = {"20k": 20_000, "200k": 200_000, "1m": 1_000_000}
_BEHIND = 512
_WORDS = {
    "search_common_word": (workload.COMMON_WORD, 1.0, "a common word"),
    "search_two_cjk": (workload.TWO_CJK, 1.0, "two CJK characters"),
    "search_rare_word": (workload.RARE_WORD, 0.3, "a rare word, warm"),
}


def searches(bench: Bench) -> Readings:
    """The index is complete, then 512 messages behind."""
    for label, size in _SIZES.items():
        if f"search_rare_word_{label}" in bench.wanted and (label == "200k" or not bench.quick):
            path = stores.grown(size)
            yield from _warm(bench, path, label)
            yield from _behind(bench, path, label)


def _warm(bench: Bench, path: Path, label: str) -> Readings:
    with clew.open(path) as store:
        profile = store.profile(clew_adapter.PROFILE)
        for name, (word, _, _) in _WORDS.items():
            query = clew.SearchQuery(text=word)
            page = profile.search(query)
            assert page.hits, f"nothing found for {word}"
            assert not page.behind
            side = {"clew": lambda query=query: typical(5, lambda: profile.search(query)) * 1e3}
            samples = interleave(bench.pick(9, 25), side)
            note = f"{len(page.hits)} hits on the page"
            yield f"{name}_{label}", samples.plain("clew", None, "ms", note)


def _behind(bench: Bench, path: Path, label: str) -> Readings:
    """The rare word when the newest 512 messages are not in the index yet."""
    copy = bench.path(f"behind-{label}")
    floor.clone(path, copy)
    floor.clone(path.with_suffix(".db.search"), copy.with_suffix(".db.search"))
    adapter = ClewAdapter()
    adapter.open(str(copy))
    adapter.create("behind")
    (chat,) = workload.w1(1, _BEHIND, first=900_000)
    adapter.append("behind", [adapter.native(message) for message in chat.messages])
    assert adapter.store.search_index.status().behind == _BEHIND
    query = clew.SearchQuery(text=workload.RARE_WORD)
    search = adapter.profile.search
    samples = interleave(
        bench.pick(9, 25), {"clew": lambda: typical(3, lambda: search(query)) * 1e3}
    )
    status = adapter.store.search_index.status()
    note = f"{status.behind} rows behind at the end"
    yield f"search_rare_word_behind_{label}", samples.plain("clew", None, "ms", note)
    adapter.close()


def _targets() -> list[Target]:
    """Promised at 200,000 messages; the other sizes show the growth."""
    targets: list[Target] = []
    asked = {name: (limit, says) for name, (_, limit, says) in _WORDS.items()}
    asked["search_rare_word_behind"] = (3.0, f"a rare word, {_BEHIND} rows behind the mark")
    for label, size in _SIZES.items():
        for name, (limit, says) in asked.items():
            bound = limit if label == "200k" else None
            told = f"search {label} messages for {says}"
            targets.append(Target(f"{name}_{label}", bound, "ms", size=size, says=told))
    return targets


SEARCH = Job("search", searches, tuple(_targets()), stores=("grown-200000",))
