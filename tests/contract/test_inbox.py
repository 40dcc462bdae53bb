"""The inbox: accepted and durable while a turn runs, in the log afterwards, in order."""

from __future__ import annotations

import pytest
from talk import HOLDER, OTHER, begun, compact, summary, talk, texts

import clew


@pytest.fixture
def turn(conv: clew.Conversation) -> clew.TurnHandle:
    """An open turn of somebody else."""
    return begun(conv.begin_turn([clew.user("go")], holder=HOLDER))


@pytest.fixture
def limits() -> clew.Limits:
    return clew.Limits(inbox=4)


def test_what_waits_is_shown_as_it_came(conv: clew.Conversation, turn: clew.TurnHandle) -> None:
    conv.append([clew.user("a", key="k", author="Ada", meta={"x": 1}, created_at=5)])
    conv.append([clew.user("b"), clew.user("c")])
    first, *rest = conv.inbox()
    assert (first.number, first.key, first.author, first.meta) == (1, "k", "Ada", {"x": 1})
    assert (first.received_at, first.state, first.seq) == (5, "waiting", None)
    assert [entry.number for entry in rest] == [2, 3]
    assert conv.info().waiting == 3
    assert texts(conv) == ["go"]
    turn.finish()
    talk(conv, "d")
    message = conv.message("k")
    assert (message.seq, message.uid, message.created_at) == (2, first.uid, 5)
    assert (message.author, message.meta, message.turn) == ("Ada", {"x": 1}, None)
    assert texts(conv) == ["go", "a", "b", "c", "d"]
    assert conv.info().waiting == 0


def test_b14_four_messages_in_a_compaction_are_four_rows_in_order(
    conv: clew.Conversation, turn: clew.TurnHandle
) -> None:
    """S21.8."""
    turn.record([clew.assistant("done")])
    turn.finish()
    running = begun(conv.begin_turn([clew.user("more")], holder=HOLDER))
    attempt = conv.open_attempt()
    for n in range(4):
        conv.append([clew.user(f"m{n}", key=f"m{n}")])
    conv.commit_attempt(
        attempt.number,
        clew.Proposal(covers_to=2, body=(summary("s"),), tokens_before=9, tokens_after=1),
    )
    for n in range(4):  # and the drain sends all of them once more
        assert conv.append([clew.user(f"m{n}", key=f"m{n}")]).new == 0
    running.finish()
    begun(conv.begin_turn(holder=OTHER))
    assert texts(conv) == ["go", "done", "more", "m0", "m1", "m2", "m3"]


def test_a_waiting_message_can_be_taken_back(
    conv: clew.Conversation, turn: clew.TurnHandle
) -> None:
    conv.append([clew.user("a"), clew.user("b")])
    assert conv.withdraw(1)
    assert not conv.withdraw(1)
    assert not conv.withdraw(9)
    turn.finish()
    talk(conv, "c")
    assert texts(conv) == ["go", "b", "c"]
    assert not conv.withdraw(2)


def test_a_full_inbox_refuses_and_may_be_tried_again(
    conv: clew.Conversation, turn: clew.TurnHandle
) -> None:
    conv.append([clew.user("a"), clew.user("b"), clew.user("c")])
    with pytest.raises(clew.InboxFull) as refused:
        conv.append([clew.user("d"), clew.user("e")])
    assert (refused.value.retryable, refused.value.limit) == (True, 4)
    assert len(conv.inbox()) == 3
    conv.append([clew.user("d")])
    conv.withdraw(1)
    assert conv.append([clew.user("e")]).numbers == (5,)


def test_what_came_first_enters_the_log_first(
    conv: clew.Conversation, turn: clew.TurnHandle
) -> None:
    conv.append([clew.user("first")])
    turn.finish()
    conv.end("stale")
    talk(conv, "second")  # also reopens what a sweeper closed
    assert texts(conv) == ["go", "first", "second"]


def test_an_append_onto_a_head_leaves_the_inbox_alone(
    conv: clew.Conversation, turn: clew.TurnHandle
) -> None:
    """Its author has not seen what waits; it lands exactly where it was meant."""
    conv.append([clew.user("waits")])
    turn.finish([clew.assistant("a")])
    conv.append([clew.assistant("b")], head=2)
    assert texts(conv) == ["go", "a", "b"]
    talk(conv, "c")
    assert texts(conv) == ["go", "a", "b", "waits", "c"]


def test_a_stale_head_is_refused_while_a_turn_runs_too(
    conv: clew.Conversation, turn: clew.TurnHandle
) -> None:
    with pytest.raises(clew.Stale):
        conv.append([clew.user("a")], head=7)
    assert conv.inbox() == ()


def test_a_read_only_conversation_queues_nothing(
    conv: clew.Conversation, turn: clew.TurnHandle
) -> None:
    conv.mark(read_only=True)
    with pytest.raises(clew.ReadOnly):
        conv.append([clew.user("a")])
    with pytest.raises(clew.ReadOnly):
        conv.begin_turn([clew.user("a")], holder=OTHER)
    assert conv.inbox() == ()


def test_images_that_wait_keep_their_bytes(conv: clew.Conversation, turn: clew.TurnHandle) -> None:
    conv.append([clew.Draft(role=clew.Role.USER, parts=(clew.Image(data=b"png"),), key="k")])
    turn.record(take_inbox=True)
    (part,) = conv.message("k").parts
    assert isinstance(part, clew.Image)
    assert conv.blob(part.hash or "") == b"png"


def test_what_waits_is_in_no_context(conv: clew.Conversation, turn: clew.TurnHandle) -> None:
    conv.append([clew.user("waits")])
    assert [m.text for m in conv.context_inputs().messages] == ["go"]
    assert texts(conv.branch()) == ["go"]
    turn.finish([clew.assistant("a")])
    compact(conv, 2, summary("s"))
    assert [m["content"] for m in conv.context()] == ["s"]
