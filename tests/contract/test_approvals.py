"""Approvals: a tool call that a person must allow waits in a row, and does not run before that."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from talk import HOLDER, OTHER, begun, calls, result, talk, texts

import clew
import clew.aio
from clew import Ask
from clew.store.copy import copy
from clew.testing.clock import FakeClock


def asking(conv: clew.Conversation, *ids: str, name: str = "run") -> clew.TurnHandle:
    """A turn whose calls all wait for a person."""
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    turn.record([calls(*ids)], asks=[Ask(id, name) for id in ids])
    return turn


def states(conv: clew.ConversationReader) -> dict[str, str]:
    return {row.call_id: row.state for row in conv.approvals()}


def test_a_call_is_asked_for_with_its_message(conv: clew.Conversation, clock: FakeClock) -> None:
    asking(conv, "c1")
    assert texts(conv) == ["go", "call c1"]
    assert conv.approvals() == (
        clew.Approval(
            turn=1, call_id="c1", name="run", state="asked", always=False, by=None,
            asked_at=clock.now(), answered_at=None,
        ),
    )  # fmt: skip


def test_a_message_that_is_refused_asks_for_nothing(conv: clew.Conversation) -> None:
    """In one transaction with it."""
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    with pytest.raises(clew.InputError):
        turn.record([calls("c1"), result("nobody asked")], asks=[Ask("c1", "run")])
    with pytest.raises(clew.NotFound):
        turn.record(
            [calls("c1")], asks=[Ask("c1", "run")], call=9, result=clew.CallResult()
        )  # fmt: skip
    conv.interrupt_turn()
    with pytest.raises(clew.RightLost):
        turn.record([calls("c1")], asks=[Ask("c1", "run")])
    again = begun(conv.begin_turn([clew.user("again")], holder=HOLDER))
    assert conv.approvals() == ()
    assert texts(conv) == ["go", "again"]
    again.finish()


def test_i_21_only_a_call_of_the_message_is_asked_for(conv: clew.Conversation) -> None:
    turn = asking(conv, "c1")
    for ask, drafts in (
        (Ask("c2", "run"), []),
        (Ask("c2", "run"), [result("c1")]),
        (Ask("c1", "run"), [result("c1")]),
        (Ask("c3", ""), [calls("c3")]),
        (Ask("", "run"), [calls("")]),
        (Ask("c3", "a\0b"), [calls("c3")]),
    ):
        with pytest.raises(clew.InputError):
            turn.record(drafts, asks=[ask])
    assert states(conv) == {"c1": "asked"}
    assert texts(conv) == ["go", "call c1"]


def test_a_person_answers_from_anywhere(
    store: clew.Store, conv: clew.Conversation, clock: FakeClock
) -> None:
    """Another handle; while the turn runs, and while it waits with nobody running it."""
    turn = asking(conv, "c1", "c2", "c3")
    elsewhere = store.profile("me").open(conv.id)
    clock.advance(5)
    assert elsewhere.answer_call("c1", True, by="Ada")
    turn.wait()
    assert elsewhere.answer_call("c2", False)
    assert states(conv) == {"c1": "allowed", "c2": "denied", "c3": "asked"}
    first = conv.approvals()[0]
    assert (first.by, first.answered_at, first.answered_at == first.asked_at + 5) == (
        "Ada", clock.now(), True,
    )  # fmt: skip
    again = conv.resume_turn(holder=OTHER)
    assert elsewhere.answer_call("c3", True)
    again.record(started=["c1", "c3"])
    assert states(conv) == {"c1": "started", "c2": "denied", "c3": "started"}


def test_i_21_the_first_answer_wins(conv: clew.Conversation, clock: FakeClock) -> None:
    """Whoever answers, and however often."""
    turn = asking(conv, "c1", "c2")
    assert conv.answer_call("c1", False, by="Ada")
    assert conv.answer_call("c2", True)
    for allow, always in ((True, True), (False, False), (False, True)):
        clock.advance(1)
        assert not conv.answer_call("c1", allow, always=always, by="Bob")
        assert not conv.answer_call("c2", allow, always=always)
    assert states(conv) == {"c1": "denied", "c2": "allowed"}
    assert conv.approvals()[0].by == "Ada"
    turn.record(started=["c2"])
    assert not conv.answer_call("c2", False)
    assert states(conv)["c2"] == "started"
    assert conv.allowed_tools() == ()


def test_i_21_only_what_was_allowed_starts(conv: clew.Conversation) -> None:
    turn = asking(conv, "c1", "c2", "c3")
    conv.answer_call("c1", True)
    conv.answer_call("c2", False)
    turn.record(started=["c1", "c2", "c3", "another"])
    assert states(conv) == {"c1": "started", "c2": "denied", "c3": "asked"}
    turn.record(started=["c1"])
    assert states(conv)["c1"] == "started"


def test_only_who_has_the_right_starts_a_call(conv: clew.Conversation) -> None:
    turn = asking(conv, "c1")
    conv.answer_call("c1", True)
    turn.wait()
    with pytest.raises(clew.RightLost):
        turn.record(started=["c1"])
    assert states(conv) == {"c1": "allowed"}


def test_always_is_for_the_conversation(profile: clew.Profile, conv: clew.Conversation) -> None:
    """Over turns, and in no other conversation; a denial is never for always."""
    turn = asking(conv, "c1", "c2", name="git_push")
    assert conv.allowed_tools() == ()
    conv.answer_call("c1", True, always=True)
    conv.answer_call("c2", False, always=True)
    assert [row.always for row in conv.approvals()] == [True, False]
    assert conv.allowed_tools() == ("git_push",)
    turn.record(started=["c1"])
    turn.record([result("c1"), result("c2")])
    turn.finish([clew.assistant("done")])
    second = asking(conv, "c3", name="a_tool")
    assert conv.allowed_tools() == ("git_push",)
    conv.answer_call("c3", True, always=True)
    assert conv.allowed_tools() == ("a_tool", "git_push")
    second.record([result("c3")])
    second.finish()
    asking(conv, "c4", name="git_push")
    conv.answer_call("c4", True, always=True)
    assert conv.allowed_tools() == ("a_tool", "git_push")
    assert profile.create().allowed_tools() == ()


def test_what_nobody_asked_has_no_answer(profile: clew.Profile, conv: clew.Conversation) -> None:
    with pytest.raises(clew.NotFound, match="c1"):
        conv.answer_call("c1", True)
    asking(conv, "c1")
    with pytest.raises(clew.NotFound):
        conv.answer_call("c2", True)
    with pytest.raises(clew.NotFound):
        profile.create().answer_call("c1", True)
    with pytest.raises(clew.TooLarge):
        conv.answer_call("c1", True, by="x" * 10_000)
    assert states(conv) == {"c1": "asked"}


@pytest.mark.parametrize("how", ["finish", "interrupt", "cut", "message"])
def test_after_its_turn_nothing_waits(conv: clew.Conversation, clock: FakeClock, how: str) -> None:
    """What nobody answered is never allowed afterwards; the next turn asks anew, by the same id."""
    turn = asking(conv, "c1")
    match how:
        case "finish":
            turn.finish(state="failed")
        case "interrupt":
            conv.interrupt_turn()
        case "cut":
            conv.cut(conv.message(1).uid)
        case _:
            clock.advance(10 * 60_000_000)
            talk(conv, "instead")
    assert conv.approvals() == ()
    with pytest.raises(clew.NotFound):
        conv.answer_call("c1", True, always=True)
    assert conv.allowed_tools() == ()
    asking(conv, "c1", name="other")
    assert [(row.name, row.state) for row in conv.approvals()] == [("other", "asked")]


def test_a_branch_and_a_reset_ask_anew(profile: clew.Profile) -> None:
    """What a person allowed in one conversation is not allowed in those made from it."""
    conv = profile.conversation("key", source="tg")
    turn = asking(conv, "c1")
    conv.answer_call("c1", True, always=True)
    branch = conv.branch()
    assert (branch.approvals(), branch.allowed_tools()) == ((), ())
    with pytest.raises(clew.NotFound):
        branch.answer_call("c1", True)
    turn.record([result("c1")])
    turn.finish()
    after = profile.open(profile.reset("key", source="tg").conversation)
    assert after.allowed_tools() == ()
    assert conv.allowed_tools() == ("run",)


def test_a_deletion_takes_them_with_it(profile: clew.Profile, conv: clew.Conversation) -> None:
    asking(conv, "c1")
    conv.answer_call("c1", True, always=True)
    branch = conv.branch()
    profile.delete(conv.id)
    with pytest.raises(clew.NotFound):
        conv.answer_call("c1", True)
    assert branch.allowed_tools() == ()


@pytest.mark.requires("engine")
def test_an_answer_is_told_to_who_follows(profile: clew.Profile, conv: clew.Conversation) -> None:
    asking(conv, "c1", "c2")
    mark = profile.mark()
    conv.answer_call("c1", True)
    mark, (told,) = profile.changes(mark)
    assert (told.conversation, told.kind) == (conv.id, "turn")
    conv.answer_call("c1", False)
    assert profile.changes(mark)[1] == []


@pytest.mark.requires("engine")
def test_a_copy_of_the_store_has_them(place: Any, conv: clew.Conversation, tmp_path: Path) -> None:
    asking(conv, "c1", "c2")
    conv.answer_call("c1", True, always=True, by="Ada")
    target = tmp_path / "copy.db"
    copy(str(place), str(target))
    with clew.open(target) as copied:
        there = copied.profile("me").open(conv.id)
        assert there.approvals() == conv.approvals()
        assert there.allowed_tools() == ("run",)
        assert there.answer_call("c2", False)
        assert copied.verify() == []


# ---------------------------------------------------------------- several processes

WORKER = """
import sys, clew
place, id, allow = sys.argv[1:]
with clew.open(place) as store:
    conv = store.profile("me").open(id)
    print("ready", flush=True)
    sys.stdin.readline()
    won = [row.call_id for row in conv.approvals()
           if conv.answer_call(row.call_id, allow == "yes", by=allow)]
    print(" ".join(won), flush=True)
"""


@pytest.mark.requires("engine")
def test_of_processes_that_answer_at_once_one_wins(place: Any, conv: clew.Conversation) -> None:
    """I-21: each call has the answer of the process that was told so, and one such process."""
    ids = [f"c{n:02}" for n in range(20)]
    asking(conv, *ids)
    running = {
        word: subprocess.Popen(
            [sys.executable, "-c", WORKER, str(place), conv.id, word],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for word in ("yes", "no")
    }  # fmt: skip
    for process in running.values():
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running.values():
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    won = {word: process.communicate(timeout=120)[0].split() for word, process in running.items()}
    assert [process.returncode for process in running.values()] == [0, 0]
    assert sorted(won["yes"] + won["no"]) == ids
    said = {"yes": "allowed", "no": "denied"}
    for row in conv.approvals():
        assert row.by is not None
        assert row.state == said[row.by]
        assert row.call_id in won[row.by]


@pytest.mark.requires("engine")
def test_asyncio_asks_and_answers(place: Any, conv: clew.Conversation) -> None:
    async def answer() -> None:
        async with clew.aio.open(place) as store:
            mine = store.profile("me").open
            there = await mine(conv.id)
            turn = await there.begin_turn([clew.user("go")])
            assert isinstance(turn, clew.aio.AsyncTurn)
            await turn.record([calls("c1")], asks=[Ask("c1", "run")])
            assert await there.answer_call("c1", True, always=True)
            await turn.record(started=["c1"])
            assert [row.state for row in await there.approvals()] == ["started"]
            assert await there.allowed_tools() == ("run",)

    asyncio.run(answer())
