"""From `clew chat` to its prompt, on a terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from benchmarks import clew_adapter, workload
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Target, interleave

_CLI = "import sys; from clew.cli.main import main; sys.exit(main())"
"""What the installed command runs; works in a checkout too."""
_PROMPT = b"> "
_PATIENCE = 30.0
_KEPT = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TMPDIR")


def start(bench: Bench) -> Readings:
    """Each started by turns: the chat until its prompt is drawn, the others to their end."""
    path = bench.path("start")
    clew_adapter.write(path, workload.w1(20))
    environment = _environment(bench.folder, path)
    python = [sys.executable, "-c"]
    sides = {
        "chat": lambda: to_prompt([*python, _CLI, "chat"], environment),
        "python": lambda: _to_end([*python, "pass"], environment),
        "list": lambda: _to_end([*python, _CLI, "list"], environment),
    }
    for side in sides.values():
        side()  # compiles and warms the file cache
    samples = interleave(bench.pick(5, 10), sides)
    yield "start_prompt", samples.plain("chat", "python", "ms")
    yield "start_vs_list", samples.ratio("chat", "list", "ms")


def _environment(folder: Path, store: Path) -> dict[str, str]:
    """No key, no configuration, a store that is there."""
    home = folder / "home"
    home.mkdir()
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {
        **kept, "HOME": str(home), "CLEW_HOME": str(home), "CLEW_STORE": str(store),
        "CLEW_PROFILE": clew_adapter.PROFILE, "TERM": "xterm-256color",
    }  # fmt: skip


def to_prompt(command: list[str], environment: Mapping[str, str]) -> float:
    """Milliseconds from the start of a process to its prompt, on a terminal of its own."""
    master, slave = pty.openpty()
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    )
    os.close(slave)
    try:
        return (_drawn(master, started + _PATIENCE) - started) * 1e3
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(master)


def _drawn(master: int, until: float) -> float:
    """When the prompt was there."""
    shown = b""
    while _PROMPT not in shown:
        ready, _, _ = select.select([master], [], [], max(0.0, until - time.perf_counter()))
        if not ready:
            raise RuntimeError(f"no prompt within {_PATIENCE:g} s: {shown[-500:]!r}")
        with suppress(OSError):  # Linux's way to say that nobody holds the other end
            shown += (piece := os.read(master, 4_096))
            if piece:
                continue
        raise RuntimeError(f"it ended without a prompt: {shown[-500:]!r}")
    return time.perf_counter()


def _to_end(command: list[str], environment: Mapping[str, str]) -> float:
    """Milliseconds of a process from start to end."""
    started = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    took = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(f"{command[-1]}: {done.stderr[-500:]}")
    return took * 1e3


START = Job(
    "start",
    start,
    (
        Target(
            "start_prompt", 300, "ms", sides=("clew chat", "python -c pass"),
            says="from the start of `clew chat` to its prompt",
        ),
        Target(
            "start_vs_list", None, "x", sides=("clew chat", "clew list"),
            says="`clew chat` to its prompt, against the whole of `clew list`",
        ),
    ),
)  # fmt: skip
