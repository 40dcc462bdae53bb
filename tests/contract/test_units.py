"""Exactly once: every write answers and does the same although its unit runs more than once.

A batch that fails is run again, and a commit whose outcome nobody knows is run again after it may
have gone through. Here that happens to every unit of every write method: run and rolled back
first, or run, committed and run again.
"""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from talk import HOLDER, OTHER, calls, memory_dir, proposal, result, summary, talk, texts
from twins import OBSERVED, Twins

import clew
from clew import CallPlan, CallResult, NewConversation, Usage
from clew.store.backend import Transaction, Unit
from clew.testing.clock import FakeClock, seeded_ids


class RolledBack(Exception):
    """Ends a transaction in which all went well."""


class Plain:
    """A backend as it is."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.between: Callable[[], object] | None = None
        """What somebody else does between the two runs."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def write(self, unit: Unit[Any]) -> Any:
        return self._backend.write(unit)

    def somebody_else(self) -> None:
        work, self.between = self.between, None
        if work is not None:
            work()


class RunsTwice(Plain):
    """Every unit runs, is rolled back, and runs again."""

    def write(self, unit: Unit[Any]) -> Any:
        def undone(tx: Transaction) -> None:
            unit(tx)
            raise RolledBack

        with pytest.raises((RolledBack, clew.ClewError)):
            self._backend.write(undone)
        self.somebody_else()
        return self._backend.write(unit)


class CommitsTwice(Plain):
    """Every unit runs and is committed; nobody knows, so it runs again, with the same answer."""

    def write(self, unit: Unit[Any]) -> Any:
        first = self._backend.write(unit)
        self.somebody_else()
        again = self._backend.write(unit)
        assert again == first, f"{unit} answered {first!r}, then {again!r}"
        return again


@contextmanager
def opened(how: type[Plain], step: int = 0) -> Iterator[clew.Store]:
    path, clock = memory_dir(), FakeClock(step=step)
    with clew.open(path / "store.db", clock=clock, ids=seeded_ids(clock)) as store:
        store._db.backend = how(store._db.backend)
        yield store
        assert store.verify() == []
    shutil.rmtree(path)


class Script:
    """One call of every write method, or several where there are several outcomes."""

    def __init__(self, store: clew.Store) -> None:
        self.profile = store.profile("me")
        self.used: set[str] = set()
        self.answers: list[Any] = []
        self.conversations: list[clew.Conversation] = []

    def do(self, handle: Any, method: str, *args: Any, **fields: Any) -> Any:
        """Call a method; its answer or its error is what counts."""
        self.used.add(f"{type(handle).__name__}.{method}")
        try:
            answer = getattr(handle, method)(*args, **fields)
        except clew.ClewError as error:
            answer = type(error).__name__
        self.answers.append(answer)
        return answer

    def new(self, **fields: Any) -> NewConversation:
        return NewConversation(id=f"c{len(self.conversations)}", **fields)

    def keep(self, conv: clew.Conversation) -> clew.Conversation:
        self.conversations.append(conv)
        return conv

    def run(self) -> None:
        for part in (self._log, self._turns, self._cuts, self._compactions, self._row, self._bind):
            part()
        self._delete()

    def _log(self) -> None:
        do, conv = self.do, self.keep(self.do(self.profile, "create", self.new()))
        do(self.profile, "create", NewConversation(id="c0"))
        do(conv, "add", [{"role": "user", "content": "a", "id": "1"}, clew.assistant("b")])
        do(conv, "add", {"role": "user", "content": "a", "id": "1"})
        do(conv, "append", [clew.user("c"), clew.assistant("d", key="k")], head=2)
        do(conv, "append", [clew.user("c")], head=2)
        do(conv, "append", [clew.user("x", key="k")])
        do(conv, "append", [clew.user("e", uid="ab" * 16)])
        do(conv, "append", [clew.Draft(role=clew.Role.USER, parts=(clew.Image(data=b"png"),))])
        do(conv, "pop", 2)
        do(conv, "pop", 99)
        do(conv, "pop")
        do(conv, "replace", [clew.user("r1"), clew.user("r2", key="k")])
        do(conv, "replace", [clew.user("r1"), clew.user("r2"), clew.user("r3")])
        do(conv, "replace", [clew.user("r1"), clew.user("other")])
        do(conv, "replace", [clew.user("r1"), clew.user("other")])
        do(conv, "replace", [])

    def _turns(self) -> None:
        do, conv = self.do, self.keep(self.do(self.profile, "create", self.new()))
        plan = CallPlan(model="m")
        draft = clew.user("go", key="go")
        turn = do(conv, "begin_turn", [draft], holder=HOLDER, call=plan)
        do(conv, "begin_turn", [draft], holder=OTHER)
        do(conv, "begin_turn", [clew.user("waits", key="w")], holder=OTHER)
        do(conv, "begin_turn", [clew.user("waits", key="w")], holder=OTHER)
        do(conv, "append", [clew.user("waits too")])
        do(conv, "append", [clew.user("not at all")])
        do(conv, "withdraw", 3)
        do(conv, "withdraw", 3)
        do(turn, "save_partial", 1, "so far")
        do(turn, "record", [calls("c1")], call=1, result=CallResult(usage=Usage(1, 2)))
        do(turn, "record", [result("c1")], next_call=plan)
        do(turn, "record", next_call=plan)
        do(turn, "record", take_inbox=True)
        do(turn, "record", [clew.assistant("x")])
        do(turn, "renew")
        do(turn, "wait", [calls("c2")])
        again = do(conv, "resume_turn", holder=OTHER)
        do(turn, "record", [clew.assistant("late")])
        do(again, "record", [result("c2")])
        do(again, "finish", [clew.assistant("done")], deliveries=[clew.Delivery("r", 1)])
        do(again, "finish")
        do(conv, "begin_turn", holder=HOLDER)
        do(conv, "begin_turn", [clew.user("more")], holder=HOLDER)
        do(conv, "interrupt_turn", "why")
        do(conv, "interrupt_turn", "why")
        number = do(conv, "plan_call", CallPlan(model="m", purpose="title"))
        do(conv, "finish_call", number, CallResult(usage=Usage(3)))

    def _cuts(self) -> None:
        do, conv = self.do, self.keep(self.do(self.profile, "create", self.new()))
        talk(conv, *"abcdef")
        do(conv, "cut", conv.message(5).uid)
        do(conv, "undo_cut")
        do(conv, "undo_cut")
        do(conv, "edit", conv.message(5).uid, clew.user("E"))
        do(conv, "edit", conv.message(4).uid, clew.user("D", key="edit"))
        do(conv, "edit", conv.message(4).uid, clew.user("D", key="edit"))
        do(conv, "retry", conv.message("edit").uid)
        do(conv, "retry", conv.message(3).uid, key="retry")
        do(conv, "retry", conv.message(3).uid, key="retry")
        for fields in ({}, {"at_cut": 2}):
            self.keep(do(conv, "branch", new=self.new(), **fields))
        self.keep(do(conv, "branch", conv.message(2).uid, new=self.new(source="x")))
        self.keep(do(conv, "delegate", self.new()))

    def _compactions(self) -> None:
        do, conv = self.do, self.keep(self.do(self.profile, "create", self.new()))
        talk(conv, *"abcdef")
        for deadline in (1, None, None, None):
            do(conv, "open_attempt", "soft", deadline=deadline, model="m")
        do(conv, "commit_attempt", 2, proposal(2, summary("s")), segment=("t", "seg"))
        do(conv, "commit_attempt", 3, proposal(3))
        do(conv, "cancel_attempt", 4)
        do(conv, "cancel_attempt", 4)
        do(conv, "open_attempt")
        do(conv, "fail_attempt", 5, "why", summary_error="e")
        do(conv, "record_foreign_compaction", proposal(4))
        do(conv, "record_foreign_compaction", proposal(4))
        do(conv, "undo_compaction", 3)
        do(conv, "undo_compaction", 3)

    def _row(self) -> None:
        do, conv = self.do, self.keep(self.do(self.profile, "create", self.new()))
        do(conv, "set_title", "t", "llm")
        do(conv, "lock_title", "locked")
        do(conv, "set_title", "t")
        do(conv, "pin")
        do(conv, "archive")
        do(conv, "mark", automation=True)
        do(conv, "set_workspace", clew.Workspace("/a"), model="m")
        do(conv, "set_prompt", "p", ({"name": "t"},))
        do(conv, "claim_alias", "tool", "f")
        do(conv, "set_todos", [clew.Todo("t")])
        do(conv, "set_goal", "g")
        do(conv, "set_goal", "h")
        do(conv, "close_goal")
        do(conv, "close_goal")
        do(conv, "beat", "me", "x")
        do(conv, "leave", "me")
        do(conv, "begin_turn", [clew.user("go")], holder=HOLDER)
        do(conv, "end", "idle")
        do(conv, "end", "closed")
        do(conv, "reopen")
        do(conv, "reopen")

    def _bind(self) -> None:
        do, profile = self.do, self.profile
        conv = self.keep(do(profile, "conversation", "key", source="tg", new=self.new()))
        do(profile, "conversation", "key", source="tg")
        do(conv, "begin_turn", [clew.user("go")], holder=HOLDER)
        do(conv, "append", [clew.user("waits")])
        new = self.new()
        do(profile, "reset", "key", source="tg", new=new)
        again = self.keep(profile.open(new.id or ""))
        do(again, "end", "closed")
        after = self.new()
        for _ in range(2):
            do(
                profile, "receive", "key", [clew.user("hi", key="hi")], source="tg",
                account="bot", key="u1", new=after, result="r",
            )  # fmt: skip
        self.keep(profile.open(after.id or ""))
        do(profile, "receive", "key", [], source="tg", account="bot", key="u2")

    def _delete(self) -> None:
        gone = self.conversations.pop(0)
        self.keep(self.do(gone, "branch", new=NewConversation(id="survivor")))
        self.do(self.profile, "delete", gone.id)
        self.do(self.profile, "delete", gone.id)


@pytest.mark.parametrize("how", [RunsTwice, CommitsTwice])
def test_all_writes_answer_and_do_the_same(how: type[Plain]) -> None:
    with opened(Plain) as plain, opened(how) as rerun:
        expected, actual = Script(plain), Script(rerun)
        expected.run()
        actual.run()
        twins = Twins()
        for number, (one, other) in enumerate(zip(expected.answers, actual.answers, strict=True)):
            twins.same(one, other, f"answer {number}")
        for one, other in zip(expected.conversations, actual.conversations, strict=True):
            for name, read in OBSERVED:
                twins.same(read(one), read(other), f"{one.id} {name}")
            assert one.presence() == other.presence()


def test_an_answer_is_the_same_at_another_time() -> None:
    """The clock goes on between the two runs; `CommitsTwice` compares their answers."""
    with opened(CommitsTwice, step=1) as store:
        Script(store).run()


def test_every_write_method_is_in_the_script() -> None:
    with opened(Plain) as store:
        script = Script(store)
        script.run()
    reads = {
        "Profile.open", "Profile.resolve", "Profile.bound", "Profile.was_deleted", "Profile.list",
        "Profile.search", "Profile.usage", "Profile.unfinished", "Profile.prunable",
        "Profile.stats", "Profile.mark", "Profile.changes", "Profile.follow",
        "Conversation.context",
    }  # fmt: skip
    methods = {
        f"{kind.__name__}.{name}"
        for kind in (clew.Conversation, clew.TurnHandle, clew.Profile)
        for name, _ in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and not hasattr(clew.ConversationReader, name)
    }
    assert methods - reads == script.used


def test_jobs_are_claimed_and_given_back_once() -> None:
    for how in (RunsTwice, CommitsTwice):
        with opened(how, step=1) as store:
            right = store.claim_job("prune")
            assert right is not None
            assert right.fence == 1
            assert store.claim_job("prune") is None
            store.renew_job(right)
            assert store.release_job(right)
            assert store.jobs()[0].fence == 1


@pytest.mark.parametrize("how", [RunsTwice, CommitsTwice])
def test_a_unit_tells_the_truth_when_another_was_faster(how: type[Plain]) -> None:
    """Between the two runs somebody else writes the same key."""
    with opened(how) as store:
        conv = store.profile("me").create()
        backend = store._db.backend
        with clew.open(store.path) as other:
            theirs = other.profile("me").open(conv.id)
            draft = clew.user("a", key="k")
            backend.between = lambda: theirs.append([draft])
            mine = conv.append([draft])
            backend.between = lambda: theirs.begin_turn([clew.user("b", key="b")], holder=OTHER)
            turn = conv.begin_turn([clew.user("b", key="b")], holder=HOLDER)
        assert texts(conv) == ["a", "b"]
        assert mine.seqs == (1,)
        if how is RunsTwice:  # rolled back: it was the other's message, and the other's turn
            assert mine.new == 0
            assert isinstance(turn, clew.TurnKnown)
        else:
            assert mine.new == 1
            assert isinstance(turn, clew.TurnHandle)
        assert len(conv.turns()) == 1
