"""Forks writers, kills them, forks them anew. Has no store open itself, so that its children may.

    python kill_server.py STORE WRITERS RUNS SEED

A run is a process that acknowledged something and was then killed. What was acknowledged is printed
at the end, as one JSON object: how many runs, and for each writer what it was told.
"""

from __future__ import annotations

import json
import os
import random
import selectors
import signal
import sys
import tempfile
import time
import traceback
from contextlib import redirect_stdout
from typing import Any

import worker
from dying_vfs import DyingVFS

import clew

STEPS = 1_000_000
BY_ITSELF = 0.3
"""How many of the runs end inside a call of SQLite to the file system, instead of at any time."""
ACKS = 5
MORE = 5
"""Steps that it may go on while the signal is on its way."""
DELAY = 0.004
"""Seconds after the last acknowledgement that is waited for, at most: a step takes one."""


class Writer:
    """One writer, in as many processes as it takes; step n is the same in each."""

    def __init__(self, path: str, name: str, rng: random.Random) -> None:
        self.path, self.name, self.rng = path, name, rng
        self.told: dict[str, int | None] = {}
        """Conversation and key, with a space between -> seq, or None where it had to wait."""
        self.next = self.runs = self.inside = 0
        self.errors = ""
        self.start()

    def start(self) -> None:
        self.acks = 0
        self.patience = self.rng.randrange(1, ACKS)
        self.itself = self.rng.random() < BY_ITSELF
        self.read, write = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _child(self, write)
        os.close(write)
        self.rest = b""

    def hear(self) -> bool:
        """Take in what it says; False when it is dead."""
        said = os.read(self.read, 65_536)
        *lines, self.rest = (self.rest + said).split(b"\n")
        for line in lines:
            self.take_in(line)
        if said and not (self.acks >= self.patience and not self.itself):
            return True
        if said:
            time.sleep(self.rng.random() * DELAY)
            os.kill(self.pid, signal.SIGKILL)
            while last := os.read(self.read, 65_536):  # told before it died
                *lines, self.rest = (self.rest + last).split(b"\n")
                for line in lines:
                    self.take_in(line)
        self.bury()
        return False

    def take_in(self, line: bytes) -> None:
        said: dict[str, Any] = json.loads(line)
        if "error" in said:
            self.errors += said["error"]
            return
        self.acks += 1
        self.next = said["step"] + 1
        for key, seq in said["messages"]:
            self.told[f"{said['conversation']} {key}"] = seq

    def bury(self) -> None:
        os.close(self.read)
        _, status = os.waitpid(self.pid, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        if not killed:
            self.errors += f"ended with status {status}\n"
        self.runs += killed and self.acks > 0
        self.inside += killed and self.itself


def _child(writer: Writer, pipe: int) -> None:
    """The life of a writer, which ends by a signal."""
    try:
        os.dup2(pipe, 1)
        sys.stdout = os.fdopen(1, "w")
        vfs = DyingVFS(writer.rng)
        say, left = worker.say, [writer.patience]

        def told(*args: Any) -> None:
            say(*args)
            left[0] -= 1
            vfs.armed = writer.itself and left[0] <= 0
            if left[0] < -MORE and not writer.itself:
                signal.pause()

        worker.say = told
        with clew.open(writer.path, spool=False) as store:
            worker.Worker(store, writer.name).run(writer.next, STEPS)
    except (clew.ClewError, AssertionError, OSError):
        print(json.dumps({"error": traceback.format_exc()}), flush=True)
    finally:
        os._exit(1)


def _warm(path: str) -> None:
    """Load all that a writer loads, with a store of no further use, and make the store."""
    with (
        tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as folder,
        clew.open(f"{folder}/warm.db", spool=False) as store,
        open(os.devnull, "w") as nowhere,
        redirect_stdout(nowhere),
    ):
        worker.Worker(store, "warm").run(0, 30)
    clew.open(path).close()


def main() -> None:
    path, writers, runs, seed = sys.argv[1], *map(int, sys.argv[2:])
    rng = random.Random(seed)
    _warm(path)
    selector = selectors.DefaultSelector()
    alive = [Writer(path, f"w{n}", random.Random(rng.random())) for n in range(writers)]
    for each in alive:
        selector.register(each.read, selectors.EVENT_READ, each)
    everyone = list(alive)
    while alive:
        for key, _ in selector.select():
            each: Writer = key.data
            if each.hear():
                continue
            selector.unregister(key.fileobj)
            if sum(one.runs for one in everyone) >= runs or each.errors:
                alive.remove(each)
            else:
                each.start()
                selector.register(each.read, selectors.EVENT_READ, each)
    said = {
        "runs": sum(each.runs for each in everyone),
        "inside": sum(each.inside for each in everyone),
        "errors": "".join(each.errors for each in everyone),
        "told": [each.told for each in everyone],
    }
    json.dump(said, sys.stdout)


if __name__ == "__main__":
    main()
