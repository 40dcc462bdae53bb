"""Steps of a measurement, each in a process of its own: how long it took, what it held."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks import envs


@dataclass(frozen=True)
class Step:
    """What a step took."""

    seconds: float
    cpu: float
    """Seconds of the whole step, what is not measured included."""
    memory: float
    """The most that the process held, MB."""
    count: int
    """Messages, lines or rows, by the step."""


def run(step: str, path: Path, store: Path) -> Step:
    """A step of child.py."""
    command = [sys.executable, "-m", "benchmarks.importing.child", step, str(path), str(store)]
    done = subprocess.run(command, cwd=envs.ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return Step(**json.loads(done.stdout))
