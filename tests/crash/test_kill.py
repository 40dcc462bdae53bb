"""Real processes on one file, killed at random moments: nothing accepted is lost or doubled."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kill_check import check

import clew

SERVER = Path(__file__).with_name("kill_server.py")


@pytest.mark.parametrize(("writers", "runs"), [(1, 350), (2, 350), (4, 350)])
def test_what_was_acknowledged_is_there_exactly_once(
    fast_dir: Path, writers: int, runs: int
) -> None:
    """S51.4. A run is a process that acknowledged something and was killed: at any time, or inside
    a call to the file system. Together these are more than 1,000."""
    path = fast_dir / "store.db"
    command = [sys.executable, str(SERVER), str(path), str(writers), str(runs), str(writers)]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=120, check=True)
    said: dict[str, Any] = json.loads(child.stdout)
    assert said["errors"] == ""  # no lock, no refusal
    assert said["runs"] >= runs
    assert said["inside"] > runs // 10
    told: list[dict[str, int | None]] = said["told"]
    assert sum(map(len, told)) > runs
    assert check(path, told) == {"lost": [], "doubled": [], "problems": []}


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
