"""The side of steps.py that does the work: `python -m benchmarks.importing.child STEP PATH STORE`
prints one JSON object.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import msgspec

import clew
from benchmarks import clew_adapter
from benchmarks.importing import rows
from benchmarks.importing.steps import Step
from clew.context.tokens import count_text
from clew.importers.bring import import_paths


def _import(path: Path, store: Path) -> tuple[float, int]:
    """Without the search index, which is another process' work while one imports."""
    started = time.perf_counter()
    with clew.open(store) as opened:
        done = import_paths(opened.profile(clew_adapter.PROFILE), path)
    took = time.perf_counter() - started
    wrong = [source.error for source in done.sources if source.error] + [*done.failed]
    assert not wrong, wrong
    assert not done.totals.damaged
    return took, done.totals.messages


def _index(_: Path, store: Path) -> tuple[float, int]:
    started = time.perf_counter()
    clew_adapter.index(store)
    return time.perf_counter() - started, 0


def _decode(path: Path, _: Path) -> tuple[float, int]:
    """The least that any reader does."""
    decode = msgspec.json.Decoder().decode
    started, count = time.perf_counter(), 0
    with path.open("rb") as file:
        for row in file:
            decode(row)
            count += 1
    return time.perf_counter() - started, count


_STEPS: dict[str, Callable[[Path, Path], tuple[float, int]]] = {
    "import": _import,
    "index": _index,
    "decode": _decode,
    "rows": rows.write_again,
}


def main(step: str, path: str, store: str) -> None:
    """On one core. Loading the tokenizer, which takes half a second once, is not part of it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    count_text("")
    before = time.process_time()
    seconds, count = _STEPS[step](Path(path), Path(store))
    cpu = time.process_time() - before
    unit = 1e6 if sys.platform == "darwin" else 1e6 / 1024
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(json.dumps(asdict(Step(seconds, cpu, held, count))))


if __name__ == "__main__":
    main(*sys.argv[1:])
