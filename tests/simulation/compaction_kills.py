"""Processes that compact a conversation and are killed at a step of it.

python compaction_kills.py steps           # the names of the steps, as a list
python compaction_kills.py at STEP...      # a process killed at each; prints one JSON object
python compaction_kills.py die STORE CONVERSATION STEP
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from compaction_faults import BUDGET, MEMORY, Report, good

import clew
from clew.compaction.engine import Compactor
from clew.compaction.summarize import SummaryRequest


def _grown_texts() -> Iterator[str]:
    for at in range(90):
        yield f"message {at} " + "words " * 45


def grown(path: Path) -> str:
    """A new store with a conversation that was compacted once and has grown again; its id."""
    drafts = [(clew.user, clew.assistant)[at % 2](text) for at, text in enumerate(_grown_texts())]
    with clew.open(path) as store:
        conv = store.profile("me").create()
        conv.append(drafts[:50])
        assert Compactor(BUDGET).compact(conv).state == "committed"
        conv.append(drafts[50:])
        return conv.id


def steps() -> list[str]:
    """The names of all steps of a compaction with a summary, in order; the second of a name is
    name#2."""
    seen: list[str] = []
    folder = Path(tempfile.mkdtemp())
    try:
        id = grown(folder / "clew.db")
        with clew.open(folder / "clew.db") as store:
            _compactor(seen.append).compact(store.profile("me").open(id))
    finally:
        shutil.rmtree(folder)
    met: Counter[str] = Counter()
    named: list[str] = []
    for name in seen:
        met[name] += 1
        named.append(f"{name}#{met[name]}")
    return named


class _Good:
    """A summariser that works."""

    model = "stub"

    def __call__(self, request: SummaryRequest) -> str:
        return good(request)


def _compactor(watch: Callable[[str], None]) -> Compactor:
    return Compactor(BUDGET, summarizer=_Good(), watch=watch)


def die(path: Path, id: str, step: str) -> None:
    """Compact and be killed at that step; the n-th of a name is written name#n."""
    name, _, number = step.partition("#")
    left = int(number or 1)

    def watch(at: str) -> None:
        nonlocal left
        left -= at == name
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    with clew.open(path) as store:
        _compactor(watch).compact(store.profile("me").open(id))


def kill_at(step: str, report: Report) -> None:
    """A process that compacts and dies at that step. The log is whole afterwards, the context one
    of before or after, and the next attempt comes to its end."""
    folder = Path(tempfile.mkdtemp(dir=MEMORY))
    path = folder / "clew.db"
    id = grown(path)
    command = [sys.executable, __file__, "die", str(path), id, step]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with clew.open(path) as store:
        conv = store.profile("me").open(id)
        report.runs += 1
        report.lost += [m.text for m in conv.messages()] != list(_grown_texts())
        context = Compactor(BUDGET).context(conv)
        shown = json.dumps(context.chat(conv.blob))
        report.wrong += context.tokens > context.limit
        report.wrong += not all(text in shown for text in list(_grown_texts())[-2:])
        report.outcomes[Compactor(BUDGET).compact(conv).state] += 1
        findings = store.verify()
        report.findings += len(findings)
        report.problems += [f"killed at {step}: {finding}" for finding in findings]
    shutil.rmtree(folder)


def main() -> None:
    command, *rest = sys.argv[1:]
    if command == "die":
        die(Path(rest[0]), rest[1], rest[2])
    elif command == "steps":
        print(json.dumps(steps()))
    else:
        report = Report()
        for step in rest:
            kill_at(step, report)
        print(report.to_json())


if __name__ == "__main__":
    main()
