"""Errors, exit codes, pipes, and stores that are not there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.cli import failures, registry
from clew.cli.main import cli

from .helpers import REAL, Demo, Run, process

LISTINGS = (["list"], ["profiles"], ["search", "x"], ["bin"])


@pytest.mark.parametrize("command", LISTINGS)
def test_a_store_that_is_not_there_is_not_made(
    run: Run, tmp_path: Path, command: list[str]
) -> None:
    path = tmp_path / "none" / "clew.db"
    said = run(*command, "--store", path)
    assert said.stdout == ""
    assert "There is no store at" in said.stderr
    assert f"clew.open({str(path)!r}).profile('default')" in said.stderr
    assert json.loads(run(*command, "--store", path, "--json").stdout) == []
    assert not path.parent.exists()


def test_what_is_said_of_a_fresh_store_runs(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    for _ in range(2):  # no store, then an empty one
        said = run("list", "--store", path).stderr.splitlines()
        code = "\n".join(line.strip() for line in said if line.startswith("    "))
        clew.open(path).close()
    subprocess.run([sys.executable, "-c", code], check=True)
    assert run("list", "--store", path).stdout.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [
        ["show", "x"], ["resume", "x"], ["rename", "x", "y"], ["pin", "x"], ["unpin", "x"],
        ["archive", "x"], ["unarchive", "x"], ["branch", "x"], ["cut", "x", "1", "--yes"],
        ["undo", "x"], ["delete", "x", "--yes"], ["verify"], ["backup", "y"],
    ],
)  # fmt: skip
def test_other_commands_need_a_store(run: Run, tmp_path: Path, command: list[str]) -> None:
    path = tmp_path / "none.db"
    error = run("--store", path, *command, code=3).stderr
    assert error.startswith(f"clew: there is no store at {path}")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_stats_and_doctor_of_no_store(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    assert "There is no store" in run("stats", "--store", path).stderr
    assert json.loads(run("stats", "--store", path, "--json").stdout) == {}
    assert "no store at" in run("doctor", "--store", path).stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "code", "remedy"),
    [
        (["lst"], 2, "did you mean list?"),
        (["qqq"], 2, "clew --help"),
        (["list", "--bogus"], 2, "clew list --help"),
        (["list", "--limit", "0"], 2, "clew list --help"),
        (["list", "--since", "whenever"], 2, "give 2026-01-31"),
        (["show"], 2, "clew show --help"),
        (["show", "nobody"], 3, "clew list"),
        (["search"], 2, "clew search --help"),
        (["search", "x", "--in", "nobody"], 3, "clew list"),
        (["search", "x", "--role", "robot"], 2, "clew search --help"),
        (["undo", "{trip}"], 3, "clew"),
        (["cut", "{trip}", "99", "--yes"], 3, "clew"),
        (["branch", "{trip}", "--at-cut", "7"], 3, "clew"),
        (["backup", "/nowhere/at/all.db"], 2, "make it first"),
        (["restore", "/nowhere/at/all.db", "--yes"], 5, "no store"),
        (["completion", "show", "tcsh"], 2, "clew completion show --help"),
    ],
)
def test_errors_are_one_line_with_a_remedy(
    demo: Demo, run: Run, args: list[str], code: int, remedy: str
) -> None:
    given = [arg.format(**demo.ids._asdict()) for arg in args]
    result = run(*given, code=code)
    assert result.stdout == ""
    assert result.stderr.startswith("clew: ")
    assert result.stderr.count("\n") == 1
    assert remedy in result.stderr


def test_errors_as_json(demo: Demo, run: Run) -> None:
    found = json.loads(run("show", "nobody", "--json", code=3).stderr)
    assert (found["error"], found["exit_code"], found["retryable"]) == ("NotFound", 3, False)
    found = json.loads(run("list", "--json", "--bogus", code=2).stderr)
    assert "--bogus" in found["message"]
    assert run("search", "x", "--", "--json", code=1).stderr == "Nothing was found.\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (clew.InputError("x"), 2), (clew.TooLarge("title", 2, 1), 2), (clew.NotFound("a", "b"), 3),
        (clew.Ambiguous("a", ["b"]), 3), (clew.Stale("head", 1, 2), 4),
        (clew.Ended("a", "closed", True), 4), (clew.Busy("x"), 5), (clew.StoreFull("x"), 5),
        (clew.SearchUnavailable("x"), 5), (PermissionError(13, "denied", "/f"), 5),
        (failures.NoStore("x"), 3), (ZeroDivisionError("x"), 70),
    ],
)  # fmt: skip
def test_exit_codes(error: Exception, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert failures.report(error, as_json=False) == code
    said = capsys.readouterr().err
    assert said.startswith("clew: ")
    assert said.count("\n") == 1
    assert failures.report(error, as_json=True) == code
    assert json.loads(capsys.readouterr().err)["exit_code"] == code


def test_a_fault_of_clew_is_one_line_too(
    demo: Demo, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fault(_: clew.Profile) -> None:
        raise ZeroDivisionError("oh\nno")

    monkeypatch.setattr(clew.Profile, "stats", fault)
    error = run("stats", code=70).stderr
    assert "ZeroDivisionError: oh no" in error
    assert error.count("\n") == 1
    monkeypatch.setenv("CLEW_DEBUG", "1")
    assert cli.run(["stats"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_a_store_that_cannot_serve(demo: Demo, run: Run) -> None:
    demo.path.write_bytes(b"nonsense" * 100)
    for command in (["list"], ["show", "x"], ["verify"], ["stats"]):
        error = run(*command, code=5).stderr
        assert "not a clew store" in error
        assert error.count("\n") == 1


def test_a_reader_that_leaves_is_no_error(demo: Demo) -> None:
    with demo.open() as store:
        profile = store.profile("default")
        for i in range(300):
            profile.create(title=f"Conversation number {i} {'x' * 900}")
    command = [sys.executable, "-c", REAL, "list", "-n", "9999"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.readline()
    child.stdout.close()
    assert child.stderr.read() == ""
    child.stderr.close()
    assert child.wait(20) == 0


@pytest.mark.skipif(os.name == "nt", reason="a shell of Unix closes the stream")
def test_a_closed_output_is_no_error(demo: Demo) -> None:
    command = ["sh", "-c", f"exec \"{sys.executable}\" -c '{REAL}' list --json >&-"]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_interrupting_is_quiet(demo: Demo, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: clew.Profile) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(20)

    monkeypatch.setattr(clew.Profile, "stats", interrupt)
    assert run("stats", code=130).stderr == "\n"


def test_keywords_of_libpq_are_not_printed(run: Run) -> None:
    for line in (["list"], ["doctor"], ["migrate"], ["stats", "--json"]):
        said = run(*line, "--store", "host=h password='se cret' dbname=d", code=2)
        assert "give a URL" in said.stderr
        assert "cret" not in said.output


def test_an_encoding_without_signs(demo: Demo) -> None:
    done = process("search", "京", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert "\\u4eac" in done.stdout
    found = process("list", "--pinned", "--json", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert json.loads(found.stdout)[0]["title"] == "Reise nach Kyōto 京都"
    assert process("doctor", PYTHONIOENCODING="ascii").stdout.startswith("ok sqlite")


def test_options_of_all_commands_stand_before_or_after(demo: Demo, run: Run) -> None:
    line = ["--store", str(demo.path), "--profile", "bot", "--no-color"]
    assert run(*line, "list").stdout == run("list", *line).stdout != ""


def test_the_environment(demo: Demo, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_PROFILE", "bot")
    assert demo.ids.bot in run("list").stdout
    monkeypatch.delenv("CLEW_STORE")
    monkeypatch.setenv("CLEW_HOME", str(demo.path.parent))
    assert demo.ids.bot in run("list").stdout


def test_help_and_version(run: Run) -> None:
    assert run("--version").stdout.startswith(f"clew {clew.__version__} (SQLite ")
    shown = run("--help").stdout
    assert shown == run("-h").stdout == run().stdout
    assert "Exit codes: 0 done" in shown
    for name, entry in registry.COMMANDS.items():
        assert f"  {name} " in shown
        assert entry.summary in run(name, "--help").stdout


def test_only_what_a_command_needs_is_loaded() -> None:
    """clew list is called the most: neither Rich nor the other commands are read for it."""
    code = (
        "import sys; from clew.cli.main import cli; cli.run(['list', '--store', '/none'])\n"
        "print(*sorted(m for m in sys.modules if m.startswith('clew.cli.commands.')))\n"
        "print('rich' in sys.modules, 'asyncio' in sys.modules, 'typing_extensions' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    commands, loaded = done.stdout.splitlines()
    assert commands == "clew.cli.commands.list"
    assert loaded.startswith("False")


def test_the_table_and_the_commands_agree(run: Run) -> None:
    context: Any = cli.make_context("clew", ["profiles"], resilient_parsing=True)
    for name, entry in registry.COMMANDS.items():
        command = cli.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert (command.help or "").splitlines()[0] == entry.summary
