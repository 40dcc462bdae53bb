"""The gate between processes, with real ones."""

from __future__ import annotations

import os
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.errors import StoreError
from clew.store.turnstile import Turnstile

WAIT = 10.0

PROGRAM = """
import os, sys, time
from clew.store.turnstile import Turnstile
gate = Turnstile(sys.argv[1])
for line in sys.stdin:
    word = line.strip()
    if word == "try":
        answer = gate.try_enter()
    elif word == "fork":
        answer = os.fork()
        if answer == 0:
            gate.close()
            sys.stdin.close()
            time.sleep(60)
            os._exit(0)
    else:
        answer = getattr(gate, word)()
    print(answer, flush=True)
"""


class Process:
    """A process at the turnstile, told what to do word by word."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def say(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], WAIT)
        assert ready, "never answered"
        return self.process.stdout.readline().strip()

    def ask(self, word: str) -> str:
        self.say(word)
        return self.answer()

    def wait_in_line(self) -> None:
        """Start to enter; back when the process sleeps in a lock of the kernel."""
        self.say("enter")
        end = time.monotonic() + WAIT
        while not self.is_waiting():
            assert time.monotonic() < end, "never came to wait"
            time.sleep(0.002)

    def wait_for_the_turn(self) -> None:
        """Back when the process, which waits in line, is the next: until it has woken up somebody
        who comes just then may be quicker."""
        end = time.monotonic() + WAIT
        while not self.is_next():
            assert time.monotonic() < end, "was never the next"
            time.sleep(0.002)

    def is_next(self) -> bool:
        """Whether it holds a lock, that of the turn: `1: FLOCK ADVISORY WRITE <pid> ...`."""
        lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        return any(line[1] == "FLOCK" and line[4] == str(self.process.pid) for line in lines)

    def is_waiting(self) -> bool:
        """/proc/locks shows who waits: `1: -> FLOCK ADVISORY WRITE <pid> ...`."""
        lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        return any(
            line[1:3] == ["->", "FLOCK"] and line[5] == str(self.process.pid) for line in lines
        )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@pytest.fixture
def crowd(path: Path) -> Iterator[list[Process]]:
    processes = [Process(path) for _ in range(3)]
    yield processes
    for process in processes:
        if process.process.poll() is None:
            process.kill()


@pytest.fixture
def mine(path: Path) -> Iterator[Turnstile]:
    turnstile = Turnstile(str(path))
    yield turnstile
    turnstile.close()


def test_one_inside_at_a_time(crowd: list[Process]) -> None:
    a, b, _ = crowd
    assert a.ask("try") == "True"
    assert b.ask("try") == "False"
    assert a.ask("leave") == "None"
    assert b.ask("try") == "True"
    assert a.ask("try") == "False"


def test_whoever_leaves_and_comes_back_waits_behind_the_others(crowd: list[Process]) -> None:
    a, b, c = crowd
    assert a.ask("enter") == "None"
    b.wait_in_line()
    c.wait_in_line()
    a.ask("leave")
    assert a.ask("try") == "False", "overtook two who wait"
    assert b.answer() == "None"
    c.wait_for_the_turn()
    a.say("enter")
    b.ask("leave")
    assert c.answer() == "None"
    c.ask("leave")
    assert a.answer() == "None"


def test_a_free_gate_is_not_taken_from_one_who_waits(mine: Turnstile, path: Path) -> None:
    """Between the leaving of one and the waking of the next nobody else gets in."""
    other = Turnstile(str(path))
    assert mine.try_enter()
    turn, _, mark = other._open()
    turn.lock()
    mark[0] = 1
    mine.leave()
    assert not mine.try_enter()
    other.close()


@pytest.mark.parametrize("inside", [True, False])
def test_a_killed_process_holds_up_nobody(crowd: list[Process], inside: bool) -> None:
    a, b, c = crowd
    assert a.ask("enter") == "None"
    b.wait_in_line()
    (a if inside else b).kill()
    if inside:
        assert b.answer() == "None"
        assert c.ask("try") == "False"
        b.ask("leave")
    else:
        a.ask("leave")
    start = time.monotonic()
    assert c.ask("enter") == "None"  # also clears the mark that a killed waiter left
    assert time.monotonic() - start < 2
    c.ask("leave")
    assert c.ask("try") == "True"


def test_the_child_of_a_fork_lets_go_of_a_dead_parents_lock(crowd: list[Process]) -> None:
    a, b, _ = crowd
    assert a.ask("enter") == "None"
    child = int(a.ask("fork"))
    try:
        assert b.ask("try") == "False", "the child's close released the parent's lock"
        a.kill()
        start = time.monotonic()
        assert b.ask("enter") == "None"
        assert time.monotonic() - start < 2, "waited for the dead writer's child"
    finally:
        os.kill(child, signal.SIGKILL)


def test_two_in_one_process_exclude_each_other(mine: Turnstile, path: Path) -> None:
    other = Turnstile(str(path))
    assert mine.try_enter()
    assert not other.try_enter()
    mine.leave()
    assert other.try_enter()
    other.close()
    assert mine.try_enter(), "close did not leave"


def test_its_files_are_its_own_and_private(mine: Turnstile, path: Path) -> None:
    old = os.umask(0)
    try:
        mine.enter()
        mine.leave()
    finally:
        os.umask(old)
    assert sorted(file.name for file in path.parent.iterdir()) == ["s.db.gate", "s.db.turn"]
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for lock in mine._open()[:2]:
        assert not os.get_inheritable(lock.fd)


def test_closed_twice_and_left_without_entering(mine: Turnstile) -> None:
    mine.leave()
    assert mine.try_enter()
    mine.leave()
    mine.leave()
    mine.close()
    mine.close()
    assert mine.try_enter(), "may be used again"


def test_a_folder_that_takes_no_files_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot take the write turn of .*: No such file"):
        Turnstile(str(tmp_path / "none" / "s.db")).try_enter()
