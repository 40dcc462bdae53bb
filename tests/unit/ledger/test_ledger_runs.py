"""Commands that run the same thing, however they are written, and errors that a later run mends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from talks import call, epoch, message, result, rows

from clew.compaction.ledger import Row
from clew.compaction.ledger.shell import read_command
from clew.domain.messages import Message, Role
from clew.domain.parts import ToolCall, ToolResult


def ran(*runs: tuple[str, str], first: int = 1) -> list[Message]:
    """Commands and what they print, one after the other."""
    out: list[Message] = []
    for at, (command, output) in enumerate(runs):
        seq = first + 2 * at
        out += [call(seq, "bash", command=command), result(seq + 1, output)]
    return out


def errors(*runs: tuple[str, str]) -> list[Row]:
    return rows(ran(*runs), "error")


FAILED = "src/a.ts(3,1): error TS2304: Cannot find name 'x'.\nnpm error command failed"


@pytest.mark.parametrize(
    "command",
    ["npm run check", "npm run check 2>&1 | tail -5", "npm run check | head -20",
     "cd app && npm run check", "cd app/ && npm run check 2>&1", "cd 'app'; npm run check",
     "npm run check 2>/dev/null | tail -n 3", "timeout 60 npm run check",
     "npm run check; echo $?", 'npm run check 2>&1 | grep -E "(error|success)" | head -20'],
)  # fmt: skip
def test_a_run_of_the_same_thing_mends_the_error(command: str) -> None:
    (row,) = errors(("cd app && npm run check 2>&1 | tail -20", FAILED), (command, "(no output)"))
    assert row.state == "fixed"
    assert "mended [@3]" in row.text


@pytest.mark.parametrize(
    "command",
    ["cd other && npm run check", "npm run build", "npm run check | wc -l", "npm run checks",
     'npm run check 2>&1 | grep "wrap-ansi"', "npm run check -- --fast"],
)  # fmt: skip
def test_a_run_of_something_else_or_that_does_not_tell_mends_nothing(command: str) -> None:
    rows = errors(("cd app && npm run check", FAILED), (command, "11"))
    assert [row.state for row in rows] == ["open"]


def test_the_newest_outcome_of_a_command_is_the_one_that_stands() -> None:
    talk = ran(
        ("pytest -q 2>&1 | tail -3", "1 failed, 677 passed in 9s"),
        ("cd /app && pytest -q | tail -20", "678 passed in 9s"),
        ("pytest -q | grep slow", ""),
    )
    (row,) = rows(talk, "command")
    assert row.text == "`cd /app && pytest -q` ×3 -> 678 passed in 9s"


def test_a_search_that_finds_nothing_is_no_failure() -> None:
    talk = [call(1, "bash", command="make 2>&1 | grep error"),
            result(2, "Command exited with code 1", is_error=True)]  # fmt: skip
    assert not rows(talk, "error")


def test_no_errors_are_no_error() -> None:
    assert not errors(("npx eslint src", "0 errors, 2 warnings"))
    assert not errors(("mypy src", "Success: no errors found"))


def test_another_build_that_goes_well_after_edits_says_so() -> None:
    talk = ran(("cd app && npx tsc --noEmit", FAILED), ("cd app && npm run build", FAILED))
    talk += [call(5, "edit", path="app/src/a.ts")]
    talk += ran(("cd app && npm run build", "built"), first=6)
    assert [row.state for row in rows(talk, "error")] == ["fixed", "fixed"]
    assert "since then `npm run build` goes well [@6]" in rows(talk, "error")[0].text
    without = ran(("npx tsc", FAILED), ("npm run build", "built"), ("npm test", "ok"))
    assert [row.state for row in rows(without, "error")] == ["open"]


def test_a_failed_look_is_worth_little() -> None:
    (row,) = errors(("cat missing.txt", "cat: missing.txt: No such file\nexit code: 2"))
    assert row.state == "looked"


def test_what_only_looks_has_no_row_before_all_else_has_one() -> None:
    talk = ran(*((f"grep -n word{n} src/a.py", "") for n in range(60)), ("make", "done"))
    shown = epoch(talk, room=4_000)
    assert "`make`" in shown.text
    assert shown.text.count("grep") <= 3
    assert shown.left_out == 0
    assert "more:" not in shown.text


def test_what_files_tell_needs_no_command() -> None:
    talk = ran(("sed -i 's/a/b/' src/a.py", ""), ("rm src/b.py", ""), ("mkdir -p out", ""))
    assert {row.state for row in rows(talk, "command")} == {"looked"}


@given(st.text(alphabet="cd agrep tail-|&;'\"\\2>1\n", max_size=60))
def test_a_command_read_again_is_the_same(text: str) -> None:
    once = read_command(text)
    assert read_command(once.text)._replace(through=()) == once._replace(through=())


def test_a_result_without_its_call_does_no_harm() -> None:
    talk = [message(1, Role.TOOL, ToolResult("none", "Error: x", None, True))]
    assert not rows(talk, "error")
    talk = [message(1, Role.ASSISTANT, ToolCall("1", "bash", '{"command": "| | && ;"}'))]
    assert len(rows(talk, "command")) == 1
