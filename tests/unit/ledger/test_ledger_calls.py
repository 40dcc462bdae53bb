"""Files, commands and errors, of the tools of many agents."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from talks import agent, call, epoch, message, result, rows, user

from clew.compaction.ledger import Row
from clew.domain.messages import Message, Role
from clew.domain.parts import ToolCall

EDITS = [
    ("Edit", {"file_path": "/app/a.py", "old_string": "x", "new_string": "y"}),
    ("Write", {"file_path": "/app/a.py", "content": "x"}),
    ("MultiEdit", {"file_path": "/app/a.py", "edits": []}),
    ("NotebookEdit", {"notebook_path": "/app/a.py", "new_source": "x"}),
    ("edit", {"path": "/app/a.py", "oldText": "x", "newText": "y"}),
    ("str_replace_editor", {"command": "create", "path": "/app/a.py", "file_text": "x"}),
    ("create", {"filename": "/app/a.py"}),
    ("apply_patch", {"input": "*** Begin Patch\n*** Update File: /app/a.py\n@@\n-x\n+y\n"}),
    ("shell", {"command": ["bash", "-lc", "sed -i 's/x/y/' /app/a.py"]}),
    ("terminal", {"command": "cat > /app/a.py <<'EOF'\nx\nEOF"}),
    ("exec_command", {"cmd": "printf x | tee /app/a.py"}),
]
READS = [
    ("Read", {"file_path": "/app/a.py"}),
    ("read", {"path": "/app/a.py"}),
    ("open", {"path": "/app/a.py"}),
    ("str_replace_editor", {"command": "view", "path": "/app/a.py"}),
    ("bash", {"command": "sed -n '1,40p' /app/a.py"}),
    ("run_shell_command", {"command": "cat /app/a.py"}),
]
DELETES = [
    ("bash", {"command": "rm /app/a.py"}),
    ("bash", {"command": "cd /app && git rm -f '/app/a.py' && git commit -m x"}),
    ("shell", {"command": ["bash", "-lc", "git -C /app mv /app/a.py /app/lib"]}),
    ("delete_file", {"target_file": "/app/a.py"}),
    ("apply_patch", {"input": "*** Begin Patch\n*** Delete File: /app/a.py\n*** End Patch"}),
    ("editor", {"command": "delete", "path": "/app/a.py"}),
]


def files(talk: Sequence[Message]) -> dict[str, str | None]:
    return {row.text: row.state for row in rows(talk, "file")}


def only(talk: Sequence[Message], kind: str) -> Row:
    (row,) = rows(talk, kind)
    return row


@pytest.mark.parametrize(("tool", "arguments"), EDITS)
def test_edited_files(tool: str, arguments: dict[str, object]) -> None:
    assert files([call(1, tool, **arguments)]) == {"/app/a.py": "edited"}


@pytest.mark.parametrize(("tool", "arguments"), READS)
def test_read_files(tool: str, arguments: dict[str, object]) -> None:
    assert files([call(1, tool, **arguments)]) == {"/app/a.py": "read"}


@pytest.mark.parametrize(("tool", "arguments"), DELETES)
def test_deleted_files(tool: str, arguments: dict[str, object]) -> None:
    talk = [call(1, "edit", path="/app/a.py"), call(3, tool, **arguments)]
    assert files(talk) == {"/app/a.py": "deleted"}
    assert "deleted: /app/a.py (@3)" in epoch(talk).text


def test_a_deleted_file_that_is_written_again_is_edited() -> None:
    talk = [call(1, "bash", command="rm a.py b.py"), call(3, "write", path="a.py")]
    assert files(talk) == {"a.py": "edited", "b.py": "deleted"}


def test_a_moved_file_is_gone_from_where_it_was() -> None:
    talk = [call(1, "bash", command="git mv src/a.py src/b.py")]
    assert files(talk) == {"src/a.py": "deleted", "src/b.py": "edited"}
    patch = "*** Begin Patch\n*** Update File: c.py\n*** Move to: d.py\n@@\n-x\n+y\n"
    talk = [call(1, "apply_patch", input=patch)]
    assert files(talk) == {"c.py": "deleted", "d.py": "edited"}


def test_a_file_read_after_its_edit_stays_edited() -> None:
    talk = [call(1, "edit", path="a.py"), result(2, "ok"), call(3, "read", path="a.py")]
    assert files(talk) == {"a.py": "edited"}


def test_an_editor_without_a_path_edits_the_open_file() -> None:
    talk = [
        call(1, "edit", search="x", replace="y"),
        result(2, "Text replaced.\n(Open file: /testbed/fields.py)\n(Current directory: /testbed)"),
    ]
    assert files(talk) == {"/testbed/fields.py": "edited"}


def test_files_that_outputs_name_are_an_index() -> None:
    talk = [
        call(1, "bash", command="ls"),
        result(2, "a.py  docs/b.md  https://x.io/c.html  img.png"),
    ]
    assert files(talk) == {"a.py": "seen", "docs/b.md": "seen"}


def test_a_command_tells_how_often_and_how_it_last_ended() -> None:
    talk = [
        call(1, "bash", command="pytest -q"),
        result(2, "1 failed, 3 passed in 0.2s\nexit code: 1"),
        call(3, "bash", command="pytest  -q"),
        result(4, "4 passed in 0.2s\nexit code: 0"),
    ]
    row = only(talk, "command")
    assert row.text == "`pytest -q` ×2 -> exit 0; 4 passed in 0.2s"
    assert row.seq == 3


def test_an_error_tells_what_mended_it() -> None:
    talk = [
        call(1, "bash", command="pytest -q"),
        result(2, "FAILED test_a.py - AssertionError: 1 != 2\n1 failed\nexit code: 1"),
        call(3, "edit", path="src/a.py"),
        result(4, "ok"),
        call(5, "bash", command="pytest -q"),
        result(6, "4 passed\nexit code: 0"),
    ]
    row = only(talk, "error")
    assert row.state == "fixed"
    assert "AssertionError: 1 != 2" in row.text
    assert "mended after editing src/a.py [@5]" in row.text


def test_what_a_search_prints_is_no_error() -> None:
    talk = [
        call(1, "bash", command="cd src && grep -rn Error ."),
        result(2, "a.py:3: raise ValueError\nexit code: 0"),
        call(3, "bash", command="grep nothing a.py"),
        result(4, "Command exited with code 1", is_error=True),
    ]
    assert not rows(talk, "error")


def test_a_tool_that_fails_is_an_error() -> None:
    talk = [call(1, "edit", path="a.py"), result(2, "Could not find the text", is_error=True)]
    assert "edit a.py: Could not find the text" in only(talk, "error").text


@pytest.mark.parametrize("arguments", ["{]", "", "[1]", "ls -la", '"x"', "{" * 5_000])
def test_arguments_that_are_no_mapping_do_no_harm(arguments: str) -> None:
    assert not rows([message(1, Role.ASSISTANT, ToolCall("1", "edit", arguments))])


def test_no_edited_file_is_missing_where_there_is_hardly_room() -> None:
    talk = [user(1, "Rewrite all of it, please.")]
    for n in range(40):
        talk += [call(2 + 2 * n, "edit", path=f"src/pkg{n % 4}/module_{n}.py")]
        talk += [result(3 + 2 * n, "ok")]
    talk.append(agent(82, "All forty modules are rewritten."))
    text = epoch(talk, room=3_000).text
    assert [n for n in range(40) if f"module_{n}.py" not in text] == []
