"""clew copy, as a command."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.store.copy import run as engine

from .helpers import REAL, Demo, Run


def test_copy(demo: Demo, run: Run, loads: Any, tmp_path: Path) -> None:
    dest = tmp_path / "copy.db"
    shown = run("copy", demo.path, dest).stdout
    assert f"{dest}: 6 conversations, 72 messages. Compared with {demo.path}: equal." in shown
    with demo.open() as store:
        store.profile("bot").open(demo.ids.bot).add(clew.user("again"))
    assert "73 messages (1 of them new)" in run("copy", demo.path, dest).stdout
    told = loads("copy", demo.path, dest)
    assert (told["messages"], told["copied"], told["moved"]) == (73, 0, False)
    assert told["rows"]["conversation"] == told["conversations"] == 6
    assert json.loads(run("verify", "--store", dest, "--json").stdout) == []


def test_move(demo: Demo, run: Run, tmp_path: Path) -> None:
    dest = tmp_path / "new.db"
    assert (
        "s and is sealed: who opens it is told to open"
        in run("copy", "--move", demo.path, dest).stdout
    )
    assert f"moved to {dest}; open that one" in run("list", code=5).stderr
    assert demo.ids.bot in run("list", "--store", dest, "--profile", "bot", "--json").stdout
    told = json.loads(run("copy", demo.path, tmp_path / "c.db", "--json", code=5).stderr)
    assert told["error"] == "StoreMoved"


def test_a_place_that_is_taken(demo: Demo, run: Run, tmp_path: Path) -> None:
    clew.open(tmp_path / "other.db").profile("p").create()
    assert (
        "holds a store of its own" in run("copy", demo.path, tmp_path / "other.db", code=2).stderr
    )
    assert "no store" in run("copy", tmp_path / "none.db", tmp_path / "c.db", code=3).stderr
    assert not (tmp_path / "none.db").exists()
    assert not (tmp_path / "c.db").exists()
    assert "neither" in run("copy", demo.path, "mysql://x", code=2).stderr


def test_problems_are_told_and_nothing_is_moved(
    demo: Demo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = clew.Problem("I-01", demo.ids.long, "seqs 1..3\x1b; head 4")
    monkeypatch.setattr(engine, "verify", lambda db, progress: [problem])
    result = run("copy", "--move", demo.path, tmp_path / "c.db", code=1)
    assert f"I-01  {demo.ids.long}  seqs 1..3^[; head 4" in result.stdout
    assert "1 problem found" in result.stderr
    assert "It was not moved." in result.stderr
    demo.open().close()


def test_ctrl_c_says_how_to_go_on(demo: Demo, run: Run, tmp_path: Path) -> None:
    """A process that is interrupted in the middle."""
    code = (
        "import os, signal\n"
        "from clew.store.copy import compare\n"
        "compare.look = lambda tx: os.kill(os.getpid(), signal.SIGINT)\n" + REAL
    )
    words = [sys.executable, "-c", code, "copy", str(demo.path), str(tmp_path / "c.db")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 128 + signal.SIGINT
    assert "The same command again goes on where this one stopped." in done.stderr
    assert "72 messages (0 of them new)" in run("copy", demo.path, tmp_path / "c.db").stdout
