"""kill -9: how many writers died after an acknowledgement, and what was lost."""

from __future__ import annotations

import json
from collections import Counter
from time import perf_counter

from benchmarks.crash.scripts import in_memory, said, start
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Reading, Target

_WRITERS = (1, 2, 4)
_STORE = 350
"""Runs on one store."""


def kills(bench: Bench) -> Readings:
    """Writers on one store, killed at any time or inside a call to the file system."""
    total: Counter[str] = Counter()
    started = perf_counter()
    for number in range(bench.pick(1, 5)):
        for writers in _WRITERS:
            total += _killed(writers, number)
    seconds = perf_counter() - started
    note = f"{total['told']:,} messages acknowledged, {total['inside']:,} died inside a call"
    yield "kill_runs", Reading(total["runs"], note=note)
    yield "kill_runs_per_second", Reading(total["runs"] / seconds)
    for kind in ("lost", "doubled", "problems"):
        yield f"kill_{kind}", Reading(total[kind])


def _killed(writers: int, seed: int) -> Counter[str]:
    with in_memory() as folder:
        store, told = folder / "store.db", folder / "told"
        report = said(start("kill_server.py", store, writers, _STORE, 100 * seed + writers))
        told.write_text(json.dumps(report["told"]))
        found = said(start("kill_check.py", store, told))
        return Counter(
            runs=report["runs"], inside=report["inside"], told=sum(map(len, report["told"])),
            lost=len(found["lost"]), doubled=len(found["doubled"]),
            problems=len(found["problems"]) + bool(report["errors"]),
        )  # fmt: skip


KILLS = Job(
    "kills",
    kills,
    (
        Target("kill_runs", 1_000, "runs", at_least=True, says="writers killed"),
        Target("kill_runs_per_second", None, "runs/s", says="writers killed each second"),
        Target("kill_lost", 0, "messages", says="acknowledged messages that a kill -9 lost"),
        Target("kill_doubled", 0, "messages", says="messages that are there twice after a kill"),
        Target("kill_problems", 0, "problems", says="anything else wrong after the kills"),
    ),
)
