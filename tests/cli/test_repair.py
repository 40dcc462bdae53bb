"""clew repair, and incremental backups, as commands."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from .helpers import Demo, Run


def damage(path: Path, word: bytes) -> None:
    """Lose the page that holds this text."""
    data = path.read_bytes()
    page = data.index(word) // 4096
    with path.open("r+b") as file:
        file.seek(page * 4096)
        file.write(bytes(4096))


def largest_leaf(path: Path) -> bytes:
    """A piece of the newest message's row."""
    with sqlite3.connect(path) as connection:
        found = connection.execute("SELECT uid FROM message ORDER BY id DESC LIMIT 1").fetchone()
    connection.close()
    return found[0]


def test_a_store_in_order_is_whole(demo: Demo, run: Run, loads: Any) -> None:
    before = demo.path.read_bytes()
    found = loads("repair")
    assert found["whole"]
    assert not found["applied"]
    assert found["lost_messages"] == 0
    assert Path(found["result"]).exists()
    assert demo.path.read_bytes() == before
    text = run("repair").stdout
    assert "0 lost" in text
    assert "not changed" in text


def test_what_is_lost_is_told_and_swapped_in_on_request(demo: Demo, run: Run, loads: Any) -> None:
    """Exit code 1; the old file is kept."""
    damage(demo.path, largest_leaf(demo.path))
    doctor = run("doctor", code=1).stdout
    assert "clew repair" in doctor
    found = loads("repair", code=1)
    assert not found["whole"]
    assert found["lost_messages"] > 0
    assert found["problems"] == []
    text = run("repair", code=1).stdout
    assert "are lost" in text
    run("repair", "--apply", code=2)  # nobody is there to be asked
    done = loads("repair", "--apply", "--yes", code=1)
    assert done["applied"]
    assert Path(done["kept"]).exists()
    assert run("verify").exit_code == 0
    assert "was lost" in run("search", "lost").stdout or run("list").stdout


def test_what_cannot_be_repaired(run: Run, tmp_path: Path) -> None:
    run("--store", tmp_path / "none.db", "repair", code=5)
    run("--store", "postgresql://nobody@localhost/x", "repair", code=2)


def test_points_are_made_listed_tested_and_restored(
    demo: Demo, run: Run, loads: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "points"
    one = loads("backup", "--incremental", folder)
    two = loads("backup", "--incremental", folder, "--keep", "5")
    assert two["added"] == 0
    assert "read back and complete" in run("backup", "--incremental", folder).stdout
    ids = [point["id"] for point in loads("backup", "--list", folder)]
    assert len(ids) == 3
    assert ids[:2] == [one["id"], two["id"]]
    assert ids[0] in run("backup", "--list", folder).stdout
    assert loads("backup", "--test", f"{folder}@{ids[0]}")["id"] == ids[0]
    assert "every invariant holds" in run("backup", "--test", folder).stdout
    with demo.open() as store:
        held = store.profiles()
        store.profile("default").create(source="cli")
    done = loads("restore", f"{folder}@{ids[0]}", "--yes")
    assert done["conversations"] == sum(count for _, count in held)
    assert "restored" in run("restore", folder, "-y").stdout
    assert not list(demo.path.parent.glob("*.restore-*"))


@pytest.mark.parametrize(
    "wrong",
    [("--list", "--test"), ("--incremental", "--list"), ("--keep", "3")],
)
def test_options_that_do_not_go_together(
    demo: Demo, run: Run, tmp_path: Path, wrong: tuple[str, ...]
) -> None:
    run("backup", *wrong, tmp_path / "x", code=2)
    assert not (tmp_path / "x").exists()


def test_what_is_no_folder_of_points(demo: Demo, run: Run, tmp_path: Path) -> None:
    run("backup", "--list", tmp_path, code=2)
    run("backup", "--test", tmp_path, code=2)
    run("restore", tmp_path, "--yes", code=2)
    folder = tmp_path / "points"
    run("backup", "--incremental", folder)
    run("restore", f"{folder}@1999", "--yes", code=2)
