"""clew list and clew profiles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import clew

from .helpers import Demo, Run, process


def ids(output: str) -> list[str]:
    return [line.split("\t")[0] for line in output.splitlines()]


def test_pinned_come_first_then_the_newest_activity(demo: Demo, run: Run) -> None:
    found = ids(run("list").stdout)
    assert found[0] == demo.ids.trip
    assert set(found) == set(demo.ids) - {demo.ids.bot}
    newest = ids(run("list", "--no-pinned-first").stdout)
    assert newest[-1] != demo.ids.trip or newest[0] != demo.ids.trip
    assert set(newest) == set(found)
    assert ids(run("list", "--pinned-first").stdout) == found


def test_in_a_pipe_a_line_is_fields_between_tabs(demo: Demo, run: Run) -> None:
    line = run("list", "--title", "KYōTO").stdout
    id, title, at, messages, source, profile = line.rstrip("\n").split("\t")
    assert (id, title, messages) == (demo.ids.trip, "Reise nach Kyōto 京都", "2")
    assert (source, profile) == ("telegram", "default")
    assert at.endswith("Z")


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--source", "telegram"], ["trip"]),
        (["--project", "/home/ann/app"], ["flaky", "other_way"]),
        (["--branch", "main"], ["flaky", "other_way"]),
        (["--model", "gpt-5"], ["flaky", "other_way"]),
        (["--title", "ORDER"], ["order"]),
        (["--since", "yesterday"], ["flaky", "trip", "order", "other_way", "long"]),
        (["--until", "yesterday"], []),
        (["--pinned"], ["trip"]),
        (["--archived"], []),
    ],
)
def test_filters(demo: Demo, run: Run, options: list[str], names: list[str]) -> None:
    assert set(ids(run("list", *options).stdout)) == {getattr(demo.ids, name) for name in names}


def test_a_dot_names_the_repository_one_is_in(
    demo: Demo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "src").mkdir()
    with demo.open() as store:
        workspace = clew.Workspace(git_root=str(tmp_path / "repo"))
        here = store.profile("default").create(workspace=workspace)
    monkeypatch.chdir(tmp_path / "repo" / "src")
    assert ids(run("list", "--project", ".").stdout) == [here.id]


def test_pages_follow_each_other(demo: Demo, run: Run) -> None:
    found: list[str] = []
    cursor: list[str] = []
    while True:
        result = run("list", "--limit", 2, "--json", *cursor)
        found += [item["id"] for item in json.loads(result.stdout)]
        if not result.stderr:
            break
        cursor = ["--cursor", json.loads(result.stderr)["next"]]
    assert found == ids(run("list").stdout)
    assert "--cursor" in run("list", "-n", 1).stderr


def test_a_limit_may_be_larger_than_a_page(demo: Demo, run: Run) -> None:
    assert len(ids(run("list", "--limit", 5000).stdout)) == 5


def test_all_profiles_and_another_one(demo: Demo, run: Run) -> None:
    assert set(ids(run("list", "--all-profiles").stdout)) == set(demo.ids)
    assert ids(run("--profile", "bot", "list").stdout) == [demo.ids.bot]
    assert ids(run("list", "--profile", "bot").stdout) == [demo.ids.bot]


def test_json_has_all_facts(demo: Demo, run: Run) -> None:
    items = json.loads(run("list", "--json").stdout)
    info = next(item for item in items if item["id"] == demo.ids.flaky)
    assert info["title"] == "Fix the flaky retry test"
    assert (info["message_count"], info["waiting"], info["git_branch"]) == (6, 1, "main")


def test_titles_cannot_act_on_a_terminal(demo: Demo, run: Run) -> None:
    run("rename", demo.ids.trip, "a\x1b]0;owned\x07b\nc\td")
    line = run("list", "--pinned").stdout
    assert "a^[]0;owned^Gb c d" in line
    title = json.loads(run("list", "--pinned", "--json").stdout)[0]["title"]
    assert title == "a\x1b]0;owned\x07b c d"


def test_archived_ones_are_said_to_be_there(demo: Demo, run: Run) -> None:
    run("archive", demo.ids.bot, "--profile", "bot")
    result = run("list", "--profile", "bot")
    assert result.stdout == ""
    assert "clew --profile bot list --archived" in result.stderr


def test_an_empty_profile_names_the_others(demo: Demo, run: Run) -> None:
    result = run("list", "--profile", "nobody")
    assert result.stdout == ""
    assert "bot (1), default (5)" in result.stderr
    assert json.loads(run("list", "--profile", "nobody", "--json").stdout) == []


def test_filters_that_nothing_passes_are_said_to_be_the_cause(demo: Demo, run: Run) -> None:
    assert "filters" in run("list", "--source", "nowhere").stderr


def test_profiles(demo: Demo, run: Run) -> None:
    assert run("profiles").stdout == "bot\t1\ndefault\t5\n"
    found = json.loads(run("profiles", "--json").stdout)
    assert found[0] == {"profile": "bot", "conversations": 1}


def test_a_bad_cursor_is_refused(demo: Demo, run: Run) -> None:
    assert "start without a cursor" in run("list", "--cursor", "???", code=2).stderr


def test_as_a_process(demo: Demo) -> None:
    done = process("list", "--title", "flaky")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(demo.ids.flaky)
