"""What reaches a conversation while it works: into the turn that runs, or for the next one."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from talk import HOLDER, OTHER, begun, calls, result, talk, texts

import clew
from clew.domain.parts import plain_text
from clew.testing.clock import FakeClock

QUEUE = {"queue": True}


@pytest.fixture
def turn(conv: clew.Conversation) -> clew.TurnHandle:
    """An open turn."""
    return begun(conv.begin_turn([clew.user("go")], holder=HOLDER))


def waits(conv: clew.Conversation) -> list[str]:
    """What is in the inbox."""
    return [plain_text(entry.parts) for entry in conv.inbox()]


def test_a_message_steers_the_turn_that_runs(
    conv: clew.Conversation, turn: clew.TurnHandle
) -> None:
    """At its next step, once; whatever else is in its meta."""
    conv.append([clew.user("a")])
    for number, meta in enumerate(({"queue": False}, {"queue": 1}, {"queue": "true"}, {"x": 1})):
        conv.append([clew.user(f"b{number}", meta=meta)])
    recorded = turn.record([clew.assistant("on it")], take_inbox=True)
    assert recorded.taken == (1, 2, 3, 4, 5)
    assert texts(conv) == ["go", "on it", "a", "b0", "b1", "b2", "b3"]
    assert {m.turn for m in conv.messages()} == {1}
    assert turn.record(take_inbox=True).taken == ()


def test_a_message_that_wants_the_next_turn_waits_for_it(
    conv: clew.Conversation, turn: clew.TurnHandle
) -> None:
    """And so do those behind it: nothing overtakes."""
    conv.append([clew.user("now")])
    conv.append([clew.user("next", meta=QUEUE)])
    conv.append([clew.user("behind it")])
    assert turn.record(take_inbox=True).taken == (1,)
    assert turn.record(take_inbox=True).taken == ()
    assert waits(conv) == ["next", "behind it"]
    assert conv.info().waiting == 2
    ended = turn.finish([clew.assistant("done")])
    assert ended.waiting == 2
    assert texts(conv) == ["go", "now", "done"]
    begun(conv.begin_turn(holder=OTHER))
    assert texts(conv) == ["go", "now", "done", "next", "behind it"]
    assert [m.turn for m in conv.messages()] == [1, 1, 1, 2, 2]
    assert conv.info().waiting == 0


def test_one_that_wants_the_next_turn_is_first(
    conv: clew.Conversation, turn: clew.TurnHandle
) -> None:
    conv.append([clew.user("next", meta=QUEUE), clew.user("too")])
    assert turn.record([clew.assistant("x")], take_inbox=True).taken == ()
    assert texts(conv) == ["go", "x"]
    assert conv.withdraw(1)
    assert turn.record(take_inbox=True).taken == (2,)
    assert texts(conv) == ["go", "x", "too"]


def test_every_turn_takes_all_that_waits(conv: clew.Conversation, turn: clew.TurnHandle) -> None:
    """Also several that want a turn of their own: they are answered together."""
    conv.append([clew.user("one", meta=QUEUE), clew.user("two", meta=QUEUE)])
    turn.finish()
    begun(conv.begin_turn([clew.user("three")], holder=OTHER))
    assert texts(conv) == ["go", "one", "two", "three"]


def test_a_plain_append_takes_them_too(conv: clew.Conversation, turn: clew.TurnHandle) -> None:
    conv.append([clew.user("one", meta=QUEUE)])
    turn.finish()
    talk(conv, "two")
    assert texts(conv) == ["go", "one", "two"]


def test_nothing_comes_between_a_call_and_its_result(
    conv: clew.Conversation, turn: clew.TurnHandle
) -> None:
    conv.append([clew.user("now")])
    assert turn.record([calls("c1")], take_inbox=True).taken == ()
    assert turn.record([result("c1")], take_inbox=True).taken == (1,)
    assert texts(conv) == ["go", "call c1", "result c1", "now"]


# ---------------------------------------------------------------- an answer to what is there


def test_a_turn_answers_what_stands_at_the_end(conv: clew.Conversation) -> None:
    """Without a message of its own: after a branch, an edit, a turn that failed."""
    talk(conv, "a", "b", "c")
    turn = begun(conv.begin_turn(holder=HOLDER, head=3))
    assert (turn.appended.seqs, turn.turn.first_seq, turn.turn.number) == ((), 4, 1)
    turn.finish([clew.assistant("d")])
    assert texts(conv) == ["a", "b", "c", "d"]
    assert [m.turn for m in conv.messages()] == [None, None, None, 1]
    branch = conv.branch(conv.message(3).uid)
    again = begun(branch.begin_turn(holder=HOLDER, head=branch.info().head))
    again.finish([clew.assistant("e")])
    assert texts(branch) == ["a", "b", "c", "e"]


def test_who_saw_an_older_end_is_told_so(conv: clew.Conversation) -> None:
    talk(conv, "a")
    for head in (0, 2, 99):
        with pytest.raises(clew.Stale) as stale:
            conv.begin_turn(head=head)
        assert (stale.value.expected, stale.value.actual) == (head, 1)
    assert conv.turns() == ()
    assert conv.info().fence == 0


def test_messages_and_a_head_are_one_too_many(conv: clew.Conversation) -> None:
    talk(conv, "a")
    with pytest.raises(clew.InputError):
        conv.begin_turn([clew.user("b")], head=1)
    with pytest.raises(clew.InputError):
        conv.begin_turn()
    assert texts(conv) == ["a"]


def test_an_open_turn_is_not_answered_twice(conv: clew.Conversation) -> None:
    talk(conv, "a")
    turn = begun(conv.begin_turn(holder=HOLDER, head=1))
    with pytest.raises(clew.TurnOpen):
        conv.begin_turn(holder=OTHER, head=1)
    turn.finish([clew.assistant("b")])
    with pytest.raises(clew.Stale):
        conv.begin_turn(holder=OTHER, head=1)
    assert len(conv.turns()) == 1


def test_what_waits_comes_into_the_answer(conv: clew.Conversation, turn: clew.TurnHandle) -> None:
    conv.append([clew.user("waits", meta=QUEUE)])
    turn.finish(state="failed", error="no network")
    again = begun(conv.begin_turn(holder=OTHER, head=1))
    assert again.appended.seqs == (2,)
    assert texts(conv) == ["go", "waits"]


def test_what_ended_is_answered_only_when_it_may_go_on(conv: clew.Conversation) -> None:
    talk(conv, "a")
    conv.end("stale")
    begun(conv.begin_turn(holder=HOLDER, head=1)).finish()
    assert not conv.info().ended
    conv.end("reset")
    with pytest.raises(clew.Ended):
        conv.begin_turn(head=1)
    conv.reopen()
    conv.mark(read_only=True)
    with pytest.raises(clew.ReadOnly):
        conv.begin_turn(head=1)


BEGINNER = """
import sys, clew
place, id = sys.argv[1:]
with clew.open(place) as store:
    conv = store.profile("me").open(id)
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        turn = conv.begin_turn(head=1)
        turn.finish([clew.assistant("answered")])
        print("begun")
    except (clew.TurnOpen, clew.Stale) as error:
        print(type(error).__name__)
"""


@pytest.mark.requires("engine")
def test_of_several_who_begin_at_once_one_answers(place: Any, conv: clew.Conversation) -> None:
    """With real processes: one turn, one answer."""
    talk(conv, "a")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", BEGINNER, str(place), conv.id],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = sorted(process.communicate(timeout=120)[0].strip() for process in running)
    assert [process.returncode for process in running] == [0, 0, 0]
    assert said.count("begun") == 1
    assert set(said) <= {"begun", "TurnOpen", "Stale"}
    assert texts(conv) == ["a", "answered"]
    assert len(conv.turns()) == 1


# ---------------------------------------------------------------- what a channel delivers, waiting


def deliver(profile: clew.Profile, text: str, key: str, **fields: Any) -> clew.Received:
    return profile.receive(
        "route", [clew.user(text, key=key)], source="tg", account="bot", key=key, wait=True,
        **fields,
    )  # fmt: skip


def test_what_is_delivered_waits_for_its_turn(profile: clew.Profile) -> None:
    """Stored and not in the log: a host that dies before the turn leaves it to be found."""
    received = deliver(profile, "hello", "u1")
    assert (received.appended.queued, received.appended.numbers) == (True, (1,))
    conv = profile.open(received.conversation)
    assert (texts(conv), waits(conv), conv.info().waiting) == ([], ["hello"], 1)
    assert [found.id for found in profile.unfinished()] == [conv.id]
    deliver(profile, "and more", "u2")
    turn = begun(conv.begin_turn(holder=HOLDER))
    assert texts(conv) == ["hello", "and more"]
    assert [m.turn for m in conv.messages()] == [1, 1]
    turn.finish([clew.assistant("hi")])
    assert profile.unfinished() == ()


def test_a_redelivery_waits_once(profile: clew.Profile) -> None:
    """Before the turn, in it, and after it."""
    first = deliver(profile, "hello", "u1", result="seen")
    conv = profile.open(first.conversation)
    for _ in range(2):
        again = deliver(profile, "hello", "u1", result="other")
        assert (again.again, again.result) == (True, "seen")
        assert again.conversation == conv.id
    assert waits(conv) == ["hello"]
    turn = begun(conv.begin_turn(holder=HOLDER))
    assert deliver(profile, "hello", "u1").again
    turn.finish()
    assert deliver(profile, "hello", "u1").again
    assert (texts(conv), waits(conv)) == (["hello"], [])


def test_a_message_that_is_there_does_not_wait_again(profile: clew.Profile) -> None:
    """By its own key, whatever delivers it."""
    conv = profile.open(deliver(profile, "hello", "u1").conversation)
    begun(conv.begin_turn(holder=HOLDER)).finish()
    received = profile.receive(
        "route", [clew.user("hello", key="u1")], source="tg", account="bot", key="another",
        wait=True,
    )  # fmt: skip
    assert (received.appended.seqs, received.appended.new) == ((1,), 0)
    assert (texts(conv), waits(conv)) == (["hello"], [])


def test_it_waits_behind_a_turn_that_runs(profile: clew.Profile, clock: FakeClock) -> None:
    """And ends none, even one whose holder is gone: the turn that answers does."""
    conv = profile.conversation("route", source="tg")
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    deliver(profile, "steer", "u1")
    assert turn.record(take_inbox=True).taken == (1,)
    clock.advance(24 * 3_600_000_000)
    deliver(profile, "late", "u2")
    assert conv.turns()[0].state == "running"
    assert texts(conv) == ["go", "steer"]
    begun(conv.begin_turn(holder=OTHER))
    assert texts(conv) == ["go", "steer", "late"]
    assert conv.turns()[1].state == "interrupted"


def test_it_opens_what_had_ended_and_respects_a_boundary(profile: clew.Profile) -> None:
    conv = profile.conversation("route", source="tg")
    conv.end("stale")
    assert deliver(profile, "hello", "u1").conversation == conv.id
    assert not conv.info().ended
    after = profile.reset("route", source="tg").conversation
    assert deliver(profile, "more", "u2").conversation == after
    assert waits(profile.open(after)) == ["hello", "more"]
    profile.open(after).end("closed")
    assert deliver(profile, "new", "u3").conversation not in (conv.id, after)


def test_nothing_that_is_delivered_waits_for_ever(profile: clew.Profile) -> None:
    """A plain append comes behind it."""
    conv = profile.open(deliver(profile, "hello", "u1").conversation)
    conv.append([clew.user("then")])
    assert texts(conv) == ["hello", "then"]
    assert profile.unfinished() == ()


# ---------------------------------------------------------------- what a call was made of


def test_a_result_says_what_its_request_was_built_of(conv: clew.Conversation) -> None:
    """Where that moved since the call was planned: by a compaction, by the inbox."""
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER,
                                 call=clew.CallPlan(model="m", expected=5)))  # fmt: skip
    planned = conv.calls()[0]
    assert (planned.expected, planned.generation, planned.up_to_seq, planned.prefix_hash) == (
        5, 0, 1, None,
    )  # fmt: skip
    done = clew.CallResult(expected=7, generation=3, up_to_seq=9, prefix_hash="abc")
    turn.record([clew.assistant("x")], call=1, result=done)
    call = conv.calls()[0]
    assert (call.expected, call.generation, call.up_to_seq, call.prefix_hash) == (7, 3, 9, "abc")
    turn.record(call=1, result=clew.CallResult(expected=1, generation=1, up_to_seq=1))
    assert conv.calls()[0] == call  # the first result stays


def test_a_result_that_says_nothing_leaves_what_was_planned(conv: clew.Conversation) -> None:
    talk(conv, "a", "b")
    number = conv.plan_call(clew.CallPlan(model="m", expected=5))
    conv.finish_call(number, clew.CallResult(expected=0))
    assert [(c.expected, c.generation, c.up_to_seq) for c in conv.calls()] == [(0, 0, 2)]
    number = conv.plan_call(clew.CallPlan(model="m", expected=5))
    conv.finish_call(number, clew.CallResult())
    assert (conv.calls()[1].expected, conv.calls()[1].up_to_seq) == (5, 2)


@pytest.mark.parametrize("name", ["expected", "generation", "up_to_seq"])
@pytest.mark.parametrize("value", [-1, (1 << 53) + 1])
def test_a_number_that_is_none_is_refused(conv: clew.Conversation, name: str, value: int) -> None:
    number = conv.plan_call(clew.CallPlan(model="m"))
    fields: dict[str, Any] = {name: value}
    with pytest.raises(clew.InputError):
        conv.finish_call(number, clew.CallResult(**fields))
    assert conv.calls()[0].state == "planned"
