"""What a benchmark measures with: targets, readings, interleaved rounds, CPU and percentiles.

A reading is one side against the other, measured in the same run in interleaved rounds, so both
share the machine's mood; its value is the ratio of the two medians. A limit in milliseconds has a
raw figure as its value and the floor's as the other side.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

Rounds = Sequence[float]


@dataclass(frozen=True)
class Target:
    """A promise: the value is at most (or at least) the limit. No limit: a mere comparison."""

    name: str
    limit: float | None
    unit: str = "x"
    at_least: bool = False
    sides: tuple[str, str] = ("clew", "floor")
    size: int = 0
    """Messages (or conversations) in the store; above 200,000 it is not run by --quick."""
    says: str = ""

    def met(self, value: float) -> bool:
        if self.limit is None:
            return True
        return value >= self.limit if self.at_least else value <= self.limit


@dataclass(frozen=True)
class Reading:
    """A measured value and both sides of it, in `side_unit`."""

    value: float
    left: float | None = None
    right: float | None = None
    side_unit: str = ""
    rounds: int = 1
    note: str = ""


@dataclass(frozen=True)
class Outcome:
    """A target with its reading, or with the reason why there is none."""

    target: Target
    reading: Reading | None = None
    note: str = ""

    @property
    def ok(self) -> bool:
        return self.reading is not None and self.target.met(self.reading.value)

    def as_json(self) -> dict[str, object]:
        """The shape that --json promises; both sides come along."""
        fields: dict[str, object] = {
            "value": None,
            "target": self.target.limit,
            "ok": self.ok,
            "unit": self.target.unit,
            "at_least": self.target.at_least,
        }
        if self.reading is None:
            return {**fields, "note": NOT_RUN, "reason": self.note}
        reading = self.reading
        fields["value"] = significant(reading.value)
        if reading.left is not None:
            fields["sides"] = {
                self.target.sides[0]: significant(reading.left),
                self.target.sides[1]: None if reading.right is None else significant(reading.right),
                "unit": reading.side_unit,
            }
        if reading.note:
            fields["note"] = reading.note
        return fields


NOT_RUN = "not run"


class NotRun(Exception):
    """A measurement cannot be made here; the text says why and what to do."""


@dataclass
class Interleaved:
    """Samples of several sides, taken in turns."""

    samples: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def add(self, side: str, value: float) -> None:
        self.samples.setdefault(side, []).append(value)

    def median(self, side: str) -> float:
        return statistics.median(self.samples[side])

    def ratio(self, left: str, right: str, side_unit: str, note: str = "") -> Reading:
        """The ratio of the medians of two sides."""
        above, below = self.median(left), self.median(right)
        rounds = min(len(self.samples[left]), len(self.samples[right]))
        return Reading(above / below, above, below, side_unit, rounds, note)

    def plain(self, left: str, right: str | None, side_unit: str, note: str = "") -> Reading:
        """The median of the left side itself, with the other side for comparison."""
        other = None if right is None else self.median(right)
        above = self.median(left)
        return Reading(above, above, other, side_unit, len(self.samples[left]), note)


def interleave(rounds: int, sides: dict[str, Callable[[], float]]) -> Interleaved:
    """Run every side once per round; each returns its sample. The order turns round by round."""
    result = Interleaved()
    names = list(sides)
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):
            gc.collect()
            result.add(name, sides[name]())
    return result


@dataclass
class Span:
    """Seconds that passed, on the wall and on the processor (all threads of this process)."""

    wall: float = 0.0
    cpu: float = 0.0


@contextmanager
def timed() -> Iterator[Span]:
    """Measure a block; the span is filled when the block ends."""
    span = Span()
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        yield span
    finally:
        span.wall, span.cpu = time.perf_counter() - wall, time.process_time() - cpu


def typical(calls: int, action: Callable[[], object]) -> float:
    """Seconds of the median of some calls: one sample of a quick operation."""
    samples: list[float] = []
    for _ in range(calls):
        started = time.perf_counter()
        action()
        samples.append(time.perf_counter() - started)
    return statistics.median(samples)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def file_bytes(*paths: str | os.PathLike[str]) -> int:
    """Bytes of files and of the journals beside them, by stat only."""
    total = 0
    for path in paths:
        for suffix in ("", "-wal", "-journal"):
            try:
                total += os.stat(f"{os.fspath(path)}{suffix}").st_size
            except FileNotFoundError:
                continue
    return total


def significant(value: float) -> float:
    """Four significant digits: more would be noise."""
    return float(f"{value:.4g}")
