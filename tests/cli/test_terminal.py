"""What a person sees: colours, tables, the pager and questions, on a pseudo-terminal."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

import pytest

from clew.cli.main import main
from clew.cli.text import cells

from .helpers import Demo, Run

if sys.platform == "win32":
    pytest.skip("no pseudo-terminals", allow_module_level=True)

import fcntl
import pty
import select
import struct
import termios


def _child(args: list[str], env: dict[str, str]) -> NoReturn:
    """The process on the terminal: a fork of this one, which saves the start of an interpreter."""
    code = 99
    try:
        os.environ.update({"TERM": "xterm-256color", "CLEW_PAGER": "cat"} | env)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        sys.argv = ["clew", *args]
        code = main()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def terminal(
    *args: object, answer: str = "", wait_for: str = "", columns: int = 80, **env: str
) -> tuple[int, str]:
    """Run clew on a terminal; type the answer once `wait_for` is there. (exit code, output)"""
    child, master = pty.fork()
    if child == 0:
        _child([str(arg) for arg in args], env)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    output, answered, deadline = b"", not answer, time.monotonic() + 30
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.1)[0]:
            try:
                read = os.read(master, 65536)
            except OSError:  # closed
                break
            if not read:
                break
            output += read
        if not answered and wait_for.encode() in output:
            time.sleep(0.2)  # as a person: a prompt is printed before it listens
            os.write(master, answer.encode())
            answered = True
    if time.monotonic() >= deadline:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(master)
    return os.waitstatus_to_exitcode(status), output.decode().replace("\r\n", "\n")


def test_a_list_is_a_table_in_colours(demo: Demo) -> None:
    code, shown = terminal("list")
    assert code == 0
    lines = shown.splitlines()
    assert "ID" in lines[0]
    assert "ACTIVITY" in lines[0]
    assert f"\x1b[33m{demo.ids.trip[:8]}\x1b[0m" in lines[1]
    assert "★ Reise nach Kyōto 京都" in lines[1]
    assert re.search(r"just now|\d+m ago", shown)  # the fixture may be minutes old
    _, everywhere = terminal("list", "--all-profiles")
    assert "PROFILE" in everywhere


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_a_list_has_room_and_marks_branches(demo: Demo, run: Run, columns: int) -> None:
    run("rename", demo.ids.other_way, "Fix the flaky retry test")
    lines = terminal("list", "--no-color", columns=columns)[1].splitlines()
    assert all(cells(line) <= columns for line in lines)
    titles = {line[:8]: line[10:] for line in lines}
    assert titles[demo.ids.other_way[:8]].startswith("branch Fix")
    assert titles[demo.ids.flaky[:8]].startswith("Fix")
    assert ("MESSAGES" in lines[0], "SOURCE" in lines[0]) == (columns > 40, columns > 52)


@pytest.mark.parametrize("how", ["option", "variable"])
def test_no_colours(demo: Demo, how: str) -> None:
    args = ["--no-color"] if how == "option" else []
    env = {"NO_COLOR": "1"} if how == "variable" else {}
    for command in (["list"], ["show", demo.ids.flaky], ["doctor"], ["search", "diff"]):
        _, shown = terminal(*args, *command, **env)
        assert "\x1b[" not in shown


def test_a_conversation_is_wrapped_and_coloured(demo: Demo) -> None:
    code, shown = terminal("show", demo.ids.flaky, "--log", columns=60)
    assert code == 0
    assert "\x1b[1;36muser" in shown
    assert "^[[31mred^[[0m^G" in shown
    assert "\x1b[31mred" not in shown
    assert "\x07" not in shown


def test_the_pager_gets_it(demo: Demo, tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho PAGER $LESS\ncat\n")
    pager.chmod(0o755)
    _, shown = terminal("show", demo.ids.long, CLEW_PAGER=str(pager))
    assert shown.startswith("PAGER FRX")
    assert "answer 59" in shown
    _, direct = terminal("show", demo.ids.long, "--no-pager", CLEW_PAGER=str(pager))
    assert "PAGER" not in direct
    _, missing = terminal("show", demo.ids.long, CLEW_PAGER="/no/such/pager")
    assert "answer 59" in missing


def test_a_pager_that_is_left_early(demo: Demo) -> None:
    code, shown = terminal("show", demo.ids.long, "--full", PAGER="head -1", CLEW_PAGER="head -1")
    assert (code, shown.count("\n")) == (0, 1)


@pytest.mark.skipif(not Path("/usr/bin/less").exists(), reason="no less")
def test_less(demo: Demo) -> None:
    env = {"CLEW_PAGER": "/usr/bin/less"}
    code, shown = terminal("show", demo.ids.long, answer="q", wait_for="question 0", **env)
    assert code == 0
    assert "question 0" in shown
    assert "answer 59" not in shown


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 57), ("n\n", 1, 60)])
def test_a_question(demo: Demo, answer: str, code: int, left: int) -> None:
    got, shown = terminal("cut", demo.ids.long, "58", answer=answer, wait_for="[y/N]")
    assert got == code
    assert "answer 57" in shown
    assert ("Hid 3 messages" in shown) == (code == 0)
    with demo.open() as store:
        assert store.profile("default").open(demo.ids.long).info().message_count == left


def test_leaving_a_question(demo: Demo) -> None:
    code, _ = terminal("delete", demo.ids.trip, answer="\x03", wait_for="[y/N]")
    assert code == 130
    with demo.open() as store:
        assert store.profile("default").open(demo.ids.trip).info().message_count == 2


def test_a_search_says_how_to_read_on(demo: Demo, run: Run) -> None:
    _, shown = terminal("search", "scheduler", "-n", "2", NO_COLOR="1")
    command = re.search(r"To read on at one: clew (show \w+ --around \d+)\n", shown)
    assert command is not None
    assert "question 58 about the scheduler" in run(*shlex.split(command[1])).stdout


def test_a_question_before_a_restore(demo: Demo, tmp_path: Path) -> None:
    code, shown = terminal("backup", tmp_path / "b.db")
    assert (code, "read back and complete" in shown) == (0, True)
    code, shown = terminal("restore", tmp_path / "b.db", answer="y\n", wait_for="[y/N]")
    assert code == 0
    assert "is in order: 6 conversations" in shown
    assert "kept as" in shown


def test_other_tables(demo: Demo) -> None:
    assert "PROFILE" in terminal("profiles")[1]
    assert "SOURCE" in terminal("stats")[1]
    _, shown = terminal("search", "kirschen")
    assert "\x1b[1;31mKirschen\x1b[0m" in shown
    assert "Every invariant holds." in terminal("verify")[1]
    assert "Go on from Python" in terminal("resume", demo.ids.flaky)[1]
    assert "There is nothing" in terminal("prune")[1]
