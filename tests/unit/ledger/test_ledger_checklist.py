"""Lists of things to do that agents keep with their tools."""

from __future__ import annotations

import pytest
from talks import call, epoch, result, rows

from clew.compaction.ledger import fold

LISTS = [
    ("TodoWrite", {"todos": [{"content": "Write it", "status": "completed", "activeForm": "x"},
                             {"content": "Test it", "status": "pending", "activeForm": "y"}]}),
    ("update_plan", {"explanation": "so", "plan": [{"step": "Write it", "status": "completed"},
                                                   {"step": "Test it", "status": "pending"}]}),
    ("todo_write", {"merge": False, "todos": [{"id": "1", "content": "Write it", "status": "done"},
                                              {"id": "2", "content": "Test it", "status": "new"}]}),
    ("write_todos", {"todos": [{"description": "Write it", "status": "completed"},
                               {"description": "Test it", "status": "pending"}]}),
    ("todo", {"items": [{"text": "Write it", "done": True}, {"text": "Test it", "done": False}]}),
    ("update_todo_list", {"todos": "[x] Write it\n[ ] Test it"}),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "arguments"), LISTS)
def test_what_is_left_of_a_list_is_open(tool: str, arguments: dict[str, object]) -> None:
    (row,) = rows([call(1, tool, **arguments), result(2, "ok")], "ask")
    assert row.text == "Todo list, 1 done: Test it"


def items(**states: str) -> list[dict[str, str]]:
    return [{"content": text, "status": state} for text, state in states.items()]


def test_the_next_list_replaces_the_last() -> None:
    talk = [
        call(1, "TodoWrite", todos=items(Plan="in_progress", Build="pending", Ship="pending")),
        call(2, "TodoWrite", todos=items(Plan="completed", Build="pending", Ship="in_progress")),
    ]
    (row,) = rows(talk, "ask")
    assert (row.text, row.seq) == ("Todo list, 1 done: Ship (begun); Build", 2)


def test_a_list_that_is_done_leaves_nothing() -> None:
    talk = [call(1, "TodoWrite", todos=items(Plan="pending"))]
    assert not rows([*talk, call(2, "TodoWrite", todos=items(Plan="completed"))], "ask")
    assert not rows([*talk, call(2, "TodoWrite", todos=[])], "ask")


def test_changes_of_single_items_keep_the_others() -> None:
    talk = [
        call(1, "todo_write", todos=[{"id": "a", "content": "Plan", "status": "pending"},
                                     {"id": "b", "content": "Build", "status": "pending"}]),
        call(2, "todo_write", merge=True, todos=[{"id": "a", "status": "completed"}]),
    ]  # fmt: skip
    (row,) = rows(talk, "ask")
    assert row.text == "Todo list, 1 done: Build"


@pytest.mark.parametrize("left", ["pending", "completed"])
def test_a_list_of_an_earlier_epoch_is_gone_when_there_is_a_newer_one(left: str) -> None:
    before = epoch([call(1, "TodoWrite", todos=items(Plan="pending", Build="pending"))])
    assert "Todo list: Plan; Build [@1]" in before.text
    after = epoch([call(2, "TodoWrite", todos=items(Plan="completed", Build=left))], before)
    assert "No longer holds: todo list [@1]." in after.text
    one = fold([before, after], number=3, room=20_000, count=len)
    assert "Plan" not in one.text
    assert ("Build" in one.text) == (left == "pending")


@pytest.mark.parametrize(
    "arguments",
    [{"todos": [1, None]}, {"tasks": [{"prompt": "x"}]}, {"plan": "think first"}, {"todos": {}},
     {"items": [{"status": "pending"}]}, {"steps": ["a", "b"]}],
)  # fmt: skip
def test_other_lists_are_no_list_of_things_to_do(arguments: dict[str, object]) -> None:
    assert not rows([call(1, "tool", **arguments)], "ask")
