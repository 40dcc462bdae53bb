"""The scripts of tests/crash, run from here: what CI tries, tried more often."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.measure import NotRun

CRASH = Path(__file__).resolve().parents[2] / "tests" / "crash"
_MEMORY = Path("/dev/shm")


@contextmanager
def in_memory() -> Iterator[Path]:
    """A folder where a sync costs nothing, if there is one."""
    where = _MEMORY if _MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="clew-bench-", dir=where) as folder:
        yield Path(folder)


def start(name: str, *arguments: object) -> subprocess.Popen[str]:
    """A script that prints one JSON object, or nothing."""
    if not CRASH.is_dir():
        raise NotRun(f"{CRASH} is not there; run from a checkout")
    command = [sys.executable, str(CRASH / name), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def said(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What it printed."""
    text, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{process.args} failed")
    return json.loads(text) if text else {}
