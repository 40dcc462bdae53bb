"""clew import, as a command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import clew

from .helpers import REAL as AS_PROCESS
from .helpers import Run

SAMPLES = Path(__file__).parent.parent / "data" / "transcripts"
REAL = SAMPLES / "claude-code" / "real-long-sidechains-summary.jsonl"
EDIT = SAMPLES / "claude-code" / "agentpile-edit_branch.jsonl"
EDGES = SAMPLES / "claude-code" / "edge-cases-unicode-long-orphans.jsonl"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own, with no store yet."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("CLEW_STORE", str(folder / "store.db"))
    return folder


def test_an_import_makes_the_store_and_says_what_it_did(run: Run, home: Path) -> None:
    shown = run("import", EDIT).stdout
    assert "1 conversation new, 4 messages, 1 cut." in shown
    assert "Not imported: queue-operation 1, system/turn_duration 1." in shown
    assert "Initial user prompt" in run("list").stdout
    again = run("import", EDIT).stdout
    assert "0 conversations new, 1 unchanged, 0 messages." in again


def test_what_is_damaged_is_named_and_the_rest_arrives(run: Run) -> None:
    shown = run("import", EDGES).stdout
    assert "5 damaged places:" in shown
    assert "edge-cases-unicode-long-orphans.jsonl, line 10: " in shown
    assert "names a parent that is not there" in shown
    assert "12 messages" in shown


def test_a_dry_run_makes_nothing(run: Run, home: Path) -> None:
    told = json.loads(run("import", EDIT, "--dry-run", "--json").stdout)
    assert told["totals"]["messages"] == 4
    assert list(home.iterdir()) == []
    assert "1 conversation would be new" in run("import", EDIT, "--dry-run").stdout


def test_archived_and_found_by_search(run: Run, home: Path) -> None:
    run("import", REAL, "--archive")
    assert json.loads(run("list", "--json").stdout) == []
    with clew.open(home / "store.db") as store:
        assert store.search_index.status().behind == 0


def test_the_index_can_be_left_to_the_next_search(run: Run, home: Path) -> None:
    run("import", EDIT, "--no-index")
    with clew.open(home / "store.db") as store:
        assert store.search_index.status().behind == 4


def test_deleted_stays_deleted_unless_asked_for(run: Run) -> None:
    told = json.loads(run("import", EDIT, "--json").stdout)
    run("delete", told["sources"][0]["chats"][0]["conversation"], "--yes")
    shown = run("import", EDIT).stdout
    assert "1 deleted here before" in shown
    assert "--again brings back" in shown
    assert "4 messages" in run("import", EDIT, "--again").stdout


def test_discover_asks_and_finds_the_usual_places(run: Run, home: Path) -> None:
    place = home / ".claude" / "projects" / "-repo"
    place.mkdir(parents=True)
    shutil.copy(EDIT, place)
    assert "asks first" in run("import", "--discover", code=2).stderr
    done = run("import", "--discover", "--yes")
    assert "Claude Code  ~/.claude/projects" in done.stderr
    assert "4 messages" in done.stdout
    assert "give one or the other" in run("import", "--discover", EDIT, code=2).stderr
    assert "nothing to import" in run("import", code=2).stderr


def test_archives_are_read_as_they_come(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(SAMPLES / "chatgpt-export" / "chatgpt-export.json", "conversations.json")
        archive.writestr("user.json", "{}")
    told = json.loads(run("import", path, "--json").stdout)
    assert told["totals"]["conversations"] == 2
    assert told["unknown"] == 0  # what an export has beside its conversations is no riddle


def test_files_of_no_format_are_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "broken.zip").write_bytes(b"PK\3\4 no archive")
    (tmp_path / "empty.jsonl").touch()
    shown = run("import", tmp_path, code=1).stdout
    assert "There is nothing here that clew can read." in shown
    assert "2 files of no known format" in shown
    assert str(tmp_path / "empty.jsonl") in shown


def test_a_first_line_that_is_long_and_damaged(run: Run, tmp_path: Path) -> None:
    rows = EDIT.read_bytes().splitlines(keepends=True)
    path = tmp_path / "s.jsonl"
    path.write_bytes(rows[1][:40] + b"x" * 200_000 + b"\n" + b"".join(rows))
    shown = run("import", path).stdout
    assert "4 messages" in shown
    assert "s.jsonl, line 1: no JSON: Unterminated string starting at character" in shown


def test_an_answer_of_no_does_nothing(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = home / ".claude" / "projects" / "-repo"
    place.mkdir(parents=True)
    shutil.copy(EDIT, place)
    monkeypatch.setattr("clew.cli.asking.can_ask", lambda *_: None)
    monkeypatch.setattr("clew.cli.importing.can_ask", lambda *_: None)
    done = run("import", "--discover", input="n\n")
    assert "Nothing was done." in done.stderr
    assert not (home / "store.db").exists()


def test_older_files_come_in_first(run: Run, home: Path, tmp_path: Path) -> None:
    """So that newest first is that of the tools: by when a file was last written."""
    names = ("b", "c", "a")
    for age, name in enumerate(names):
        row = json.loads(EDIT.read_text().splitlines()[1])
        row |= {
            "uuid": name,
            "sessionId": name,
            "message": {"role": "user", "content": f"x {name}"},
        }
        path = tmp_path / f"{name}.jsonl"
        path.write_text(json.dumps(row))
        os.utime(path, (1000 + age, 1000 + age))
    run("import", *(tmp_path / f"{name}.jsonl" for name in sorted(names)))
    with clew.open(home / "store.db") as store:
        hits = store.profile("default").search("x").hits
        assert [hit.plain.strip()[-1] for hit in hits] == ["a", "c", "b"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("conversations.json", [{"uuid": "1", "chat_messages": []}], "claude.ai"),
        ("api_conversation_history.json", [{"role": "user", "content": []}], "Cline"),
        (".aider.chat.history.md", "# aider chat started at 2026", "Aider"),
    ],
)
def test_formats_that_are_not_read_are_called_by_name(
    name: str, content: Any, said: str, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    shown = run("import", path, code=1).stdout
    assert said in shown
    assert "not read yet" in shown


def test_a_file_of_no_format_and_a_path_that_is_not_there(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("milk, eggs")
    assert "1 file of no known format" in run("import", tmp_path / "notes.txt", code=1).stdout
    told = run("import", tmp_path / "none", code=2)
    assert "does not exist; give a file, a folder or a ZIP archive" in told.stderr


def test_nothing_in_a_file_reaches_the_terminal(run: Run, tmp_path: Path) -> None:
    row = json.loads(EDIT.read_text().splitlines()[1])
    row["message"]["content"] = "\x1b]0;owned\x07 \x9b31m"
    row["uuid"], row["parentUuid"] = "\x1b[2J", "\x1b[31m"
    path = tmp_path / "a\x1b[31m.jsonl"
    path.write_text("\n".join(map(json.dumps, (row, {**row, "uuid": "y"}))) + "\n{]\x1b[5m\n")
    done = run("import", path)
    assert "\x1b" not in done.stdout + done.stderr
    assert "\x9b" not in done.stdout + done.stderr


def test_a_watch_goes_on_until_it_is_ended(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    rows = EDIT.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(rows[:2]))
    command = [sys.executable, "-c", AS_PROCESS, "import", "--watch", str(path), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        assert '"messages":1' in watch.stdout.readline().replace(" ", "")
        with path.open("ab") as stream:
            stream.write(rows[2])
        assert '"messages":1' in watch.stdout.readline().replace(" ", "")
        watch.terminate()
        assert watch.wait(20) == 0
    with clew.open(home / "store.db") as store:
        (listed,) = store.profile("default").list().items
        assert listed.message_count == 2


def test_a_watch_is_no_dry_run(run: Run, tmp_path: Path) -> None:
    told = run("import", "--watch", "--dry-run", tmp_path, code=2).stderr
    assert "leave out --dry-run" in told
