"""What the host itself takes of a turn, and whether that grows with the conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from benchmarks import clew_adapter, workload
from benchmarks.host.hosts import Meter, Quick, answered, hosted, question, say
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Interleaved, Reading, Target, percentile

_SIZES = (0, 100, 1_000)
"""Messages that a conversation has when its first turn is measured."""
_GROWN = 10_000
"""The same of one that takes half a minute to be compacted for the first time."""
_SMALL, _LARGE = 16_000, 128_000
"""Windows, in tokens."""
_WARM = 2


def turns(bench: Bench) -> Readings:
    """Turns of a question and an answer, by turns in conversations of each size."""
    samples = asyncio.run(_measured(bench.path("small"), _SMALL, bench.pick(10, 60), _SIZES))
    for size in _SIZES:
        yield f"turn_{size}", _reading(samples, size)
    samples = asyncio.run(_measured(bench.path("large"), _LARGE, bench.pick(4, 20), _SIZES))
    for size in _SIZES:
        yield f"turn_large_{size}", _reading(samples, size)


def grown(bench: Bench) -> Readings:
    """The same in a long conversation, beside a short one."""
    sizes = (_SIZES[1], _GROWN)
    samples = asyncio.run(_measured(bench.path("small"), _SMALL, 60, sizes))
    yield f"turn_{_GROWN}", _reading(samples, _GROWN)
    yield "turn_growth", samples.ratio(str(_GROWN), str(_SIZES[1]), "ms")
    samples = asyncio.run(_measured(bench.path("large"), _LARGE, 20, sizes))
    yield f"turn_large_{_GROWN}", _reading(samples, _GROWN)


def _reading(samples: Interleaved, size: int) -> Reading:
    took = samples.samples[str(size)]
    note = f"95 % within {percentile(took, 0.95):.3g} ms"
    return Reading(samples.median(str(size)), rounds=len(took), note=note)


async def _measured(path: Path, window: int, rounds: int, sizes: Sequence[int]) -> Interleaved:
    """Milliseconds of processor time by size. The first turns of each are not counted: they compact
    what was written beforehand."""
    named = {chat.name: size for size in sizes for chat in workload.w1(1, 0, first=size)}
    clew_adapter.write(path, (each for size in sizes for each in workload.w1(1, size, first=size)))
    samples = Interleaved()
    async with hosted(path, Quick(lambda body: answered(body, 0), window)) as (host, profile):
        rows = (await profile.list(limit=len(sizes))).items
        found = {named[str(row.title)]: await profile.open(row.id) for row in rows}
        for n in range(rounds + _WARM):
            for size in sizes:
                meter = Meter()
                await say(host, found[size], question(n))
                if n >= _WARM:
                    samples.add(str(size), meter.milliseconds())
    return samples


def _small(size: int) -> Target:
    return Target(
        f"turn_{size}", 10, "ms",
        says=f"processor time of a turn, {_called(size)}, window {_SMALL:,}",
    )  # fmt: skip


def _large(size: int) -> Target:
    return Target(
        f"turn_large_{size}", None, "ms",
        says=f"processor time of a turn, {_called(size)}, window {_LARGE:,}",
    )  # fmt: skip


def _called(size: int) -> str:
    return f"{size:,} messages" if size else "a new conversation"


TURN = Job("turn", turns, (*map(_small, _SIZES), *map(_large, _SIZES)))
GROWN = Job(
    "grown",
    grown,
    (
        _small(_GROWN),
        Target(
            "turn_growth", 1.5, "x", sides=(_called(_GROWN), _called(_SIZES[1])),
            says=f"processor time of a turn, {_called(_GROWN)} against {_called(_SIZES[1])}",
        ),
        _large(_GROWN),
    ),
    quick=False,
)  # fmt: skip
