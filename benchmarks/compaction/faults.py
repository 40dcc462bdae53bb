"""What tests/simulation checks, a thousand times, and processes that are killed at each step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.envs import ROOT
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Reading, Target

_FOLDER = ROOT / "tests/simulation"
_COUNTS = {
    "faults_lost": ("lost", "doubled"), "faults_forks": ("forks",),
    "faults_findings": ("findings",), "faults_wrong": ("wrong", "broken"),
}  # fmt: skip
_KILLS = ("lost", "findings", "wrong")


def faults(bench: Bench) -> Readings:
    """Runs by seed, in slices, a process for each; then the kills."""
    count, size = bench.pick(30, 1_000), bench.pick(15, 25)
    firsts = range(1, count + 1, size)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        reports = list(pool.map(lambda first: _script("faults", first, first + size - 1), firsts))
    runs = sum(report["runs"] for report in reports)
    happened = _total(reports, "outcomes")
    note = ", ".join(f"{many:,} {state}" for state, many in happened.most_common())
    for name, fields in _COUNTS.items():
        found = sum(report[field] for report in reports for field in fields)
        yield name, Reading(found, rounds=runs, note=note)
    yield "faults_summaries", Reading(sum(_total(reports, "summaries").values()), rounds=runs)
    steps = _script("kills", "steps")
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        killed = list(pool.map(lambda step: _script("kills", "at", step), steps))
    wrong = sum(report[field] for report in killed for field in _KILLS)
    yield "faults_killed", Reading(wrong, rounds=len(killed), note=", ".join(steps))


def _total(reports: list[dict[str, Any]], field: str) -> Counter[str]:
    total: Counter[str] = Counter()
    for report in reports:
        total.update(report[field])
    return total


def _script(name: str, *arguments: object) -> Any:
    command = [sys.executable, str(_FOLDER / f"compaction_{name}.py"), *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    said = json.loads(done.stdout)
    for problem in said["problems"][:3] if isinstance(said, dict) else ():
        print(problem, file=sys.stderr)
    return said


FAULTS = Job(
    "faults",
    faults,
    (
        Target("faults_lost", 0, "messages", says="failures injected: messages lost or doubled"),
        Target("faults_forks", 0, "forks", says="failures injected: conversations that forked"),
        Target("faults_findings", 0, "findings", says="failures injected: findings of verify()"),
        Target("faults_wrong", 0, "contexts", says="failures injected: contexts that are wrong"),
        Target("faults_killed", 0, "findings", says="killed at each step: anything lost or wrong"),
        Target("faults_summaries", None, "", says="failures injected: summaries asked for"),
    ),
)  # fmt: skip
