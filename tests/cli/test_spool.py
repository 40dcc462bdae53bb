"""clew spool: what is in it, in, out and gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import clew


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with two messages in its spool; CLEW_STORE names it."""
    place = tmp_path / "a.db"
    monkeypatch.setenv("CLEW_STORE", str(place))
    with clew.open(place) as store:
        conv = store.profile("default").create()
        conv.append([clew.user("first")])
    assert conv.append([clew.user("buy milk \x1b[31m", key="k")]).spooled
    assert conv.append([clew.assistant("noted")]).spooled
    return place


def test_what_waits_is_listed_without_opening_the_store(run: Any, place: Path) -> None:
    place.rename(place.with_name("away.db"))
    shown = run("spool")
    assert shown.exit_code == 0
    assert "buy milk" in shown.stdout
    assert "\x1b[31m" not in shown.stdout
    rows = json.loads(run("spool", "list", "--json").stdout)
    assert [(row["state"], row["messages"]) for row in rows] == [("pending", 1), ("pending", 1)]
    assert json.loads(run("spool", "--json").stdout) == rows


def test_doctor_says_that_messages_wait(run: Any, place: Path) -> None:
    findings = json.loads(run("doctor", "--json").stdout)
    (found,) = [each for each in findings if each["subject"] == "spool"]
    assert found["level"] == "warn"
    assert found["what"].startswith("2 messages of 2 records wait in ")
    assert Path(f"{place}.spool").exists()


def test_replay_brings_them_in(run: Any, place: Path) -> None:
    done = run("spool", "replay", "--json")
    assert done.exit_code == 0
    assert [each["state"] for each in json.loads(done.stdout)["brought"]] == ["done", "done"]
    assert not Path(f"{place}.spool").exists()
    assert "0 messages brought in" in run("spool", "replay").stdout
    assert "empty" in run("spool").stdout
    with clew.open(place) as store:
        assert store.profile("default").stats().messages == 3


def test_export_writes_whole_messages_and_leaves_them(run: Any, place: Path) -> None:
    file = place.with_name("left.jsonl")
    assert run("spool", "export", str(file)).exit_code == 0
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["role"], line["content"]) for line in lines] == [
        ("user", "buy milk \x1b[31m"), ("assistant", "noted"),
    ]  # fmt: skip
    assert lines[0]["draft"]["key"] == "k"
    run("spool", "export", file, code=2)  # it is there
    made = run("spool", "export", str(file), "--force", "--json")
    assert json.loads(made.stdout) == {"path": str(file), "messages": 2}


def test_discard_asks_and_then_they_are_gone(run: Any, place: Path) -> None:
    run("spool", "discard", code=2)  # nobody is there to answer
    run("spool", "discard", "nosuch", "--yes", code=3)
    (row, _) = json.loads(run("spool", "--json").stdout)
    done = run("spool", "discard", row["conversation"], "--yes", "--json")
    assert json.loads(done.stdout) == {"discarded": 2}
    assert "0 messages discarded" in run("spool", "discard", "--yes").stdout
    with clew.open(place) as store:
        assert store.profile("default").stats().messages == 1
