"""What asyncio costs: turns at 200 a second through clew.aio and by plain calls of one thread.

A turn begins with a question and is finished with an answer: two units of work. Both sides open the
same store and take turns on conversations of their own, at the same pace.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import clew
import clew.aio
from benchmarks import clew_adapter, workload
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Interleaved, Reading, Target, percentile
from benchmarks.postgres import floor, server

_PACE = 200
_CONVERSATIONS = 20
_SIDES = ("clew.aio", "clew")


@dataclass
class _Round:
    """What a round of one side measured."""

    cpu: float = 0.0
    wall: float = 0.0
    turns: list[float] = field(default_factory=list[float])

    def add_to(self, samples: Interleaved, side: str) -> None:
        count = len(self.turns)
        samples.add(f"{side} cpu", self.cpu / count * 1e6)
        samples.add(f"{side} p50", percentile(self.turns, 0.50) * 1e3)
        samples.add(f"{side} p99", percentile(self.turns, 0.99) * 1e3)
        samples.add(f"{side} pace", count / self.wall)


def facade(bench: Bench) -> Readings:
    """Latency is that of a whole turn, from its own start; CPU that of this process."""
    turns, rounds = bench.pick(80, 400), bench.pick(3, 7)
    url = server.create("facade")
    names = [f"{side} {number}" for side in _SIDES for number in range(_CONVERSATIONS)]
    clew_adapter.create(url, names)
    messages = next(workload.w1(1, 4)).messages
    question = clew.user(messages[0]["content"])
    answer = clew.assistant(messages[3]["content"])
    samples = asyncio.run(_rounds(url, question, answer, turns, rounds))
    server.drop("facade")
    paced = " and ".join(f"{samples.median(f'{side} pace'):.0f}" for side in _SIDES)
    extra = samples.median("clew.aio cpu") - samples.median("clew cpu")
    note = f"{paced} turns/s reached; {extra:.0f} µs of CPU more per turn"
    yield "pg_aio_cpu", _ratio(samples, "cpu", "µs of CPU per turn", note)
    yield "pg_aio_p50", _ratio(samples, "p50", "ms per turn", "")
    yield "pg_aio_p99", _ratio(samples, "p99", "ms per turn", "")


async def _rounds(
    url: str, question: clew.Draft, answer: clew.Draft, turns: int, rounds: int
) -> Interleaved:
    samples = Interleaved()
    ids = floor.ids(url)
    with clew.open(url) as plain:
        async with clew.aio.open(url) as store:
            profile = plain.profile(clew_adapter.PROFILE)
            async_profile = store.profile(clew_adapter.PROFILE)
            spots = range(_CONVERSATIONS)
            ours = [profile.open(ids[f"clew {spot}"]) for spot in spots]
            theirs = [await async_profile.open(ids[f"clew.aio {spot}"]) for spot in spots]

            def turn(number: int) -> None:
                handle = ours[number].begin_turn([question])
                assert not isinstance(handle, clew.TurnKnown | clew.TurnQueued)
                handle.finish([answer])

            async def async_turn(number: int) -> None:
                handle = await theirs[number].begin_turn([question])
                assert not isinstance(handle, clew.TurnKnown | clew.TurnQueued)
                await handle.finish([answer])

            for number in range(rounds + 1):
                for side in _SIDES if number % 2 else reversed(_SIDES):
                    waits = side == "clew.aio"
                    made = await _awaited(async_turn, turns) if waits else _called(turn, turns)
                    if number:
                        made.add_to(samples, side)
    return samples


def _called(turn: Callable[[int], None], turns: int) -> _Round:
    """One turn after the other, each when it is due or as soon as the one before has ended."""
    made = _Round()
    cpu, started = time.process_time(), time.perf_counter()
    for number in range(turns):
        time.sleep(max(0.0, started + number / _PACE - time.perf_counter()))
        began = time.perf_counter()
        turn(number % _CONVERSATIONS)
        made.turns.append(time.perf_counter() - began)
    made.wall, made.cpu = time.perf_counter() - started, time.process_time() - cpu
    return made


async def _awaited(turn: Callable[[int], Awaitable[None]], turns: int) -> _Round:
    """The same on the event loop."""
    made = _Round()
    cpu, started = time.process_time(), time.perf_counter()
    for number in range(turns):
        await asyncio.sleep(max(0.0, started + number / _PACE - time.perf_counter()))
        began = time.perf_counter()
        await turn(number % _CONVERSATIONS)
        made.turns.append(time.perf_counter() - began)
    made.wall, made.cpu = time.perf_counter() - started, time.process_time() - cpu
    return made


def _ratio(samples: Interleaved, figure: str, unit: str, note: str) -> Reading:
    return samples.ratio(f"clew.aio {figure}", f"clew {figure}", unit, note)


FACADE = Job(
    "facade",
    facade,
    tuple(
        Target(f"pg_aio_{figure}", None, sides=_SIDES, says=f"{_PACE} turns/s with asyncio, {says}")
        for figure, says in (
            ("cpu", "CPU of a turn"),
            ("p50", "median latency of a turn"),
            ("p99", "p99 latency of a turn"),
        )
    ),
)
