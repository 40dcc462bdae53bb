"""A store in a process of its own, driven by one JSON command a line on standard input.

`python -m benchmarks.child NAME` runs in the environment of the store NAME ("clew" or a peer's).
Peers are kept alive through a run so that their rounds can be interleaved with clew's; several
children on one file are the processes of the concurrency benchmarks.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from benchmarks import envs, workload
from benchmarks.adapters import Adapter, settle

Work = list[tuple[str, list[Any]]]
"""(conversation, native messages) of each append."""


@dataclass
class Tally:
    """What appending measured; latencies and ends are those of appends that succeeded."""

    latencies: list[float] = field(default_factory=list[float])
    ends: list[float] = field(default_factory=list[float])
    errors: list[str] = field(default_factory=list[str])
    messages: int = 0
    payload: int = 0

    def join(self, other: Tally) -> None:
        """Add the figures of another thread."""
        self.latencies += other.latencies
        self.ends += other.ends
        self.errors += other.errors
        self.messages += other.messages
        self.payload += other.payload


class Child:
    """Runs commands on one adapter."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self._work: Work = []
        self._flushes: Any = None

    async def open(self, path: str, count_flushes: bool = False) -> dict[str, Any]:
        """Open the store; counting flushes is possible for clew only."""
        if count_flushes:
            self._flushes = import_module("benchmarks.vfs").FlushVFS()
        await settle(self._adapter.open(path))
        return {"version": self._adapter.version()}

    async def prepare(
        self, first: int, conversations: int, messages: int, unit: int = 1
    ) -> dict[str, Any]:
        """Create conversations of W1 and line their appends up, turn by turn across them."""
        unit = unit if self._adapter.one_by_one else 4
        chats = list(workload.w1(conversations, messages, first))
        for chat in chats:
            await settle(self._adapter.create(chat.name))
        for start in range(0, messages, 4):
            for chat in chats:
                for at in range(start, min(start + 4, messages), unit):
                    group = chat.messages[at : at + unit]
                    self._work.append((chat.name, [self._adapter.native(m) for m in group]))
        payload = sum(workload.payload(m) for chat in chats for m in chat.messages)
        return {"units": len(self._work), "unit": unit, "payload": payload}

    async def append(
        self, units: int, at: float = 0, threads: int = 0, clients: int = 0
    ) -> dict[str, Any]:
        """Append the next units, from the wall-clock time `at` on.

        Threads take turns with the units; clients have conversations of their own.
        """
        taken, self._work = self._work[:units], self._work[units:]
        flushes = self._flushes.count if self._flushes else 0
        time.sleep(max(0.0, at - time.time()))
        cpu, wall = time.process_time(), time.perf_counter()
        if clients:
            tally = await self._by_clients(taken, clients)
        elif threads:
            tally = self._threaded([taken[number::threads] for number in range(threads)])
        else:
            tally = await self._serial(taken)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        return {
            "cpu": cpu,
            "wall": wall,
            "messages": tally.messages,
            "latencies": tally.latencies,
            "ends": tally.ends,
            "errors": tally.errors,
            "flushes": self._flushes.count - flushes if self._flushes else None,
        }

    async def read(self, name: str, calls: int) -> dict[str, Any]:
        """Seconds of each of some reads of a conversation."""
        samples: list[float] = []
        count = 0
        for _ in range(calls):
            started = time.perf_counter()
            count = await settle(self._adapter.read(name))
            samples.append(time.perf_counter() - started)
        return {"seconds": samples, "messages": count}

    async def close(self) -> dict[str, Any]:
        await settle(self._adapter.close())
        return {}

    async def _serial(self, work: Work) -> Tally:
        tally = Tally()
        for name, messages in work:
            started = time.perf_counter()
            try:
                await settle(self._adapter.append(name, messages))
            except Exception as error:  # noqa: BLE001 - a peer may raise anything; all are counted
                tally.errors.append(repr(error)[:300])
                continue
            tally.messages += len(messages)
            tally.latencies.append(time.perf_counter() - started)
            tally.ends.append(time.time())
        return tally

    async def _by_clients(self, work: Work, clients: int) -> Tally:
        """The same from several clients, each with every n-th conversation."""
        names = list(dict.fromkeys(name for name, _ in work))
        owned = (set(names[number::clients]) for number in range(clients))
        shares = [[unit for unit in work if unit[0] in own] for own in owned]
        if not self._adapter.asynchronous:
            return self._threaded(shares)
        return _total(await asyncio.gather(*map(self._serial, shares)))

    def _threaded(self, shares: Sequence[Work]) -> Tally:
        """The same from several threads, each with its share."""
        tallies: list[Tally] = []
        start = threading.Barrier(len(shares))

        def run(share: Work) -> None:
            start.wait()
            tallies.append(asyncio.run(self._serial(share)))

        workers = [threading.Thread(target=run, args=(share,)) for share in shares]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return _total(tallies)


def _total(tallies: Iterable[Tally]) -> Tally:
    total = Tally()
    for tally in tallies:
        total.join(tally)
    return total


def adapter(name: str) -> Adapter:
    """The adapter of a store, from the module that only imports where that store is installed."""
    if name == "clew":
        return import_module("benchmarks.clew_adapter").ClewAdapter()
    return import_module(envs.PEERS[name].adapters).ADAPTERS[name]()


async def serve(child: Child, answer: Callable[[dict[str, Any]], None]) -> None:
    """Answer commands until the input ends."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        command: dict[str, Any] = json.loads(line)
        method = getattr(child, command.pop("do"))
        try:
            answer(await method(**command))
        except Exception as error:  # noqa: BLE001 - reported to the parent, which decides
            answer({"error": f"{type(error).__name__}: {error}"[:1000]})


def main() -> None:
    """Keep standard output for answers: what a peer prints goes to standard error."""
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def answer(fields: dict[str, Any]) -> None:
        channel.write(json.dumps(fields) + "\n")

    asyncio.run(serve(Child(adapter(sys.argv[1])), answer))
    os._exit(0)  # peers leave threads behind that would keep the process


if __name__ == "__main__":
    main()
