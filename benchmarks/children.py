"""The parent's side of child.py."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks import envs, peers
from benchmarks.measure import NotRun


class Remote:
    """A running child."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self.name = name
        self._process = process

    def send(self, do: str, **arguments: Any) -> None:
        """Give a command without waiting for its answer."""
        stream = self._process.stdin
        assert stream is not None
        stream.write(json.dumps({"do": do, **arguments}) + "\n")
        stream.flush()

    def receive(self) -> dict[str, Any]:
        """The answer to the oldest command that has none."""
        stream = self._process.stdout
        assert stream is not None
        line = stream.readline()
        if not line:
            raise NotRun(f"{self.name} ended without an answer (exit {self._process.wait()})")
        fields: dict[str, Any] = json.loads(line)
        if "error" in fields:
            raise NotRun(f"{self.name}: {fields['error']}")
        return fields

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Give a command and wait."""
        self.send(do, **arguments)
        return self.receive()


@contextmanager
def start(name: str, folder: Path) -> Iterator[Remote]:
    """A child for "clew" or a peer; `folder` holds the peer's scratch home."""
    python, environment = _interpreter(name, folder)
    log = (folder / f"{name}.log").open("w")
    process = subprocess.Popen(
        [python, "-m", "benchmarks.child", name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        cwd=envs.ROOT,
        env=environment,
    )
    try:
        yield Remote(name, process)
    finally:
        process.kill()
        process.communicate()
        log.close()


@contextmanager
def several(name: str, folder: Path, count: int) -> Iterator[list[Remote]]:
    """Some children of one kind, for one file."""
    with ExitStack() as stack:
        yield [stack.enter_context(start(name, folder)) for _ in range(count)]


def together(remotes: Sequence[Remote], do: str, **arguments: Any) -> list[dict[str, Any]]:
    """Give all the same command and wait for all."""
    for remote in remotes:
        remote.send(do, **arguments)
    return [remote.receive() for remote in remotes]


def peer_python(name: str) -> Path:
    """The interpreter of a peer's environment, or NotRun with the remedy."""
    env = envs.PEERS[name]
    if not env.ready():
        raise NotRun(f"the environment of {name} is missing: {envs.REMEDY}")
    return env.python


def _interpreter(name: str, folder: Path) -> tuple[str, dict[str, str] | None]:
    if name == "clew":
        return sys.executable, None
    home = folder / f"{name}-home"
    home.mkdir(parents=True, exist_ok=True)
    return str(peer_python(name)), peers.environment(home)
