"""Power cuts: how many moments are tried, how fast, and what was lost."""

from __future__ import annotations

from collections import Counter
from time import perf_counter
from typing import Any

from benchmarks.crash.scripts import in_memory, said, start
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Reading, Target

_STEPS = 27
_OF = 2
"""Processes."""


def power(bench: Bench) -> Readings:
    """Every prefix of a record, in every way; a full run tries five records of three times the
    length, and opens one image in four as a store (a quick one, in sixteen)."""
    total: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    started = perf_counter()
    for seed in range(bench.pick(1, 5)):
        for report in _sweep(bench.pick(_STEPS, 3 * _STEPS), seed, bench.pick(16, 4)):
            total.update({name: report[name] for name in ("points", "images", "opened")})
            wrong.update(report["wrong"])
    seconds = perf_counter() - started
    note = f"{total['images']:,} distinct images, {total['opened']:,} opened as a store"
    yield "crash_points", Reading(total["points"], note=note)
    yield "crash_points_per_second", Reading(total["points"] / seconds)
    yield "crash_images", Reading(total["images"])
    for kind in ("lost", "doubled"):
        yield f"crash_{kind}", Reading(wrong.pop(kind, 0))
    yield "crash_corrupt", Reading(wrong.total(), note=", ".join(wrong))


def _sweep(steps: int, seed: int, share: int) -> list[dict[str, Any]]:
    with in_memory() as folder:
        (folder / "store").mkdir()
        said(start("power_cut.py", folder / "store", folder / "record", steps))
        shards = [
            start(
                "power_sweep.py", folder / "record", folder / f"{n}", "--shard", f"{n}/{_OF}",
                "--seed", seed, "--share", share,
            )
            for n in range(_OF)
        ]  # fmt: skip
        return [said(shard) for shard in shards]


POWER = Job(
    "power",
    power,
    (
        Target(
            "crash_points", 10_000, "points", at_least=True, says="power cuts: moments and ways"
        ),
        Target("crash_points_per_second", None, "points/s", says="power cuts each second"),
        Target("crash_images", None, "images", says="different files that they left"),
        Target("crash_lost", 0, "points", says="power cuts that lost an acknowledged message"),
        Target("crash_doubled", 0, "points", says="power cuts after which a message was doubled"),
        Target("crash_corrupt", 0, "points", says="power cuts that left anything else wrong"),
    ),
)
