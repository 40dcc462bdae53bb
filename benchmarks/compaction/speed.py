"""Writing a ledger epoch: milliseconds for 1 MB of conversation, and how it grows to 10 MB."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

from benchmarks.compaction import histories
from benchmarks.compaction.ledger import messages_of
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Reading, Target, interleave
from clew.compaction.ledger import write_epoch
from clew.domain.messages import Message
from clew.domain.parts import ToolCall, ToolResult, result_text

_MB = 1_000_000
_ROOM = 16_000
_FULL = 1_000_000
"""Messages, as a target's size: only of a full run."""


def speed(bench: Bench) -> Readings:
    """The same kind of conversation at both sizes, into the same room, decoded beforehand."""
    small = _conversation(_MB)
    wall: list[float] = []
    cpu: list[float] = []
    for _ in range(bench.pick(5, 15)):
        started = time.process_time()
        wall.append(_milliseconds(small))
        cpu.append((time.process_time() - started) * 1e3)
    note = f"{len(small):,} messages; {statistics.median(cpu):.3g} ms of processor time"
    yield "ledger_1_mb", Reading(statistics.median(wall), rounds=len(wall), note=note)
    if "ledger_growth" in bench.wanted:
        large = _conversation(10 * _MB)
        sides = {"10 MB": lambda: _milliseconds(large), "1 MB": lambda: _milliseconds(small)}
        note = f"{len(large):,} and {len(small):,} messages"
        yield "ledger_growth", interleave(5, sides).ratio("10 MB", "1 MB", "ms", note)


def _milliseconds(messages: Sequence[Message]) -> float:
    started = time.perf_counter()
    write_epoch((), messages, number=1, room=_ROOM, count=len)
    return (time.perf_counter() - started) * 1e3


def _conversation(size: int) -> list[Message]:
    """Generated histories one after the other, up to `size` characters of text."""
    found: list[Message] = []
    written = 0
    for seed in range(1, 1_000):
        for message in messages_of(histories.history(seed, 600).chat, len(found) + 1):
            if written >= size:
                return found
            found.append(message)
            written += _characters(message)
    raise AssertionError("the histories are too short")


def _characters(message: Message) -> int:
    return len(message.text) + sum(
        len(part.arguments) if isinstance(part, ToolCall) else len(result_text(part))
        for part in message.parts
        if isinstance(part, ToolCall | ToolResult)
    )


SPEED = Job(
    "ledger-speed",
    speed,
    (
        Target("ledger_1_mb", 300, "ms", says="write the ledger of 1 MB of conversation"),
        Target(
            "ledger_growth", 12, "x", sides=("10 MB", "1 MB"), size=_FULL,
            says="the ledger of 10 MB, against 1 MB",
        ),
    ),
)  # fmt: skip
