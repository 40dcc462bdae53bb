"""clew verify, doctor, prune, stats, backup, restore, as commands."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

import clew

from .helpers import Demo, Run, process


def test_verify(demo: Demo, run: Run, loads: Any) -> None:
    assert run("verify").stdout == "✓ Every invariant holds.\n"
    assert loads("verify") == []


def test_verify_with_problems(demo: Demo, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = clew.Problem("I-01", demo.ids.long, "seqs 1..3\x1b; head 4")

    def verify(self: clew.Store, progress: object = None) -> list[clew.Problem]:
        return [problem]

    monkeypatch.setattr(clew.Store, "verify", verify)
    result = run("verify", code=1)
    assert f"I-01  {demo.ids.long[:8]}  seqs 1..3^[; head 4" in result.stdout
    assert "1 problem found" in result.stderr
    assert json.loads(run("verify", "--json", code=1).stdout)[0]["invariant"] == "I-01"


def test_doctor(demo: Demo, run: Run, loads: Any) -> None:
    shown = run("doctor").stdout
    assert "✓ integrity" in shown
    assert "! turns" not in shown or "→" in shown
    found = loads("doctor")
    assert {finding["level"] for finding in found} <= {"ok", "warn"}
    assert all(finding["remedy"] for finding in found if finding["level"] != "ok")


def test_doctor_of_a_damaged_store(demo: Demo, run: Run) -> None:
    demo.path.write_bytes(b"not a database at all" * 100)
    result = run("doctor", code=1)
    assert "✗ file" in result.stdout
    assert "1 error" in result.stdout


def test_stats(demo: Demo, run: Run, loads: Any) -> None:
    shown = run("stats").stdout
    assert "conversations  5" in shown
    assert "telegram" in shown
    found = loads("stats", "--since", "1d")
    assert (found["conversations"], found["pinned"], found["open_turns"]) == (5, 1, 1)
    assert {"source": "telegram", "conversations": 1, "messages": 2} in found["sources"]
    assert found["bytes"]["store"] > 0


def test_stats_count_usage(demo: Demo, run: Run) -> None:
    with demo.open() as store:
        conversation = store.profile("default").open(demo.ids.trip)
        call = conversation.plan_call(clew.CallPlan(model="gpt-5", purpose="title"))
        usage = clew.Usage(input=1200, output=34)
        conversation.finish_call(call, clew.CallResult(usage=usage, cost=0.5))
    shown = run("stats").stdout
    assert "gpt-5" in shown
    assert "1,200" in shown
    assert "$0.50" in shown


def test_backup_and_restore(demo: Demo, run: Run, loads: Any, tmp_path: Path) -> None:
    dest = tmp_path / "copy.db"
    assert "read back and complete" in run("backup", dest).stdout
    assert stat.S_IMODE(dest.stat().st_mode) == 0o600
    assert "--force" in run("backup", dest, code=2).stderr
    assert loads("backup", dest, "--force")["bytes"] == dest.stat().st_size
    run("delete", demo.ids.long, "--yes")
    done = loads("restore", dest, "--yes")
    assert (done["conversations"], done["path"]) == (6, str(demo.path))
    assert demo.ids.long in run("list").stdout
    assert demo.ids.long not in run("list", "--store", done["kept"]).stdout
    assert "restored" in run("restore", dest, "-y").stdout
    run("restore", tmp_path / "nothing.db", "--yes", code=5)


def test_backup_as_a_process(demo: Demo, tmp_path: Path) -> None:
    done = process("backup", tmp_path / "copy.db")
    assert (done.returncode, done.stderr) == (0, "")
    assert process("--store", tmp_path / "copy.db", "verify").returncode == 0
