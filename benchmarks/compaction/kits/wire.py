"""The kits' side of kit.py: one JSON object a line, both ways.

The bench gives a task; while it works, a task may ask the bench, where clew is. This folder is no
package: its files run by their paths, in the kits' own environments.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

_channel = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # what a kit prints is not an answer


def ask(**question: Any) -> Any:
    """Ask the bench and wait."""
    _write({"ask": question})
    return json.loads(sys.stdin.readline())["answer"]


def serve(tasks: dict[str, Callable[..., Any]]) -> None:
    """Do the tasks that come in until there are no more."""
    while line := sys.stdin.readline():
        wanted: dict[str, Any] = json.loads(line)
        try:
            answer = {"result": tasks[wanted.pop("task")](**wanted)}
        except Exception as error:  # noqa: BLE001 - told to the bench, which decides
            answer = {"error": f"{type(error).__name__}: {error}"[:1000]}
        _write(answer)


def _write(fields: dict[str, Any]) -> None:
    _channel.write(json.dumps(fields) + "\n")
