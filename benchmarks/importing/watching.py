"""`clew import --watch` as a process: how soon a line is in the store, and what waiting costs."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import psutil

import clew
from benchmarks import clew_adapter, envs
from benchmarks.importing import files
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import NotRun, Reading, Target

_CLI = "import sys; from clew.cli.main import main; sys.exit(main())"
_IDLE = (5, 20)
"""Seconds of a quick and a full run."""
_LONGEST = 60.0


def watching(bench: Bench) -> Readings:
    """A folder of small sessions and a long one: idle, then a line at a time."""
    count, size = bench.pick(200, 1_000), bench.pick(20, 100) * 1_000_000
    folder, store = bench.folder / "sessions", bench.path("watch")
    files.small_sessions(folder, count)
    long = folder / "long.jsonl"
    written = files.long_session(long, size)
    small = next(path for path in sorted(folder.rglob("*.jsonl")) if path != long)
    note = f"{count:,} sessions and one of {written / 1e6:,.0f} MB"
    with _watch(folder, store) as process, clew.open(store) as opened:
        profile = opened.profile(clew_adapter.PROFILE)
        wait(lambda: opened.profiles() and _is_calm(process))
        before, idle = _cpu(process), bench.pick(*_IDLE)
        time.sleep(idle)
        yield "watch_idle", Reading((_cpu(process) - before) / idle * 100, note=note)
        for name, path in (("watch_small", small), ("watch_long", long)):
            waits = [_until_stored(profile, path, n) for n in range(bench.pick(8, 30))]
            median = statistics.median(waits[1:])
            yield name, Reading(median, median, waits[0], "s", rounds=len(waits), note=note)


def _until_stored(profile: clew.Profile, path: Path, number: int) -> float:
    """Seconds from writing a line until a reader of the store sees it."""
    mark = profile.mark()
    record = {
        "type": "user", "uuid": f"{number:08x}-0000-4000-8000-{abs(hash(path)) % 16**12:012x}",
        "parentUuid": None, "sessionId": path.stem, "isSidechain": False,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "message": {"role": "user", "content": f"line {number}"},
    }  # fmt: skip
    started = time.perf_counter()
    with path.open("a") as stream:
        stream.write(json.dumps(record) + "\n")
    wait(lambda: profile.mark() != mark)
    return time.perf_counter() - started


@contextmanager
def _watch(folder: Path, store: Path) -> Generator[psutil.Process, None, None]:
    command = [
        sys.executable, "-c", _CLI, "--store", str(store), "--profile", clew_adapter.PROFILE,
        "import", "--watch", "--no-index", str(folder),
    ]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=envs.ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.communicate()


def _is_calm(process: psutil.Process) -> bool:
    """Whether the first pass is over: two seconds with hardly any work."""
    before = _cpu(process)
    time.sleep(2)
    return _cpu(process) - before < 0.05


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def wait(condition: Callable[[], object]) -> None:
    """Until something is so."""
    end = time.monotonic() + _LONGEST
    while not condition():
        if time.monotonic() > end:
            raise NotRun(f"nothing came within {_LONGEST:.0f} s")
        time.sleep(0.005)


_SIDES = ("later ones", "the first")
WATCH = Job(
    "watch",
    watching,
    (
        Target("watch_idle", 0.5, "%", says="processor time of a watch while nothing happens"),
        Target(
            "watch_small", 1, "s", sides=_SIDES,
            says="from writing a line to a small session until the store has it",
        ),
        Target(
            "watch_long", 1, "s", sides=_SIDES,
            says="from writing a line to the long session until the store has it",
        ),
    ),
)  # fmt: skip
