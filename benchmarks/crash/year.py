"""A year of a busy assistant: how much the files hold beyond what is retained, and how long a write
waits.

The clock is the year's; the disk and the waiting are real. Each day brings conversations that
machines had (cron, sub-agents), which retention takes after its windows, and those of a person,
which stay, and which are compacted; then a day's maintenance (`Store.maintain`), while another
thread goes on writing.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import apsw

import clew
from benchmarks.jobs import QUICK_SIZE, Bench, Job, Readings
from benchmarks.measure import Reading, Target, file_bytes, percentile
from benchmarks.workload import Writer
from clew.testing.clock import FakeClock

_SIZES = (10_000, 100_000, 1_000_000)
_DAYS = 365
_DAY = 86_400_000_000
_MONTH = 30
_TURN = 8
"""Messages of a turn, stored at once."""
_MACHINE = 48
"""Messages of a conversation that a machine had."""
_PERSON = 0.25
"""The share of all messages that a person's conversations have."""
_BEHIND = 0.02
"""The share of a day's messages that another thread writes, one by one, during its maintenance."""


@dataclass
class _Year:
    """The assistant, and what was seen of its writes."""

    path: Path
    messages: int
    clock: FakeClock = field(default_factory=FakeClock)
    rng: random.Random = field(default_factory=lambda: random.Random(7))
    waits: list[float] = field(default_factory=list[float])
    """Seconds of each append."""
    written: int = 0

    def __post_init__(self) -> None:
        writer = Writer(7)
        self.texts = [writer.text(600) for _ in range(400)]

    def run(self, store: clew.Store, at_day: Callable[[int], None]) -> None:
        """All days. `at_day` is told of each after its maintenance."""
        person = store.profile("assistant").create(id="person", source="cli")
        for day in range(_DAYS):
            until = self.messages * (day + 1) // _DAYS
            own = int((until - self.written) * _PERSON)
            while own > 0:
                own -= self._turn(person)
            while self.written < until:
                self._machine(store, day)
            if day % 7 == 6:
                _compact(person)
                store.profile("assistant").search("session OR context")
            self._maintain(store)
            at_day(day)
            self.clock.advance(_DAY)

    def _machine(self, store: clew.Store, day: int) -> None:
        source = self.rng.choice(("cron", "subagent"))
        conv = store.profile("assistant").create(source=source, title=f"{source} of day {day}")
        for _ in range(_MACHINE // _TURN):
            self._turn(conv)

    def _turn(self, conv: clew.Conversation, size: int = _TURN) -> int:
        drafts = [
            (clew.user, clew.assistant)[n % 2](f"{self.written + n} {self.rng.choice(self.texts)}")
            for n in range(size)
        ]
        started = perf_counter()
        conv.append(drafts)
        self.waits.append(perf_counter() - started)
        self.written += size
        return size

    def _maintain(self, store: clew.Store) -> None:
        """The maintenance of a day, and a person who writes meanwhile."""
        other = store.profile("assistant").create(source="cli")

        def write() -> None:
            for _ in range(max(2, int(self.messages / _DAYS * _BEHIND))):
                self._turn(other, 1)

        thread = threading.Thread(target=write)
        thread.start()
        store.maintain()
        thread.join()


def _compact(conv: clew.Conversation) -> None:
    body = (clew.Inline(clew.Role.USER, (clew.Text("What was said so far. " * 100),)),)
    head = conv.info().head
    plan = clew.Proposal(covers_to=head - _TURN, body=body, tokens_before=1_000, tokens_after=500)
    conv.commit_attempt(conv.open_attempt().number, plan)


def _excess(path: Path) -> float:
    """The file of the log, once its WAL is in it, against a fresh copy of what it holds."""
    copy = path.with_name("fresh.db")
    connection = apsw.Connection(str(path))
    connection.wal_checkpoint()
    connection.execute("VACUUM INTO ?", (str(copy),)).fetchall()
    connection.close()
    fresh = file_bytes(copy)
    copy.unlink()
    return path.stat().st_size / fresh


def _search_excess(path: Path) -> float:
    """The search file against one that is filled anew."""
    search = path.with_name(path.name + ".search")
    before = search.stat().st_size
    with clew.open(path) as store:
        store.search_index.discard()
        store.search_index.catch_up()
    return before / search.stat().st_size


def year(bench: Bench) -> Readings:
    """A year of each size, one after the other."""
    for messages in _SIZES[: bench.pick(1, len(_SIZES))]:
        yield from _grown(bench, messages)


def _grown(bench: Bench, messages: int) -> Readings:
    path = bench.path(f"year{messages}")
    run, excess = _Year(path, messages), list[float]()

    def look(day: int) -> None:
        if day % _MONTH == _MONTH - 1:
            excess.append(_excess(path))

    started = perf_counter()
    with clew.open(path, clock=run.clock) as store:
        run.run(store, look)
    seconds = perf_counter() - started
    size, waits = file_bytes(path), sorted(run.waits)
    with clew.open(path) as store:
        stats = store.profile("assistant").stats()
    note = (
        f"{size / 1e6:,.0f} MB; {run.written:,} written, {stats.messages:,} kept; {seconds:,.0f} s"
    )
    yield f"year_size_{messages}", Reading(max(excess), rounds=len(excess), note=note)
    yield f"year_search_{messages}", Reading(_search_excess(path))
    tail = f"p99.9 {percentile(waits, 0.999) * 1e3:.1f} ms, {len(waits):,} writes"
    yield f"year_wait_{messages}", Reading(waits[-1] * 1e3, rounds=len(waits), note=tail)


def _size(messages: int) -> int:
    """Only the smallest belongs to a quick run."""
    return messages if messages <= _SIZES[0] else max(messages, QUICK_SIZE + 1)


def _targets(messages: int) -> tuple[Target, ...]:
    said = f"a year of {messages:,} messages"
    return (
        Target(
            f"year_size_{messages}", 1.2, "x", sides=("file", "fresh copy"), size=_size(messages),
            says=f"{said}: the file against a fresh copy of what is retained",
        ),
        Target(
            f"year_search_{messages}", None, "x", sides=("file", "made anew"), size=_size(messages),
            says=f"{said}: the search file against one made anew",
        ),
        Target(
            f"year_wait_{messages}", 1_000, "ms", size=_size(messages),
            says=f"{said}: the longest that a write took",
        ),
    )  # fmt: skip


YEAR = Job("year", year, tuple(t for n in _SIZES for t in _targets(n)))
