"""An interruption keeps what a model had streamed: a message of its turn, marked as partial."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from talk import HOLDER, OTHER, begun, calls, result, talk, texts

import clew
from clew import CallPlan, CallResult, Message
from clew.testing.clock import FakeClock

PLAN = CallPlan(model="m")
LONG = 10 * 60 * 1_000_000
"""Microseconds after which a holder that was not heard of is gone."""


def speaking(conv: clew.Conversation, said: str = "so far") -> clew.TurnHandle:
    """A turn whose model has streamed this."""
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER, call=PLAN))
    assert turn.call is not None
    turn.save_partial(turn.call, said)
    return turn


def partials(conv: clew.ConversationReader) -> list[Message]:
    return [m for m in conv.messages(hidden=True) if (m.meta or {}).get("partial") is True]


Stop = Callable[[clew.Profile, clew.Conversation, FakeClock], Any]
STOPS: dict[str, tuple[Stop, list[str]]] = {
    "the person": (lambda p, c, t: c.interrupt_turn("why"), ["go", "so far"]),
    "a message": (
        lambda p, c, t: (t.advance(LONG), c.append([clew.user("more")])),
        ["go", "so far", "more"],
    ),
    "a message onto a head": (
        lambda p, c, t: (t.advance(LONG), c.append([clew.user("more")], head=1)),
        ["go", "so far", "more"],
    ),
    "a turn": (
        lambda p, c, t: (t.advance(LONG), c.begin_turn([clew.user("more")], holder=OTHER)),
        ["go", "so far", "more"],
    ),
    "a turn at a head": (
        lambda p, c, t: (t.advance(LONG), c.begin_turn(holder=OTHER, head=1)), ["go", "so far"],
    ),
    "what a channel delivers": (
        lambda p, c, t: (
            t.advance(LONG),
            p.receive("key", [clew.user("more")], source="tg", account="a", key="1"),
        ),
        ["go", "so far", "more"],
    ),
    "the end": (lambda p, c, t: c.end("closed"), ["go", "so far"]),
    "a reset": (lambda p, c, t: p.reset("key", source="tg"), ["go", "so far"]),
    "a cut": (lambda p, c, t: c.cut(c.message(1).uid), []),
    "an edit": (lambda p, c, t: c.edit(c.message(1).uid, clew.user("else")), ["else"]),
    "a retry": (lambda p, c, t: c.retry(c.message(1).uid), ["go"]),
    "a pop": (lambda p, c, t: c.pop(), []),
    "a replacement": (lambda p, c, t: c.replace([clew.user("all new")]), ["all new"]),
}  # fmt: skip
"""Every way in which a turn is interrupted, and what is shown after it."""


@pytest.mark.parametrize("how", STOPS)
def test_what_was_streamed_is_a_message(profile: clew.Profile, clock: FakeClock, how: str) -> None:
    conv = profile.conversation("key", source="tg")
    turn = speaking(conv)
    stop, shown = STOPS[how]
    stop(profile, conv, clock)
    assert texts(conv) == shown
    (kept,) = partials(conv)
    assert (kept.seq, kept.role, kept.text, kept.turn) == (2, clew.Role.ASSISTANT, "so far", 1)
    (first,) = [row for row in conv.turns() if row.number == 1]
    assert first.state == "interrupted"
    assert (conv.calls()[0].state, conv.calls()[0].error) == ("failed", "interrupted")
    with pytest.raises(clew.RightLost):
        turn.finish([clew.assistant("late")])


def test_a_deletion_of_a_turn_that_speaks(profile: clew.Profile, conv: clew.Conversation) -> None:
    speaking(conv)
    branch = conv.branch()
    profile.delete(conv.id)
    assert texts(branch) == ["go"]
    with pytest.raises(clew.NotFound):
        conv.info()


def test_it_stands_behind_the_steps_of_its_turn(conv: clew.Conversation) -> None:
    """And a turn of two steps keeps the words of the second alone."""
    turn = speaking(conv, "thrown away, the answer is stored")
    turn.record([calls("c1")], call=1, result=CallResult())
    recorded = turn.record([result("c1")], next_call=PLAN)
    assert recorded.call is not None
    turn.save_partial(recorded.call, "It ")
    turn.save_partial(recorded.call, "It says")
    conv.append([clew.user("waits")])
    conv.interrupt_turn()
    assert texts(conv) == ["go", "call c1", "result c1", "It says"]
    assert [m.turn for m in conv.messages()] == [1, 1, 1, 1]
    assert texts([conv.message(4)]) == [partials(conv)[0].text]
    talk(conv, "next")
    assert texts(conv)[-3:] == ["It says", "waits", "next"]


@pytest.mark.parametrize("said", ["", " ", "\n\t \u2003"])
def test_nothing_but_space_is_no_message(conv: clew.Conversation, said: str) -> None:
    speaking(conv, said)
    conv.interrupt_turn()
    assert texts(conv) == ["go"]
    assert partials(conv) == []


def test_only_a_planned_call_has_something_to_keep(conv: clew.Conversation) -> None:
    turn = speaking(conv)
    turn.record([clew.assistant("so far so good")], call=1, result=CallResult())
    conv.interrupt_turn()
    assert texts(conv) == ["go", "so far so good"]
    again = begun(conv.begin_turn([clew.user("again")], holder=HOLDER, call=PLAN))
    assert again.call is not None
    again.save_partial(again.call, "broken off")
    again.record(call=again.call, result=CallResult(state="failed", error="no network"))
    conv.interrupt_turn()
    assert partials(conv) == []


def test_a_turn_that_ends_by_itself_keeps_what_it_says(conv: clew.Conversation) -> None:
    """Its holder stores its words, and nobody else."""
    for state in ("done", "failed", "interrupted"):
        turn = speaking(conv)
        turn.finish([clew.assistant("mine")], state=state)
        assert conv.message(conv.info().head).text == "mine"
    assert partials(conv) == []


def test_a_call_outside_the_turn_is_not_its_words(conv: clew.Conversation) -> None:
    conv.plan_call(CallPlan(model="m", purpose="title"))
    begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    conv.interrupt_turn()
    assert texts(conv) == ["go"]


def test_the_cut_that_hid_it_is_undone(conv: clew.Conversation) -> None:
    talk(conv, "a", "b")
    speaking(conv)
    done = conv.cut(conv.message(3).uid)
    assert (done.from_seq, done.to_seq, done.head, done.interrupted_turn) == (3, 4, 4, 1)
    assert texts(conv) == ["a", "b"]
    conv.undo_cut(done.number)
    assert texts(conv) == ["a", "b", "go", "so far"]
    assert conv.context("m")[-1]["content"] == "so far"


def test_the_words_of_a_turn_that_waits_were_stored_by_it(conv: clew.Conversation) -> None:
    turn = speaking(conv, "I will look")
    turn.record([calls("c1")], call=1, result=CallResult(), asks=[clew.Ask("c1", "run")])
    turn.wait()
    conv.interrupt_turn()
    assert texts(conv) == ["go", "call c1"]
    assert partials(conv) == []


class TestTooLarge:
    """What is no message, since the limit counts bytes of JSON, keeps no turn from ending."""

    @pytest.fixture
    def limits(self) -> clew.Limits:
        return clew.Limits(message=100)

    def test_it_stays_beside_its_call(self, conv: clew.Conversation) -> None:
        speaking(conv, "é" * 100)
        assert conv.interrupt_turn()
        assert texts(conv) == ["go"]
        assert (conv.calls()[0].state, conv.calls()[0].partial) == ("failed", "é" * 100)
        talk(conv, "more")
        assert texts(conv) == ["go", "more"]


def test_any_text_is_kept_as_it_was(conv: clew.Conversation) -> None:
    said = "half a \ud83d and \0, e\u0301 “quoted” \\u0041 \U0001f600"
    speaking(conv, said)
    conv.interrupt_turn()
    assert conv.message(2).text == said
    assert conv.calls()[0].partial == said
