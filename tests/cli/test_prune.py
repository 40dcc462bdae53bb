"""clew prune and clew bin, as commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import clew
from clew.testing.clock import FakeClock

from .helpers import Demo, Run


@pytest.fixture
def old(tmp_path: Path) -> tuple[Path, str]:
    """A store with one conversation, which ended long ago."""
    place = tmp_path / "own.db"
    with clew.open(place, clock=FakeClock()) as store:
        conv = store.profile("default").create(title="Old talk")
        conv.add(clew.user("hello"))
        conv.end("closed")
    return place, conv.id


def test_prune_only_says_what_would_go(old: tuple[Path, str], run: Run, loads: Any) -> None:
    """S36.4."""
    place, id = old
    prune = ("--store", place, "prune", "--older-than", "4w")
    shown = run(*prune).stdout
    assert "Old talk" in shown
    assert "1 conversation to bin. Nothing was done" in shown
    found = loads(*prune)
    assert (found["closed"], found["binned"], found["deleted"], found["bytes"]) == (0, 1, 0, 0)
    assert [(one["id"], one["did"]) for one in found["items"]] == [(id, "binned")]
    assert found["dry_run"] is True
    assert id in run("--store", place, "list").stdout
    assert "There is nothing to prune." in run("--store", place, "prune").stdout
    assert "90d" in run("prune", "--older-than", "soon", code=2).stderr


def test_prune_does_it_when_told(old: tuple[Path, str], run: Run, loads: Any) -> None:
    place, id = old
    prune = ("--store", place, "prune", "--older-than", "4w", "--yes")
    assert "1 conversation binned." in run(*prune).stdout
    assert run("--store", place, "list").stdout == ""
    assert loads(*prune)["items"] == []
    assert [one["id"] for one in loads("--store", place, "bin")] == [id]


@pytest.mark.parametrize("age", ["0d", "0s"])
def test_s36_10_a_window_of_nothing_is_refused(demo: Demo, run: Run, age: str) -> None:
    """S36.10."""
    assert "over 0" in run("prune", "--older-than", age, code=2).stderr


def test_the_policy_of_the_configuration_is_used(
    tmp_path: Path, run: Run, loads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S36.7: what is not said keeps its default."""
    place, config = tmp_path / "own.db", tmp_path / "config.toml"
    with clew.open(place, clock=FakeClock()) as store:
        profile = store.profile("default")
        person, cron = profile.create(source="telegram").id, profile.create(source="cron").id
    monkeypatch.setenv("CLEW_CONFIG", str(config))
    at = ("--store", place)
    assert [one["id"] for one in loads(*at, "prune")["items"]] == [cron]
    config.write_text("[retention]\nsources = { telegram = '2d' }\n")
    found = loads(*at, "prune")["items"]
    assert [(one["id"], one["did"]) for one in found] == [(person, "binned"), (cron, "closed")]
    assert "source telegram: 2d" in run(*at, "prune").stdout
    config.write_text("[retention]\nbin = 'keep'\npeople = '-1d'\n")
    said = run(*at, "prune", code=2).stderr
    assert "retention.bin" in said
    assert "retention.people" in said


def test_what_was_deleted_is_restored_with_its_sub_agents(demo: Demo, run: Run, loads: Any) -> None:
    with demo.open() as store:
        agent = store.profile("default").open(demo.ids.order).delegate().id
    assert run("bin").stdout == "The bin is empty.\n"
    run("delete", demo.ids.order, "--yes")
    assert {one["id"] for one in loads("bin")} == {demo.ids.order, agent}
    assert "My order did not arrive" in run("bin").stdout
    assert "and 1 sub-agent" in run("bin", "restore", demo.ids.order).stdout
    assert loads("bin", "list") == []
    assert demo.ids.order in run("list").stdout
    assert "nobody" in run("bin", "restore", "nobody", code=3).stderr


def test_the_bin_is_emptied_when_told(demo: Demo, run: Run, loads: Any) -> None:
    run("delete", demo.ids.order, "--yes")
    run("bin", "empty", code=2)
    assert len(loads("bin")) == 1
    assert "Deleted 1 conversation" in run("bin", "empty", "-y").stdout
    assert "The bin is empty." in run("bin", "empty", "-y").stdout
    run("bin", "restore", demo.ids.order, code=3)
    with demo.open() as store:
        assert store.verify() == []


def test_delete_now_leaves_nothing_in_the_bin(demo: Demo, run: Run, loads: Any) -> None:
    assert "Deleted" in run("delete", demo.ids.order, "--now", "--yes").stdout
    assert loads("bin") == []
