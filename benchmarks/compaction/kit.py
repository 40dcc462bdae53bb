"""The bench's side of kits/wire.py: a kit in its own environment and process."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import children, envs, peers
from benchmarks.measure import NotRun

_SCRIPTS = Path(__file__).with_name("kits")
Answer = Callable[[dict[str, Any]], Any]


class Kit:
    """A running kit."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self.name = name
        self._process = process

    def run(self, task: str, answer: Answer | None = None, **arguments: Any) -> Any:
        """The result of a task; `answer` gives it what it asks for."""
        self._write({"task": task, **arguments})
        while True:
            said = self._read()
            if "ask" not in said:
                return said["result"]
            assert answer is not None, said
            self._write({"answer": answer(said["ask"])})

    def _write(self, fields: dict[str, Any]) -> None:
        stream = self._process.stdin
        assert stream is not None
        stream.write(json.dumps(fields) + "\n")
        stream.flush()

    def _read(self) -> dict[str, Any]:
        stream = self._process.stdout
        assert stream is not None
        line = stream.readline()
        if not line:
            raise NotRun(f"{self.name} ended without an answer (exit {self._process.wait()})")
        said: dict[str, Any] = json.loads(line)
        if "error" in said:
            raise NotRun(f"{self.name}: {said['error']}")
        return said


@contextmanager
def start(name: str, script: str, folder: Path) -> Iterator[Kit]:
    """The script `kits/<script>.py` in the environment `name`; `folder` holds its scratch home."""
    home = folder / f"{name}-home"
    home.mkdir(parents=True, exist_ok=True)
    with (folder / f"{script}.log").open("w") as log:
        process = subprocess.Popen(
            [str(children.peer_python(name)), str(_SCRIPTS / f"{script}.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=envs.ROOT,
            env=peers.environment(home),
        )  # fmt: skip
        try:
            yield Kit(name, process)
        finally:
            process.kill()
            process.communicate()
