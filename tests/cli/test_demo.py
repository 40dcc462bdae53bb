"""clew demo: what a person sees, what it leaves behind, and that a loss would be noticed."""

from __future__ import annotations

import filecmp
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.cli.demo import crash, steps, writer
from clew.cli.text import cells

from .helpers import Run, process

if sys.platform != "win32":
    from .test_terminal import terminal

TRANSCRIPTS = Path(__file__).parents[1] / "data" / "transcripts"


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made, for this process and those it starts."""
    path = tmp_path / "scratch"
    path.mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return path


@pytest.fixture
def written(tmp_path: Path) -> Iterator[tuple[clew.Conversation, list[crash.Ack]]]:
    """Five messages of the writer, and that they were acknowledged."""
    with clew.open(tmp_path / "clew.db") as store:
        target = store.profile("p").create()
        done = [target.append([clew.user(writer.text_of(n))]) for n in range(1, 6)]
        yield target, [crash.Ack(one.seqs[0], one.uids[0]) for one in done]


def test_the_demo_with_nothing_but_the_package(tmp_path: Path, scratch: Path, run: Run) -> None:
    """In a pipe, of 60 columns, in an ASCII locale. What it proposes works, and nothing is outside
    the scratch folder."""
    done = process(
        "demo", COLUMNS="60", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0",
        PYTHONIOENCODING="utf-8",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "障害対応手" in done.stdout
    assert "accessibility" in done.stdout
    told, there = re.findall(r"(\d+) acknowledged, (\d+) there", done.stdout)[0]
    assert told == there
    assert "Nothing that was acknowledged is gone." in done.stdout
    commands = [line for line in done.stdout.splitlines() if line.startswith("  clew --store")]
    wide = [line for line in done.stdout.splitlines() if cells(line) > 60]
    assert all(str(scratch) in line for line in wide)

    (folder,) = scratch.iterdir()
    assert f"\n  {folder}\n" in done.stdout
    assert {path.name for path in folder.iterdir()} >= {"clew.db", "transcripts", "NOTICE.md"}
    assert not [*(tmp_path / "home").iterdir(), *(tmp_path / "here").iterdir()]
    assert len(commands) >= 4
    for line in commands:
        run(*shlex.split(line)[1:])
    again = run("import", folder / "transcripts", "--store", folder / "clew.db").stdout
    assert "0 conversations new, 8 unchanged, 0 messages" in again


def test_the_demo_where_nothing_but_ascii_can_be_shown() -> None:
    done = process("demo", "--remove", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_the_demo_on_a_narrow_terminal(scratch: Path) -> None:
    code, shown = terminal("demo", "--remove", columns=60, NO_COLOR="1")
    assert code == 0
    assert "\x1b" not in shown
    assert all(str(scratch) in line for line in shown.splitlines() if cells(line) > 60)
    assert "対応" in shown


def test_the_demo_for_programs(
    loads: Callable[..., Any], scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One object; a profile that the environment names is used; --remove leaves nothing."""
    monkeypatch.setenv("CLEW_PROFILE", "mine")
    said = loads("demo", "--remove")
    assert said["ok"]
    assert said["removed"]
    assert list(scratch.iterdir()) == []
    assert said["imported"]["messages"] > 400
    assert {one["profile"] for one in said["conversations"]} == {"mine"}
    assert [one["query"] for one in said["searches"]] == ["accessibility", "対応"]
    assert all(one["hits"] for one in said["searches"])
    acks = said["writer"]["acknowledged"]
    assert [ack["seq"] for ack in acks] == list(range(1, len(acks) + 1))
    assert len(acks) >= 1
    after = said["after"]
    assert (after["acknowledged"], after["missing"], after["problems"]) == (len(acks), [], [])
    assert after["stored"] in (len(acks), len(acks) + 1)


def test_the_demo_uses_no_store_of_yours(run: Run, scratch: Path, tmp_path: Path) -> None:
    assert "leave out --store" in run("demo", "--store", tmp_path / "mine.db", code=2).stderr
    assert list(scratch.iterdir()) == []


def test_a_lost_message_fails_the_demo(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that had acknowledged one message more than it has."""

    def one_more(store: Path, profile: str, conversation: str) -> crash.Killed:
        killed = crash.kill_a_writer(store, profile, conversation)
        lost = crash.Ack(1_000_000, "00" * 16)
        return crash.Killed(
            pid=killed.pid, acks=(*killed.acks, lost), seconds=0.0, ended_itself=False
        )

    monkeypatch.setattr(steps, "kill_a_writer", one_more)
    said = run("demo", "--remove", code=1).stdout
    assert f"gone: #1000000 {'00' * 16}" in said
    assert "Nothing that was acknowledged is gone" not in said


def test_what_is_there_as_it_was_written(
    written: tuple[clew.Conversation, list[crash.Ack]],
) -> None:
    target, acks = written
    assert crash.missing(acks, target.messages()) == ()
    gone = crash.Ack(6, acks[0].uid)
    another = crash.Ack(2, acks[2].uid)
    assert crash.missing([*acks, gone, another], target.messages()) == (gone, another)
    other_text = crash.Ack(6, target.append([clew.user("something else")]).uids[0])
    assert crash.missing([*acks, other_text], target.messages()) == (other_text,)
    target.cut(acks[2].uid)
    assert crash.missing(acks, target.messages()) == tuple(acks[2:])


def test_a_line_without_its_end_acknowledges_nothing() -> None:
    assert crash.acknowledged("1 aa\n2 bb\n3 c") == [crash.Ack(1, "aa"), crash.Ack(2, "bb")]
    assert crash.acknowledged("") == []


def test_a_writer_that_ends_by_itself_is_no_proof(
    written: tuple[clew.Conversation, list[crash.Ack]], tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    killed = crash.kill_a_writer(tmp_path / "clew.db", "p", "no such conversation")
    assert killed.ended_itself
    assert killed.acks == ()
    assert "NotFound" in capfd.readouterr().err
    assert not steps.went_well([killed])
    assert not steps.Checked(0, 0, (), ()).whole


@pytest.mark.parametrize(
    ("bundled", "original"),
    [
        ("claude-code/fe5e1c67-53e7-4862-81ae-d0e013e3270b.jsonl",
         "claude-code/real-long-sidechains-summary.jsonl"),
        ("mini-swe-agent/github_issue.traj.json", "mini-swe-agent/github_issue.traj.json"),
    ],
)  # fmt: skip
def test_what_is_bundled_is_what_the_notice_says(bundled: str, original: str) -> None:
    """The same bytes as in the test data, whose SOURCES.tsv has their hashes."""
    path = steps.DATA / "transcripts" / bundled
    assert filecmp.cmp(path, TRANSCRIPTS / original, shallow=False)
    assert f"## transcripts/{path.parent.name}\n" in (steps.DATA / "NOTICE.md").read_text("utf-8")
