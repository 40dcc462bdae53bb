"""Jobs: groups of targets measured together, each in a process of its own.

A process of its own keeps one measurement's caches, threads and VFS away from the next, and can be
killed when the time of a quick run is used up: what it has read by then counts, the rest is `not
run`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from benchmarks.envs import WORK
from benchmarks.measure import NotRun, Outcome, Reading, Target

AREAS = {
    "store": "store",
    "postgres": "postgres",
    "import": "importing",
    "compaction": "compaction",
    "host": "host",
    "crash": "crash",
}
"""The package below benchmarks of each, with JOBS and the functions of `Area`."""

QUICK_SECONDS = 47.0
"""The command promises to end within 50."""
QUICK_SIZE = 200_000
TIME_IS_UP = "the time of --quick was used up; run without --quick"


@dataclass(frozen=True)
class Bench:
    """What a job is given: the size of the run and a scratch folder."""

    quick: bool
    folder: Path
    wanted: frozenset[str]

    def pick(self, quick: int, full: int) -> int:
        """A number of rounds or messages for this size of run."""
        return quick if self.quick else full

    def path(self, name: str) -> Path:
        """A folder for one store, so that everything in it belongs to that store."""
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder / "clew.db"


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


Readings = Iterable[tuple[str, "Reading | NotRun"]]


@dataclass(frozen=True)
class Job:
    """Yields a reading (or the reason for none) per target, as soon as it has one."""

    name: str
    run: Callable[[Bench], Readings]
    targets: tuple[Target, ...]
    quick: bool = True
    """Whether a quick run includes it."""
    stores: tuple[str, ...] = ()
    """Kept stores that a quick run uses; it does jobs that lack one last."""


class Area(Protocol):
    """What the package of an area offers."""

    JOBS: tuple[Job, ...]

    def running(self) -> AbstractContextManager[object]:
        """What its jobs need besides themselves, while they run."""
        ...

    def facts(self, quick: bool) -> dict[str, str]:
        """What a run of it was made with, besides the machine."""
        ...

    def prepare(self) -> None:
        """Make what a quick run has no time to make; once, at setup."""
        ...

    def forget(self) -> None:
        """Remove what was prepared."""
        ...

    def has(self, store: str) -> bool:
        """Whether this store was prepared."""
        ...


def area_of(name: str) -> Area:
    """The package of an area."""
    return cast(Area, import_module(f"benchmarks.{AREAS[name]}"))


def jobs(area: str) -> tuple[Job, ...]:
    """The jobs of an area, in the order in which a quick run spends its time."""
    return area_of(area).JOBS


def run_area(area: str, quick: bool, only: Sequence[str] = ()) -> list[Outcome]:
    """Run the jobs of an area one after the other; outcomes in the order of the area's list."""
    deadline = time.monotonic() + QUICK_SECONDS if quick else None
    if not quick and not only:
        area_of(area).forget()
    chosen = [job for job in jobs(area) if not only or job.name in only]
    outcomes: dict[str, list[Outcome]] = {}
    for job in sorted(chosen, key=lambda job: not all(map(area_of(area).has, job.stores))):
        started = time.monotonic()
        outcomes[job.name] = _run_job(area, job, quick, deadline)
        say(f"  {job.name}: {time.monotonic() - started:.1f} s")
    return [outcome for job in chosen for outcome in outcomes[job.name]]


def _run_job(area: str, job: Job, quick: bool, deadline: float | None) -> list[Outcome]:
    """Outcomes for all targets of a job, in their order, whatever happens to its process."""
    asked = wanted(job, quick)
    too_big = f"--quick stops at {QUICK_SIZE:,} messages"
    answers: dict[str, Reading | str] = {
        target.name: too_big for target in job.targets if target.name not in asked
    }
    reason = "not part of --quick"
    if asked and (job.quick or not quick):
        left = None if deadline is None else deadline - time.monotonic()
        reason = _in_process(area, job.name, quick, left, answers)
    return [_outcome(target, answers.get(target.name, reason)) for target in job.targets]


def wanted(job: Job, quick: bool) -> frozenset[str]:
    """Names of the targets that a run of this size measures."""
    return frozenset(t.name for t in job.targets if not quick or t.size <= QUICK_SIZE)


def _outcome(target: Target, answer: Reading | str) -> Outcome:
    if isinstance(answer, str):
        return Outcome(target, note=answer)
    return Outcome(target, reading=answer)


def _in_process(
    area: str, name: str, quick: bool, seconds: float | None, answers: dict[str, Reading | str]
) -> str:
    """Run a job's process, filling `answers`; the reason for what stays unanswered."""
    if seconds is not None and seconds < 1:
        return TIME_IS_UP
    WORK.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{area}-{name}-", dir=WORK) as folder:
        command = [sys.executable, "-m", "benchmarks", "job", area, name, folder]
        with limited([*command, *(["--quick"] if quick else [])], seconds) as process:
            assert process.stdout is not None
            for line in process.stdout:
                answer = json.loads(line)
                reading = answer["reading"]
                answers[answer["name"]] = Reading(**reading) if reading else answer["reason"]
            code = process.wait()
    if code == -signal.SIGKILL and seconds is not None:
        return TIME_IS_UP
    if code:
        return f"the job {name} failed (exit {code}); its message is on standard error"
    return f"the job {name} left it out"


@contextmanager
def limited(command: list[str], seconds: float | None) -> Iterator[subprocess.Popen[str]]:
    """A process and all that it starts, killed when its time is up or the block is left."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)

    def kill() -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(seconds or 0, kill)
    if seconds is not None:
        timer.start()
    try:
        yield process
    finally:
        timer.cancel()
        kill()
        process.communicate()


def serve(area: str, name: str, quick: bool, folder: str) -> None:
    """The job's side: run it and print one line per reading."""
    job = next(job for job in jobs(area) if job.name == name)
    bench = Bench(quick, Path(folder), wanted(job, quick))
    for target, answer in _answers(job, bench):
        reading = asdict(answer) if isinstance(answer, Reading) else None
        reason = "" if isinstance(answer, Reading) else str(answer)
        print(json.dumps({"name": target, "reading": reading, "reason": reason}), flush=True)


def _answers(job: Job, bench: Bench) -> Iterator[tuple[str, Reading | NotRun]]:
    """A job's readings; when it gives up as a whole, its reason for every target left."""
    left = dict.fromkeys(target.name for target in job.targets)
    try:
        for name, answer in job.run(bench):
            left.pop(name)
            yield name, answer
    except NotRun as reason:
        for name in left:
            yield name, reason
