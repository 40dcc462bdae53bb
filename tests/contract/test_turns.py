"""Turns: opened with their messages, recorded step by step, closed; the right to run."""

from __future__ import annotations

import subprocess
import sys

import pytest
from talk import HOLDER, OTHER, begun, calls, result, talk, texts

import clew
from clew.store.holders import new_holder
from clew.testing.clock import FakeClock

TTL = 60_000_000


def test_a_turn_is_stored_step_by_step(conv: clew.Conversation) -> None:
    turn = begun(conv.begin_turn([clew.user("go", key="u1")], holder=HOLDER, key="update-1"))
    assert (turn.turn.number, turn.turn.state, turn.turn.key) == (1, "running", "update-1")
    assert (turn.turn.first_seq, turn.appended.seqs, conv.info().turn) == (1, (1,), 1)
    step = turn.record([calls("c1")])
    assert (step.appended.seqs, step.taken) == ((2,), ())
    turn.record([result("c1")])
    ended = turn.finish([clew.assistant("done")])
    assert (ended.number, ended.state, ended.waiting, ended.head) == (1, "done", 0, 4)
    assert texts(conv) == ["go", "call c1", "result c1", "done"]
    assert [m.turn for m in conv.messages()] == [1, 1, 1, 1]
    (row,) = conv.turns()
    assert (row.state, row.ended_at is not None, conv.info().turn) == ("done", True, None)


def test_b05_every_finished_step_outlives_its_process(conv: clew.Conversation) -> None:
    """Killed after three results, before the final text: all of it is there, and goes on."""
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    for id in ("c1", "c2", "c3"):
        turn.record([calls(id)])
        turn.record([result(id)])
    # nothing more is heard of HOLDER
    assert texts(conv) == [
        "go", "call c1", "result c1", "call c2", "result c2", "call c3", "result c3",
    ]  # fmt: skip
    with pytest.raises(clew.TurnOpen) as refused:
        conv.resume_turn(holder=OTHER)
    assert (refused.value.turn, refused.value.holder) == (1, HOLDER)
    assert conv.resume_turn(holder=HOLDER).finish([clew.assistant("done")]).state == "done"
    assert texts(conv)[-1] == "done"


def test_a_turn_begins_with_a_message(conv: clew.Conversation) -> None:
    """S12.2."""
    with pytest.raises(clew.InputError):
        conv.begin_turn()
    with pytest.raises(clew.InputError):
        conv.begin_turn([clew.user("x")], ttl=0)
    assert conv.turns() == ()


def test_while_a_turn_is_open_only_its_holder_appends(conv: clew.Conversation) -> None:
    """(K) Nothing comes between a call and its result."""
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    turn.record([calls("c1")])
    assert conv.append([clew.user("u2")]).queued
    queued = conv.begin_turn([clew.user("u3")], holder=OTHER)
    assert isinstance(queued, clew.TurnQueued)
    assert (queued.turn, queued.appended.numbers) == (1, (2,))
    with pytest.raises(clew.TurnOpen):
        conv.begin_turn(holder=OTHER)
    turn.record([result("c1")])
    ended = turn.finish([clew.assistant("done")])
    assert ended.waiting == 2
    nxt = begun(conv.begin_turn(holder=OTHER))
    assert nxt.appended.seqs == (5, 6)
    assert texts(conv) == ["go", "call c1", "result c1", "done", "u2", "u3"]
    assert [m.turn for m in conv.messages()] == [1, 1, 1, 1, 2, 2]


def test_the_turn_takes_what_waits_at_a_step_boundary(conv: clew.Conversation) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    conv.append([clew.user("u2", key="k2")])
    assert turn.record([calls("c1", "c2")], take_inbox=True).taken == ()
    assert turn.record([result("c2")], take_inbox=True).taken == ()
    assert turn.record([result("c1")], take_inbox=True).taken == (1,)
    assert texts(conv) == ["go", "call c1", "result c2", "result c1", "u2"]
    assert conv.message("k2").turn == 1
    assert conv.inbox() == ()


def test_a_message_that_is_there_opens_no_second_turn(conv: clew.Conversation) -> None:
    """(J) A redelivery gets the turn that took it."""
    draft = clew.user("go", key="update-1")
    turn = begun(conv.begin_turn([draft], holder=HOLDER))
    running = conv.begin_turn([draft], holder=OTHER)
    assert isinstance(running, clew.TurnKnown)
    assert (running.turn.number, running.turn.state) == (1, "running")  # pyright: ignore
    turn.finish()
    known = conv.begin_turn([draft], holder=OTHER)
    assert isinstance(known, clew.TurnKnown)
    assert (known.turn.state, known.appended.seqs) == ("done", (1,))  # pyright: ignore
    conv.append([clew.user("plain", key="p")])
    plain = conv.begin_turn([clew.user("plain", key="p")], holder=OTHER)
    assert isinstance(plain, clew.TurnKnown)
    assert plain.turn is None
    assert len(conv.turns()) == 1


def test_a_waiting_message_that_comes_again_begins_the_turn_once(
    conv: clew.Conversation,
) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    draft = clew.user("next", key="update-2")
    for _ in range(2):
        queued = conv.begin_turn([draft], holder=OTHER)
        assert isinstance(queued, clew.TurnQueued)
        assert queued.appended.numbers == (1,)
    turn.finish()
    assert begun(conv.begin_turn([draft], holder=OTHER)).appended.seqs == (2,)
    assert texts(conv) == ["go", "next"]


def test_an_expired_right_is_taken_over(conv: clew.Conversation, clock: FakeClock) -> None:
    """S12.1."""
    old = begun(conv.begin_turn([clew.user("go")], holder=HOLDER, ttl=TTL))
    clock.advance(TTL - 1)
    assert conv.append([clew.user("waits")]).queued
    clock.advance(1)
    new = conv.resume_turn(holder=OTHER)
    assert new.right.fence == old.right.fence + 1
    with pytest.raises(clew.RightLost) as refused:
        old.record([clew.assistant("late")])
    assert refused.value.fence == old.right.fence
    new.record([clew.assistant("mine")], take_inbox=True)
    new.finish()
    assert texts(conv) == ["go", "mine", "waits"]


def test_a_sign_of_life_keeps_the_right(conv: clew.Conversation, clock: FakeClock) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER, ttl=TTL))
    for keep in (turn.renew, lambda: turn.record([clew.assistant("step")])):
        clock.advance(TTL - 1)
        keep()
    clock.advance(TTL - 1)
    with pytest.raises(clew.TurnOpen):
        conv.resume_turn(holder=OTHER)
    clock.advance(1)
    conv.resume_turn(holder=OTHER)


def test_a_clock_that_jumps_back_does_not_hold_the_right_for_ever(
    conv: clew.Conversation, clock: FakeClock
) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER, ttl=TTL))
    clock.advance(-10 * TTL)
    conv.resume_turn(holder=OTHER)
    with pytest.raises(clew.RightLost):
        turn.renew()


def test_a_laptop_that_slept_goes_on_if_nobody_took_over(
    conv: clew.Conversation, clock: FakeClock
) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER, ttl=TTL))
    clock.advance(100 * TTL)
    assert turn.finish([clew.assistant("done")]).state == "done"


def test_whoever_needs_the_conversation_closes_a_turn_nobody_holds(
    conv: clew.Conversation, clock: FakeClock
) -> None:
    old = begun(conv.begin_turn([clew.user("go")], holder=HOLDER, ttl=TTL))
    old.record([calls("c1")])
    clock.advance(TTL)
    assert conv.append([clew.user("hello?")]).seqs == (3,)
    assert [t.state for t in conv.turns()] == ["interrupted"]
    new = begun(conv.begin_turn([clew.user("again")], holder=OTHER))
    assert new.turn.number == 2
    with pytest.raises(clew.RightLost):
        old.record([result("c1")])
    assert texts(conv) == ["go", "call c1", "hello?", "again"]


def test_b35_a_call_without_its_result_is_closed_in_the_rendering_only(
    conv: clew.Conversation, clock: FakeClock
) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER, ttl=TTL))
    turn.record([calls("a", "b")])
    turn.record([result("a")])
    clock.advance(TTL)
    conv.append([clew.user("and now?")])
    rendered = conv.context()
    answers = {m["tool_call_id"]: m["content"] for m in rendered if m["role"] == "tool"}
    assert answers["a"] == "ok"
    assert "interrupted" in answers["b"]
    assert [m["role"] for m in rendered] == ["user", "assistant", "tool", "tool", "user"]
    assert texts(conv) == ["go", "call a", "result a", "and now?"]


def test_b43_a_turn_writes_to_its_own_conversation_only(profile: clew.Profile) -> None:
    """The old answer streams on while a new chat is open."""
    one, two = profile.create(), profile.create()
    old = begun(one.begin_turn([clew.user("q1")], holder=HOLDER))
    begun(two.begin_turn([clew.user("q2")], holder=HOLDER)).finish([clew.assistant("a2")])
    old.finish([clew.assistant("a1")])
    assert texts(one) == ["q1", "a1"]
    assert texts(two) == ["q2", "a2"]


@pytest.mark.requires("dead holders")
def test_b64_a_dead_holder_blocks_nobody(conv: clew.Conversation) -> None:
    """S12.7: Killed: its right is free at once, not when a lease of 300 s ends."""
    code = "from clew.store.holders import new_holder; print(new_holder(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        holder = child.stdout.readline().strip()
        turn = begun(conv.begin_turn([clew.user("go")], holder=holder, ttl=10 * TTL))
        assert conv.append([clew.user("waits")]).queued
        child.kill()
        child.wait()
    assert conv.append([clew.user("hello?")]).seqs == (3,)
    assert texts(conv) == ["go", "waits", "hello?"]
    with pytest.raises(clew.RightLost):
        turn.renew()


@pytest.mark.requires("dead holders")
def test_b65_a_live_process_with_the_same_pid_is_another(conv: clew.Conversation) -> None:
    """S12.7."""
    fields = new_holder().split(":")
    fields[4] = str(int(fields[4]) - 1)  # the same pid, started at another time
    begun(conv.begin_turn([clew.user("go")], holder=":".join(fields), ttl=10 * TTL))
    assert begun(conv.begin_turn([clew.user("on")], holder=OTHER)).turn.number == 2


@pytest.mark.requires("dead holders")
def test_a_live_holder_keeps_its_right(conv: clew.Conversation) -> None:
    begun(conv.begin_turn([clew.user("go")]))
    assert conv.append([clew.user("waits")]).queued


def test_a_turn_may_wait_for_a_person(conv: clew.Conversation, clock: FakeClock) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER, ttl=TTL))
    ended = turn.wait([calls("c1")])
    assert (ended.state, ended.head) == ("waiting", 2)
    clock.advance(100 * TTL)
    assert conv.append([clew.user("meanwhile")]).queued
    assert [t.state for t in conv.turns()] == ["waiting"]
    again = conv.resume_turn(holder=OTHER)
    assert (again.turn.number, again.turn.state) == (1, "running")
    with pytest.raises(clew.RightLost):
        turn.record([result("c1", "mine")])
    again.record([result("c1")], take_inbox=True)
    again.finish([clew.assistant("done")])
    assert texts(conv) == ["go", "call c1", "result c1", "meanwhile", "done"]


def test_there_is_nothing_to_resume_without_an_open_turn(conv: clew.Conversation) -> None:
    with pytest.raises(clew.NotFound):
        conv.resume_turn()
    begun(conv.begin_turn([clew.user("go")], holder=HOLDER)).finish()
    with pytest.raises(clew.NotFound):
        conv.resume_turn()


def test_an_interrupted_turn_takes_no_more(conv: clew.Conversation) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    assert conv.interrupt_turn("the user pressed stop")
    assert not conv.interrupt_turn()
    (row,) = conv.turns()
    assert (row.state, row.error) == ("interrupted", "the user pressed stop")
    for write in (
        lambda: turn.record([clew.assistant("late")]),
        lambda: turn.finish(),
        turn.renew,
    ):
        with pytest.raises(clew.RightLost):
            write()
    assert texts(conv) == ["go"]


def test_a_turn_may_fail_and_says_why(conv: clew.Conversation) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    turn.finish(state="failed", error="429")
    (row,) = conv.turns()
    assert (row.state, row.error) == ("failed", "429")
    with pytest.raises(clew.RightLost):
        turn.finish()


def test_replies_to_send_are_written_with_the_end_of_the_turn(conv: clew.Conversation) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    turn.finish(
        [clew.assistant("done")],
        deliveries=[clew.Delivery("4:chat2:42", {"text": "done"}), clew.Delivery("r2", None)],
    )
    rows = conv.deliveries(1)
    assert [(row.number, row.route, row.payload, row.state) for row in rows] == [
        (1, "4:chat2:42", {"text": "done"}, "pending"),
        (2, "r2", None, "pending"),
    ]
    again = begun(conv.begin_turn([clew.user("go on")], holder=HOLDER))
    again.finish(deliveries=[clew.Delivery("r", 1)])
    assert [row.number for row in conv.deliveries(2)] == [3]


def test_a_step_again_under_its_keys_is_stored_once(conv: clew.Conversation) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    step = [clew.Draft(role=clew.Role.ASSISTANT, parts=calls("c1").parts, key="step-1")]
    assert turn.record(step).appended.new == 1
    assert turn.record(step).appended.new == 0
    assert texts(conv) == ["go", "call c1"]


def test_a_result_answers_a_call_that_was_made(conv: clew.Conversation) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    with pytest.raises(clew.InputError):
        turn.record([result("c1")])
    turn.record([calls("c1"), result("c1")])
    with pytest.raises(clew.InputError):
        turn.finish([result("c2")])
    assert texts(conv) == ["go", "call c1", "result c1"]
    turn.finish()
    with pytest.raises(clew.InputError):
        conv.begin_turn([result("c3")], holder=HOLDER)


def test_turns_are_listed_newest_first(conv: clew.Conversation) -> None:
    for n in range(4):
        begun(conv.begin_turn([clew.user(str(n))], holder=HOLDER)).finish()
    assert [t.number for t in conv.turns()] == [4, 3, 2, 1]
    assert [t.number for t in conv.turns(limit=2, before=4)] == [3, 2]


def test_unfinished_work_is_found(profile: clew.Profile) -> None:
    quiet, running, waiting = profile.create(), profile.create(), profile.create()
    talk(quiet, "a")
    begun(running.begin_turn([clew.user("go")], holder=HOLDER))
    turn = begun(waiting.begin_turn([clew.user("go")], holder=HOLDER))
    waiting.append([clew.user("more")])
    turn.finish()
    assert {conv.id for conv in profile.unfinished()} == {running.id, waiting.id}
