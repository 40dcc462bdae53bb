"""64 asyncio appenders, one message per append, FULL, against the bare group commit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import clew.aio
from benchmarks import clew_adapter, floor, stores, workload
from benchmarks.clew_adapter import ClewAdapter
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Interleaved, Reading, Target
from benchmarks.vfs import FlushVFS

_APPENDERS = 64
_FLUSH_SECONDS = 0.004
_BARE = "bare group commit"

Appender = Callable[[str, int, int], Awaitable[None]]
"""Appends the messages from..to of the conversation of this name, one after the other."""


def appenders(bench: Bench) -> Readings:
    """On the disk as it is, then with flushes that take 4 ms on both sides."""
    yield "async_appenders", _measure(bench, "disk", None)
    yield "async_appenders_flush_4ms", _measure(bench, "4ms", FlushVFS(_FLUSH_SECONDS))


def _measure(bench: Bench, label: str, vfs: FlushVFS | None) -> Reading:
    each, rounds = bench.pick(12, 15), bench.pick(3, 9)
    chats = list(workload.w1(_APPENDERS, each * (rounds + 1), first=600_000))
    rows = stores.rows_of(bench, f"{label}-rows", chats)
    path, bare = bench.path(f"{label}-clew"), bench.path(f"{label}-floor")
    clew_adapter.create(path, [chat.name for chat in chats])
    floor.clone(path, bare)

    async def run() -> Interleaved:
        under = floor.Floor(bare)
        group = floor.GroupCommit(under)
        async with clew.aio.open(path) as store:
            sides = {"clew": await _ours(store, chats), _BARE: _theirs(group, under, rows)}
            samples = await _interleave(sides, [c.name for c in chats], each, rounds, vfs)
        group.close()
        under.close()
        return samples

    samples = asyncio.run(run())
    note = ""
    if vfs is not None:
        batches = {side: samples.median(f"{side} batch") for side in ("clew", _BARE)}
        note = ", ".join(f"{side}: {size:.0f} messages per flush" for side, size in batches.items())
    return samples.ratio("clew", _BARE, "messages/s", note)


async def _ours(store: clew.aio.AsyncStore, chats: list[workload.Chat]) -> Appender:
    profile = store.profile(clew_adapter.PROFILE)
    page = await profile.list(limit=_APPENDERS)
    handles = {str(info.title): await profile.open(info.id) for info in page.items}
    native = ClewAdapter().native
    drafts = {chat.name: [native(message) for message in chat.messages] for chat in chats}

    async def append(name: str, low: int, high: int) -> None:
        handle = handles[name]
        for draft in drafts[name][low:high]:
            await handle.append([draft])

    return append


def _theirs(
    group: floor.GroupCommit, under: floor.Floor, rows: dict[str, list[floor.Append]]
) -> Appender:
    numbers = under.numbers()

    async def append(name: str, low: int, high: int) -> None:
        number = numbers[name]
        for row in rows[name][low:high]:
            await group.append(row, number)

    return append


async def _interleave(
    sides: dict[str, Appender], names: list[str], each: int, rounds: int, vfs: FlushVFS | None
) -> Interleaved:
    """Messages per second of both sides in turns; the first round warms up."""
    samples = Interleaved()
    for number in range(rounds + 1):
        low, high = number * each, (number + 1) * each
        for side, append in sides.items() if number % 2 else reversed(sides.items()):
            count = len(names) * each
            flushed = vfs.count if vfs else 0
            started = time.perf_counter()
            await asyncio.gather(*(append(name, low, high) for name in names))
            took = time.perf_counter() - started
            if number:
                samples.add(side, count / took)
                if vfs:
                    samples.add(f"{side} batch", count / (vfs.count - flushed))
    return samples


_SIDES = ("clew", _BARE)

ASYNC = Job(
    "async",
    appenders,
    (
        Target(
            "async_appenders",
            0.6,
            at_least=True,
            sides=_SIDES,
            says="64 asyncio appenders, messages per second",
        ),
        Target(
            "async_appenders_flush_4ms",
            0.75,
            at_least=True,
            sides=_SIDES,
            says="64 asyncio appenders, messages per second, each flush takes 4 ms",
        ),
    ),
)
