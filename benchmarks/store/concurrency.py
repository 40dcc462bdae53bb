"""Threads and processes on one file: flushes shared, and nobody waits long or gets less."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

from benchmarks import children, clew_adapter, envs
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Interleaved, NotRun, Reading, Target, percentile

_Together = list[dict[str, Any]]
"""The answers of some processes that ran at the same time."""

# ------------------------------------------------------------------ flushes per message


def flushes(bench: Bench) -> Readings:
    """Real flushes of all files, counted below SQLite, checkpoints included."""
    yield "flushes_one_writer", _flushes(bench, 1, 0, bench.pick(200, 2_000))
    yield "flushes_four_threads", _flushes(bench, 1, 4, bench.pick(300, 2_000))
    yield "flushes_four_processes", _flushes(bench, 4, 16, bench.pick(800, 3_200))


def _flushes(bench: Bench, processes: int, threads: int, messages: int) -> Reading:
    path = bench.path(f"flushes-{processes}-{threads}")
    clew_adapter.create(path, ["first"])
    samples = Interleaved()
    rounds = bench.pick(2, 5)
    each = messages // processes
    with children.several("clew", bench.folder, processes) as remotes:
        children.together(remotes, "open", path=str(path), count_flushes=True)
        for number, remote in enumerate(remotes):
            remote.ask(
                "prepare",
                first=700_000 + 1_000 * number,
                conversations=16,
                messages=4 * (-(-each * (rounds + 1) // 64)),
            )
        for number in range(rounds + 1):
            at = time.time() + 0.1
            answers = children.together(remotes, "append", units=each, at=at, threads=threads)
            _no_errors(answers)
            if number:
                samples.add("flushes", sum(answer["flushes"] for answer in answers))
                samples.add("messages", sum(answer["messages"] for answer in answers))
    return samples.ratio("flushes", "messages", "")


# ------------------------------------------------------------------ four processes


def processes(bench: Bench) -> Readings:
    """One appender in each of four processes on one file, in turns with Hermes."""
    each, rounds = bench.pick(200, 2_000), bench.pick(1, 3)
    note = f"4 x {each:,} appends, {rounds} rounds"
    ours: list[_Together] = []
    theirs: list[_Together] = []
    for number in range(rounds):
        ours.append(_four(bench, "clew", each, number))
        if number == rounds - 1:
            yield from _alone(ours, note)
        if envs.PEERS["hermes"].ready():
            theirs.append(_four(bench, "hermes", each, number))
    children.peer_python("hermes")
    samples = Interleaved()
    for side, runs in (("clew", ours), ("hermes", theirs)):
        for answers in runs:
            samples.add(side, percentile(_latencies(answers), 0.99))
    note += f"; errors of hermes: {_errors(theirs)}"
    yield "four_processes_p99_vs_hermes", samples.ratio("clew", "hermes", "ms", note)


def _alone(runs: Sequence[_Together], note: str) -> Readings:
    """What is promised whatever others do."""
    rounds = len(runs)
    errors = _errors(runs)
    appends = errors + sum(answer["messages"] for answers in runs for answer in answers)
    yield "four_processes_errors", Reading(errors, errors, appends, "appends", rounds, note)
    for answers in runs:
        _no_errors(answers)  # a failed append is quick: no figure below would mean anything
    waits = [wait for answers in runs for wait in _latencies(answers)]
    longest, middle = max(waits), statistics.median(waits)
    yield "four_processes_longest_wait", Reading(longest, longest, middle, "ms", rounds, note)
    shares = sorted((_shares(answers) for answers in runs), key=lambda pair: pair[0] / pair[1])
    least, most = shares[rounds // 2]
    unit = "appends while all ran"
    yield "four_processes_smallest_share", Reading(least / most, least, most, unit, rounds, note)


def _four(bench: Bench, name: str, each: int, number: int) -> _Together:
    """What four processes measured that began at the same moment."""
    path = bench.path(f"four-{name}-{number}")
    with children.several(name, bench.folder, 4) as remotes:
        remotes[0].ask("open", path=str(path))  # alone, so that one of them makes the schema
        children.together(remotes[1:], "open", path=str(path))
        for position, remote in enumerate(remotes):
            first = 800_000 + 10_000 * number + 1_000 * position
            remote.ask("prepare", first=first, conversations=20, messages=max(4, each // 20))
        at = time.time() + 0.3
        answers = children.together(remotes, "append", units=each, at=at)
        children.together(remotes, "close")
    return answers


def _errors(runs: Sequence[_Together]) -> int:
    return sum(len(answer["errors"]) for answers in runs for answer in answers)


def _latencies(answers: _Together) -> list[float]:
    """Milliseconds of all appends."""
    return [seconds * 1e3 for answer in answers for seconds in answer["latencies"]]


def _shares(answers: _Together) -> tuple[int, int]:
    """The smallest and largest number of appends of a process while all four still ran."""
    until = min(answer["ends"][-1] for answer in answers)
    counts = [sum(1 for end in answer["ends"] if end <= until) for answer in answers]
    return min(counts), max(counts)


def _no_errors(answers: _Together) -> None:
    for answer in answers:
        if answer["errors"]:
            raise NotRun(f"an append failed: {answer['errors'][0]}")


FLUSHES = Job(
    "flushes",
    flushes,
    tuple(
        Target(f"flushes_{label}", limit, "per message", sides=("flushes", "messages"), says=says)
        for label, limit, says in (
            ("one_writer", 1.1, "sync calls per message, one writer"),
            ("four_threads", 0.45, "sync calls per message, four threads"),
            ("four_processes", 0.15, "sync calls per message, four processes of 16 threads"),
        )
    ),
)
PROCESSES = Job(
    "processes",
    processes,
    (
        Target(
            "four_processes_errors",
            0,
            "errors",
            sides=("errors", "appends"),
            says="four processes, errors",
        ),
        Target(
            "four_processes_longest_wait",
            50,
            "ms",
            sides=("longest", "median"),
            says="four processes, longest wait of an append",
        ),
        Target(
            "four_processes_smallest_share",
            0.9,
            at_least=True,
            sides=("smallest", "largest"),
            says="four processes, smallest share of the largest",
        ),
        Target(
            "four_processes_p99_vs_hermes",
            0.06,
            sides=("clew", "hermes"),
            says="four processes, p99 of an append",
        ),
    ),
)
