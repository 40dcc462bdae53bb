"""500 turns on a window of 16,000 tokens, every other one with a tool."""

from __future__ import annotations

import asyncio
import gc
import os
import statistics
from pathlib import Path
from typing import NamedTuple

from benchmarks.host.hosts import Meter, Quick, Writes, answered, hosted, question, say
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Reading, Target, percentile
from clew.domain.compactions import Compaction

_TURNS, _WINDOW, _EARLY = 500, 16_000, 100


class _Run(NamedTuple):
    """Per turn: milliseconds, transactions. Resident bytes early and at the end."""

    took: list[float]
    plain: list[int]
    tools: list[int]
    resident: list[int]
    done: tuple[Compaction, ...]


def long(bench: Bench) -> Readings:
    """One run, all figures of it."""
    run = asyncio.run(_run(bench.path("long")))
    rounds = len(run.took)
    freed = f"{_TURNS} turns, {_TURNS * 3 // 2} model calls"
    yield "long_compactions", Reading(len(run.done), note=freed)
    late = statistics.median(run.took[-_EARLY:])
    early = statistics.median(run.took[:_EARLY])
    note = f"first {_EARLY} turns {early:.3g} ms, last {late:.3g} ms"
    yield "long_cpu_median", Reading(statistics.median(run.took), rounds=rounds, note=note)
    yield "long_cpu_p95", Reading(percentile(run.took, 0.95), rounds=rounds)
    yield "long_cpu_mean", Reading(statistics.mean(run.took), rounds=rounds)
    plain, tools = statistics.median(run.plain), statistics.median(run.tools)
    yield "long_commits", Reading(plain, rounds=len(run.plain))
    note = f"{tools:g} in a turn with one step: its calls and their results are a record each"
    yield "long_commits_record", Reading((tools - plain) / 2, rounds=len(run.tools), note=note)
    first, last = (size / 1e6 for size in run.resident)
    note = f"{first:.0f} MB after {_EARLY} turns, {last:.0f} MB after {_TURNS}"
    yield "long_memory", Reading(last - first, note=note)


async def _run(path: Path) -> _Run:
    run = _Run([], [], [], [], ())
    provider = Quick(lambda body: answered(body, 2), _WINDOW)
    async with hosted(path, provider) as (host, _):
        conversation = await host.new("bench")
        writes, meter = Writes(), Meter()
        for n in range(_TURNS):
            with_tool = n % 2 == 1
            writes.taken()
            await say(host, conversation, question(n, tool=with_tool))
            run.took.append(meter.milliseconds())
            (run.tools if with_tool else run.plain).append(writes.taken())
            if n in (_EARLY - 1, _TURNS - 1):
                gc.collect()
                run.resident.append(_resident())
                meter.milliseconds()
        assert provider.asked == _TURNS * 3 // 2
        return run._replace(done=tuple(await conversation.compactions()))


def _resident() -> int:
    """Bytes of this process in memory; 0 where nothing says it."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return 0
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


LONG = Job(
    "long",
    long,
    (
        Target(
            "long_compactions", 20, at_least=True, unit="",
            says=f"compactions in {_TURNS} turns, window {_WINDOW:,}",
        ),
        Target(
            "long_cpu_median", 10, "ms",
            says="processor time of a turn without the model, median, every other turn with a tool",
        ),
        Target("long_cpu_p95", None, "ms", says="processor time of 95 % of these turns, at most"),
        Target(
            "long_cpu_mean", None, "ms",
            says="processor time of these turns, mean: compactions spread over all",
        ),
        Target("long_commits", 3, "", says="transactions of a turn without tools"),
        Target("long_commits_record", 1, "", says="transactions of each record of a step"),
        Target("long_memory", 32, "MB", says=f"memory gained from turn {_EARLY} to the last"),
    ),
)  # fmt: skip
