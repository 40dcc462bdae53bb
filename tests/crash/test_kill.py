"""Real processes on one file, killed at random moments: nothing accepted is lost or doubled."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import clew

WORKER = Path(__file__).with_name("worker.py")


class Killed:
    """A worker that is killed after a random number of acknowledgements, and started again."""

    def __init__(self, path: Path, name: str, rng: random.Random, deaths: int) -> None:
        self.path, self.name, self.rng, self.wanted = path, name, rng, deaths
        self.acknowledged: dict[tuple[str, str], int | None] = {}
        """(conversation, key) -> seq, or None where it had to wait."""
        self.next, self.deaths, self.errors = 0, 0, ""
        self.start()

    def start(self) -> None:
        """Go on at the first step that was not acknowledged."""
        command = [sys.executable, str(WORKER), str(self.path), self.name, str(self.next), "60"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.patience = self.rng.randrange(1, 12)

    def hear(self) -> bool:
        """Take in one acknowledgement, then maybe kill; False when it has died often enough."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            self.take_in(line)
            self.patience -= 1
            if self.patience:
                return True
            self.process.kill()
        rest, errors = self.process.communicate(timeout=30)
        for line in rest.splitlines(keepends=True):  # told before it died
            if line.endswith("\n"):
                self.take_in(line)
        self.errors += errors
        self.deaths += self.process.returncode == -signal.SIGKILL
        if self.deaths >= self.wanted or errors:
            return False
        self.start()
        return True

    def take_in(self, line: str) -> None:
        said = json.loads(line)
        self.next = said["step"] + 1
        for key, seq in said["messages"]:
            self.acknowledged[said["conversation"], key] = seq


@pytest.mark.parametrize(("processes", "deaths", "seed"), [(2, 6, 1), (4, 4, 2)])
def test_what_was_acknowledged_is_there_exactly_once(
    fast_dir: Path, processes: int, deaths: int, seed: int
) -> None:
    """S51.4."""
    path = fast_dir / "store.db"
    clew.open(path).close()
    rng = random.Random(seed)
    workers = [Killed(path, f"w{n}", rng, deaths) for n in range(processes)]
    running = list(workers)
    while running:
        worker = rng.choice(running)
        if not worker.hear():
            running.remove(worker)

    assert [worker.errors for worker in workers] == [""] * processes  # no lock, no refusal
    assert all(len(worker.acknowledged) > 10 for worker in workers)
    with clew.open(path) as store:
        assert store.verify() == []
        profile = store.profile("crash")
        room = profile.open("room")
        room.append([clew.user("the last one")])  # takes in what still waits
        assert (room.info().waiting, room.info().turn) == (0, None)
        logs = {
            info.id: list(profile.open(info.id).messages(hidden=True))
            for info in profile.list(limit=1000).items
        }
        for id, messages in logs.items():
            assert [m.seq for m in messages] == list(range(1, len(messages) + 1))
            doubled = [key for key, n in Counter(m.key for m in messages).items() if n > 1]
            assert [key for key in doubled if key is not None] == [], id
        for worker in workers:
            for (conversation, key), seq in worker.acknowledged.items():
                (found,) = [m for m in logs[conversation] if m.key == key]
                assert seq in (None, found.seq)
        _turns_are_whole(room)
        assert store.verify() == []


def _turns_are_whole(room: clew.Conversation) -> None:
    """A finished turn has its three messages in order; nobody else's came in between."""
    turns = {turn.number: turn.state for turn in room.turns(limit=10_000)}
    assert set(turns.values()) <= {"done", "interrupted"}
    assert "done" in turns.values()
    for number, state in turns.items():
        mine = [m for m in room.messages(hidden=True) if m.turn == number]
        assert [m.seq for m in mine] == list(range(mine[0].seq, mine[0].seq + len(mine)))
        if state == "done":
            keys = [m.key or "" for m in mine if m.role is clew.Role.ASSISTANT]
            assert [key.rpartition("-")[2] for key in keys] == ["step", "last"]


HOLDER = """
import sys, clew
store = clew.open(sys.argv[1])
turn = store.profile("p").open("c").begin_turn([clew.user("go")], ttl=3_600_000_000)
turn.record([clew.assistant("step one")])
print("begun", flush=True)
sys.stdin.read()
"""


def test_a_turn_is_taken_over_at_once_when_its_holder_is_killed(fast_dir: Path) -> None:
    """S12.1."""
    path = fast_dir / "store.db"
    with clew.open(path) as store:
        conv = store.profile("p").create(id="c")
        with subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ) as child:  # fmt: skip
            assert child.stdout is not None
            assert child.stdout.readline() == "begun\n"
            with pytest.raises(clew.TurnOpen):  # alive: an hour is its own
                conv.resume_turn()
            child.kill()
            child.wait()
        turn = conv.resume_turn()
        assert turn.turn.number == 1
        turn.finish([clew.assistant("step two")])
        assert [m.text for m in conv.messages()] == ["go", "step one", "step two"]
        assert store.verify() == []


RETRY = """
import os, sys, clew
from clew.store import log
path, key, die = sys.argv[1:]
conv = clew.open(path).profile("p").open("c")
if die == "before":
    log.insert = lambda *_: os.kill(os.getpid(), 9)
done = conv.append([clew.user(key, key=key), clew.assistant("and", key=key + "+")])
if die == "after":
    os.kill(os.getpid(), 9)
print(*done.seqs, done.new, flush=True)
"""


@pytest.mark.parametrize("die", ["before", "after"])
def test_keys_that_are_sent_again_after_a_kill_double_nothing(fast_dir: Path, die: str) -> None:
    """Killed inside the transaction, or after the commit and before the acknowledgement."""
    path = fast_dir / "store.db"
    with clew.open(path) as store:
        store.profile("p").create(id="c")

    def run(die: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", RETRY, str(path), "k", die]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    assert run(die).returncode == -signal.SIGKILL
    again = run("never")
    assert again.stderr == ""
    assert again.stdout == ("1 2 2\n" if die == "before" else "1 2 0\n")
    with clew.open(path) as store:
        assert [m.key for m in store.profile("p").open("c").messages()] == ["k", "k+"]
        assert store.verify() == []
