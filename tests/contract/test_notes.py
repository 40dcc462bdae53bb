"""Beside the log: todos, the goal, presence."""

from __future__ import annotations

import pytest
from talk import talk

import clew
from clew import Todo
from clew.testing.clock import FakeClock


def test_todos_are_replaced_as_a_list(conv: clew.Conversation) -> None:
    conv.set_todos([Todo("a"), Todo("b", "active"), Todo("c", "done"), Todo("d", "dropped")])
    assert [t.text for t in conv.todos()] == ["a", "b", "c", "d"]
    conv.set_todos([Todo("b", "done")])
    assert conv.todos() == (Todo("b", "done"),)
    conv.set_todos([])
    assert conv.todos() == ()


def test_a_todo_has_a_known_state(conv: clew.Conversation) -> None:
    conv.set_todos([Todo("a")])
    with pytest.raises(clew.InputError):
        conv.set_todos([Todo("b"), Todo("c", "later")])  # pyright: ignore
    assert conv.todos() == (Todo("a"),)


def test_todos_are_part_of_the_context_and_of_no_transcript(conv: clew.Conversation) -> None:
    talk(conv, "a")
    conv.set_todos([Todo("t")])
    assert conv.context_inputs().todos == (Todo("t"),)
    assert conv.info().message_count == 1


def test_s24_1_one_goal_is_active(conv: clew.Conversation) -> None:
    first = conv.set_goal("win")
    assert (first.number, first.state) == (1, "active")
    assert conv.set_goal("win") == first
    second = conv.set_goal("draw")
    assert second.number == 2
    assert conv.goal() == second == conv.context_inputs().goal
    assert conv.close_goal()
    assert not conv.close_goal(done=False)
    assert conv.goal() is None
    assert conv.set_goal("win").number == 3


@pytest.mark.requires("presence")
def test_s27_presence_says_who_is_at_work(conv: clew.Conversation, clock: FakeClock) -> None:
    """S27.1."""
    conv.beat("worker-1", "reading")
    clock.advance(10)
    conv.beat("worker-2")
    conv.beat("worker-1", "writing")
    one, two = conv.presence()
    assert (one.owner, one.label, one.heartbeat) == ("worker-1", "writing", clock.now())
    assert (two.owner, two.label) == ("worker-2", None)
    conv.leave("worker-1")
    conv.leave("nobody")
    assert [p.owner for p in conv.presence()] == ["worker-2"]
    assert not conv.info().ended
