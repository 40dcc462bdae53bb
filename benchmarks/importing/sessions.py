"""Importing one long session, and many small ones."""

from __future__ import annotations

import statistics
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.importing import files
from benchmarks.importing.steps import Step, run
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Reading, Target

_MB = 1_000_000
_FULL = 1_000_000
"""Messages, as a target's size: only of a full run."""


def long(bench: Bench) -> Readings:
    """The long session at 50 MB, or at 100 MB and 1 GB."""
    size = bench.pick(50, 100) * _MB
    with _session(bench, size) as (path, written):
        rounds = [_round(bench, path, number) for number in range(bench.pick(1, 3))]
        speed = statistics.median(written / taken.seconds for taken, _ in rounds) / _MB
        bare = statistics.median(written / taken.seconds for _, taken in rounds) / _MB
        first = rounds[0][0]
        store = bench.path("long-0")
        rows = run("rows", store, bench.path("rows"))
        yield "import_vs_rows", Reading(
            first.seconds / rows.seconds, first.seconds, rows.seconds, "s",
            note=f"{rows.count:,} rows",
        )  # fmt: skip
        yield "import_again", _speed(written, run("import", path, store))
        if bench.quick:
            yield from _promised(written, first, speed, bare, store)
            return
    with _session(bench, 10 * size) as (path, written):
        store = bench.path("long")
        whole = run("import", path, store)
        yield (
            "import_growth",
            Reading(
                written / _MB / whole.seconds / speed, written / _MB / whole.seconds, speed, "MB/s"
            ),
        )
        yield from _promised(written, whole, written / _MB / whole.seconds, bare, store)


def _round(bench: Bench, path: Path, number: int) -> tuple[Step, Step]:
    """An import into a new store, and decoding alone."""
    return run("import", path, bench.path(f"long-{number}")), run("decode", path, path)


def _promised(size: int, taken: Step, speed: float, bare: float, store: Path) -> Readings:
    note = f"{size / _MB:,.0f} MB, {taken.count:,} messages"
    alone = f"{note}; {size / _MB / taken.cpu:.3g} MB for each second of processor time"
    yield "import_long", Reading(speed, speed, bare, "MB/s", note=alone)
    yield "import_long_memory", Reading(taken.memory, note=note)
    indexed = run("index", store, store)
    yield "import_long_searchable", Reading(indexed.seconds, note=note)


def _speed(size: int, taken: Step) -> Reading:
    return Reading(size / _MB / taken.seconds, note=f"{size / _MB:,.0f} MB")


@contextmanager
def _session(bench: Bench, size: int) -> Generator[tuple[Path, int]]:
    """A long session, removed afterwards; its bytes."""
    path = bench.folder / f"session-{size}.jsonl"
    yield path, files.long_session(path, size)
    path.unlink()


def small(bench: Bench) -> Readings:
    """Many sessions of ten records, in folders of a hundred."""
    count = bench.pick(1_000, 10_000)
    folder, store = bench.folder / "sessions", bench.path("small")
    size = files.small_sessions(folder, count)
    taken = run("import", folder, store)
    note = f"{count:,} files, {size / _MB:,.0f} MB"
    alone = f"{note}; {count / taken.cpu:,.0f} files for each second of processor time"
    yield "import_files", Reading(count / taken.seconds, note=alone)
    yield "import_files_memory", Reading(taken.memory, note=note)
    again = run("import", folder, store)
    assert not again.count
    yield "import_files_again", Reading(count / again.seconds, note=note)
    yield "import_files_searchable", Reading(run("index", store, store).seconds, note=note)


LONG = Job(
    "long",
    long,
    (
        Target(
            "import_long", 40, "MB/s", at_least=True, sides=("clew", "decoding the JSON alone"),
            says="import one long Claude Code session on one core",
        ),
        Target("import_long_memory", 200, "MB", says="memory of that process at its most"),
        Target("import_long_searchable", 60, "s", says="until that session can be searched"),
        Target(
            "import_growth", 0.9, "x", at_least=True, sides=("at 1 GB", "at 100 MB"), size=_FULL,
            says="speed at 1 GB, against 100 MB",
        ),
        Target(
            "import_vs_rows", None, "x", sides=("clew", "bare inserts of the same rows"),
            says="import, against writing its rows",
        ),
        Target("import_again", None, "MB/s", says="import the same file again"),
    ),
)  # fmt: skip
SMALL = Job(
    "files",
    small,
    (
        Target(
            "import_files", 1_000, "files/s", at_least=True,
            says="import a folder of small sessions on one core",
        ),
        Target("import_files_memory", 200, "MB", says="memory of that process at its most"),
        Target("import_files_searchable", 60, "s", says="until all of them can be searched"),
        Target("import_files_again", None, "files/s", says="import the same folder again"),
    ),
)  # fmt: skip
