"""Opening a store, and the whole process of `clew list`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import clew
from benchmarks import children, clew_adapter, envs, floor, peers, workload
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Target, interleave

_FIRST = "SELECT id, title_user FROM conversation ORDER BY active_at DESC LIMIT 1"
_CLI = "import sys; from clew.cli.main import main; sys.exit(main())"
"""What the installed command runs; works in a checkout too."""


def opening(bench: Bench) -> Readings:
    """Open a cleanly closed store, read its newest conversation, in a process that runs already."""
    path = bench.path("open")
    clew_adapter.write(path, workload.w1(20))

    def ours() -> float:
        started = time.perf_counter()
        store = clew.open(path)
        found = store.profile(clew_adapter.PROFILE).list(limit=1)
        took = time.perf_counter() - started
        assert found.items
        store.close()
        return took * 1e3

    def bare() -> float:
        started = time.perf_counter()
        under = floor.Floor(path)
        under.rows(_FIRST)
        took = time.perf_counter() - started
        under.close()
        return took * 1e3

    samples = interleave(bench.pick(11, 51), {"clew": ours, "floor": bare})
    yield "open_first_read", samples.plain("clew", "floor", "ms")


def listing(bench: Bench) -> Readings:
    """`clew list` from start to end against the import of Hermes' store."""
    path = bench.path("cli")
    clew_adapter.write(path, workload.w1(60, 4))
    hermes = str(children.peer_python("hermes"))
    home = bench.folder / "hermes-home"
    home.mkdir()
    ours = {**os.environ, "CLEW_STORE": str(path), "CLEW_PROFILE": clew_adapter.PROFILE}
    plain = peers.environment(home)
    del plain[envs.SWITCH]  # it would cost Hermes an import
    sides = {
        "clew": lambda: _process([sys.executable, "-c", _CLI, "list"], ours),
        "hermes": lambda: _process([hermes, "-c", "from hermes_state import SessionDB"], plain),
    }
    for side in sides.values():
        side()  # compiles and warms the file cache
    samples = interleave(bench.pick(3, 11), sides)
    yield "cli_list_vs_hermes_import", samples.ratio("clew", "hermes", "ms")


def _process(command: list[str], environment: Mapping[str, str]) -> float:
    """Milliseconds of a process from start to end."""
    started = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    took = time.perf_counter() - started
    if done.returncode or (command[-1] == "list" and not done.stdout):
        raise RuntimeError(f"{Path(command[0]).name} {command[-1]}: {done.stderr[-500:]}")
    return took * 1e3


OPEN = Job(
    "open",
    opening,
    (Target("open_first_read", 1.0, "ms", says="open a clean store and read once"),),
)
CLI = Job(
    "cli",
    listing,
    (
        Target(
            "cli_list_vs_hermes_import",
            0.4,
            sides=("clew", "hermes"),
            says="`clew list` as a process, against importing Hermes' store",
        ),
    ),
)
