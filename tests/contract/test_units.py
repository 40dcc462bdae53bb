"""Exactly once: every write answers and does the same although its unit runs more than once.

A batch that fails is run again, and a commit whose outcome nobody knows is run again after it may
have gone through. Here that happens to every unit of every write method: run and rolled back
first, or run, committed and run again. Whatever the engine, it comes to the same.
"""

from __future__ import annotations

import inspect
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from raw import Raw
from talk import HOLDER, OTHER, begun, calls, memory_dir, proposal, result, summary, talk, texts
from twins import OBSERVED, Twins, outcome

import clew
from apart import apart
from clew import CallPlan, CallResult, NewConversation, Usage
from clew.domain.retention import Policy
from clew.store.backend import Transaction, Unit
from clew.testing.clock import FakeClock, seeded_ids
from imports import SAMPLES, import_into, shown

pytestmark = pytest.mark.requires("engine")
LONG = 10 * 60 * 1_000_000
"""Microseconds after which a holder that was not heard of is gone."""


class RolledBack(Exception):
    """Ends a transaction in which all went well."""


class Watched:
    """A transaction that knows whether it changed anything."""

    def __init__(self, tx: Any) -> None:
        self._tx = tx
        self.wrote = False

    def __getattr__(self, name: str) -> Any:
        self.wrote |= name in ("run", "batch")
        return getattr(self._tx, name)

    def changed(self, *args: Any, **params: Any) -> int:
        count = self._tx.changed(*args, **params)
        self.wrote |= count > 0
        return count


class Plain:
    """A backend as it is."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.once: Callable[[], object] | None = None
        """What somebody else does after the first run of the next unit."""
        self.always: Callable[[], object] | None = None
        """What somebody else does after the first run of every unit that wrote something."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def write(self, unit: Unit[Any]) -> Any:
        return self.first(unit)

    def first(self, unit: Unit[Any]) -> Any:
        """Run the unit, and then let somebody else go on."""
        watched = Watched(None)

        def run(tx: Any) -> Any:
            nonlocal watched
            watched = Watched(tx)
            return unit(watched)

        answer = self._backend.write(run)
        self.somebody_else(watched.wrote)
        return answer

    def somebody_else(self, wrote: bool) -> None:
        work, self.once = self.once or (self.always if wrote else None), None
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
        self.somebody_else(wrote=False)
        return self._backend.write(unit)


class CommitsTwice(Plain):
    """Every unit runs and is committed; nobody knows, so it runs again, with the same answer."""

    def write(self, unit: Unit[Any]) -> Any:
        first = self.first(unit)
        again = self._backend.write(unit)
        assert again == first, f"{unit} answered {first!r}, then {again!r}"
        return again


class CommitsLate(Plain):
    """Every unit runs again before its first run has ended, as after a lost connection: the server
    may still have the COMMIT before it."""

    waits: Callable[[], bool]
    """Whether anybody waits for a lock."""

    def write(self, unit: Unit[Any]) -> Any:
        ran, end = threading.Event(), threading.Event()

        def slow(tx: Transaction) -> Any:
            try:
                return unit(tx)
            finally:
                ran.set()
                end.wait()
                self.ending()

        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(self._backend.write, slow)
            ran.wait()
            again = pool.submit(self._backend.write, unit)
            while not again.done() and not self.waits():
                pass
            end.set()
        if first.exception() is None:
            assert again.result() == first.result(), unit
        return again.result()

    def ending(self) -> None:
        """Last in the transaction."""


class RollsBackLate(CommitsLate):
    """As above, but the COMMIT never arrived."""

    def ending(self) -> None:
        raise RolledBack


How = type[Plain]
Open = Callable[..., AbstractContextManager[clew.Store]]
Seen = list[tuple[str, Any]]


@pytest.fixture
def opened(backend, place: Any) -> Open:
    """Opens the store at `place` so that its units run in the way of a class."""

    @contextmanager
    def opening(how: How, place: Any = place, step: int = 0) -> Iterator[clew.Store]:
        clock = FakeClock(step=step)
        with backend.open(place, clock, clew.Limits()) as store:
            store._db.backend = how(store._db.backend)
            yield store
            assert store.verify() == []

    return opening


class Script:
    """One call of every write method, or several where there are several outcomes."""

    def __init__(self, store: clew.Store) -> None:
        self.profile = store.profile("me")
        clock = self.profile.clock
        assert isinstance(clock, FakeClock)
        self.clock = clock
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
        self.do(self.profile, "subscribe", "memory")
        for part in (
            self._log, self._turns, self._asks, self._spoken, self._cuts, self._compactions,
            self._row, self._bind,
        ):  # fmt: skip
            part()
        self._boundaries()
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
        replies = [clew.Delivery("r", n) for n in range(3)]
        do(again, "finish", [clew.assistant("done")], deliveries=replies)
        self._deliveries()
        do(again, "finish")
        do(conv, "begin_turn", holder=HOLDER)
        do(conv, "begin_turn", [clew.user("more")], holder=HOLDER)
        do(conv, "interrupt_turn", "why")
        do(conv, "interrupt_turn", "why")
        number = do(conv, "plan_call", CallPlan(model="m", purpose="title"))
        do(conv, "finish_call", number, CallResult(usage=Usage(3)))

    def _asks(self) -> None:
        do, conv = self.do, self.keep(self.do(self.profile, "create", self.new()))
        turn = do(conv, "begin_turn", [clew.user("go")], holder=HOLDER)
        asks = [clew.Ask("c1", "run"), clew.Ask("c2", "run")]
        do(turn, "record", [calls("c1", "c2", "c3")], asks=[*asks, clew.Ask("c3", "look")])
        do(conv, "answer_call", "c1", True, always=True, by="Ada")
        do(conv, "answer_call", "c1", False)
        do(conv, "answer_call", "c2", False, by="Bob")
        do(conv, "answer_call", "nobody", True)
        do(turn, "record", started=["c1", "c2"])
        do(conv, "append", [clew.user("now")])
        do(conv, "append", [clew.user("next", meta={"queue": True})])
        do(turn, "record", [result(id) for id in ("c1", "c2", "c3")], take_inbox=True)
        do(turn, "record", take_inbox=True)
        do(turn, "finish", [clew.assistant("done")])
        do(conv, "answer_call", "c3", True)
        do(conv, "begin_turn", holder=HOLDER, head=2)
        again = do(conv, "begin_turn", holder=HOLDER, head=conv.info().head)
        do(conv, "begin_turn", holder=OTHER, head=2)
        do(again, "record", [calls("c1")], asks=[clew.Ask("c1", "look")])
        do(again, "wait")

    def _spoken(self) -> None:
        """Turns that are interrupted while their model speaks."""

        def speaking() -> clew.Conversation:
            conv = self.keep(do(self.profile, "create", self.new()))
            plan = CallPlan(model="m")
            turn = do(conv, "begin_turn", [clew.user("go")], holder=HOLDER, call=plan)
            do(turn, "save_partial", 1, "so far")
            return conv

        do = self.do
        for method, arguments in (
            ("interrupt_turn", ()), ("end", ("idle",)), ("pop", ()), ("replace", ([],)),
        ):  # fmt: skip
            do(speaking(), method, *arguments)
        for method in ("cut", "retry"):
            conv = speaking()
            do(conv, method, conv.message(1).uid)
        do(conv, "edit", conv.message(1).uid, clew.user("else"))
        for method, arguments, fields in (
            ("append", [clew.user("more")], {"head": 1}),
            ("begin_turn", [clew.user("more")], {"holder": OTHER}),
            ("begin_turn", [], {"holder": OTHER, "head": 1}),
        ):
            conv = speaking()
            self.clock.advance(LONG)
            do(conv, method, arguments, **fields)

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
            do(
                profile, "receive", "key", [clew.user("waits", key="waits")], source="tg",
                account="bot", key="u3", wait=True,
            )  # fmt: skip
        self.keep(profile.open(after.id or ""))
        do(profile, "receive", "key", [], source="tg", account="bot", key="u2")

    def _deliveries(self) -> None:
        do, profile = self.do, self.profile
        do(profile, "take_delivery", "elsewhere")
        gone = do(profile, "take_delivery", "r")
        do(profile, "take_delivery")
        do(profile, "settle_delivery", gone, "no such chat", give_up=True)
        do(profile, "settle_delivery", gone)
        do(profile, "settle_delivery", do(profile, "take_delivery"))
        do(profile, "settle_delivery", do(profile, "take_delivery"), "no network")

    def _boundaries(self) -> None:
        do, profile = self.do, self.profile

        def handler(boundary: clew.Boundary) -> None:
            if boundary.kind == "undo":
                raise ValueError(boundary.generation)

        do(profile, "subscribe", "memory")
        do(profile, "pending", "memory")
        do(profile, "deliver", "memory", handler)
        do(profile, "deliver", "memory", handler)
        do(profile, "deliver", "nobody", handler)
        do(profile, "subscribers")
        do(profile, "pending", "memory")
        do(profile, "unsubscribe", "memory")
        do(profile, "unsubscribe", "memory")

    def _delete(self) -> None:
        gone = self.conversations.pop(0)
        self.keep(self.do(gone, "branch", new=NewConversation(id="survivor")))
        for name in ("bin", "bin", "unbin", "unbin", "bin", "delete", "delete"):
            self.do(self.profile, name, gone.id)
        self.do(self.profile, "retain", Policy())
        self.do(self.profile, "bin", self.do(self.profile, "create", self.new()).id)
        self.do(self.profile, "empty_bin")


def run_and_looked_at(store: clew.Store) -> Seen:
    """The answers of the script, and all that can be seen afterwards."""
    script = Script(store)
    script.run()
    looks = (*OBSERVED, ("presence", lambda conv: conv.presence()))
    return [
        *((f"answer {number}", answer) for number, answer in enumerate(script.answers)),
        *((f"{c.id} {name}", read(c)) for c in script.conversations for name, read in looks),
    ]


def compare(expected: Seen, actual: Seen) -> None:
    twins = Twins()
    for (where, one), (there, other) in zip(expected, actual, strict=True):
        assert where == there
        twins.same(one, other, where)


@pytest.fixture(scope="module")
def expected() -> Seen:
    """On a file, where each unit runs once."""
    folder, clock = memory_dir(), FakeClock(step=0)
    with clew.open(folder / "store.db", clock=clock, ids=seeded_ids(clock)) as store:
        seen = run_and_looked_at(store)
    shutil.rmtree(folder)
    return seen


@pytest.mark.parametrize("how", [Plain, RunsTwice, CommitsTwice])
def test_all_writes_answer_and_do_the_same(opened: Open, expected: Seen, how: How) -> None:
    with opened(how) as store:
        actual = run_and_looked_at(store)
    compare(expected, actual)


@pytest.mark.requires("row locks")
@pytest.mark.parametrize("how", [CommitsLate, RollsBackLate])
def test_a_transaction_that_has_not_ended_is_waited_for(
    opened: Open, expected: Seen, place: Any, raw: Raw, how: How
) -> None:
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with raw.connect(place) as look, opened(how) as store:
        store._db.backend.waits = lambda: look(waiting) != []
        compare(expected, run_and_looked_at(store))


def test_what_others_did_meanwhile_changes_no_answer(opened: Open, backend, fast_dir: Path) -> None:
    """A unit was committed, others went on, and then it runs again: it answers as if nobody had."""

    def among_others(how: How) -> Seen:
        place, clock = backend.place(fast_dir), FakeClock(step=0)
        with (
            apart(place, clock=clock, ids=seeded_ids(clock, 7)) as other,
            opened(how, place) as store,
        ):
            profile = other.profile("me")

            def others() -> None:
                ids = [row.id for row in profile.list(limit=20).items]
                for id in ids if "c0" in ids else ():  # a deletion has a number of steps of its own
                    outcome(lambda id=id: profile.open(id).append([clew.user("theirs")]))

            store._db.backend.always = others
            return run_and_looked_at(store)

    compare(among_others(Plain), among_others(CommitsTwice))


def test_an_answer_is_the_same_at_another_time(opened: Open) -> None:
    """The clock goes on between the two runs; `CommitsTwice` compares their answers."""
    with opened(CommitsTwice, step=1) as store:
        Script(store).run()


def test_every_write_method_is_in_the_script(opened: Open) -> None:
    with opened(Plain) as store:
        script = Script(store)
        script.run()
    reads = {
        "Profile.open", "Profile.resolve", "Profile.bound", "Profile.was_deleted", "Profile.list",
        "Profile.search", "Profile.usage", "Profile.usage_by", "Profile.unfinished",
        "Profile.deliveries", "Profile.binned",
        "Profile.stats", "Profile.mark", "Profile.changes", "Profile.follow",
        "Conversation.context",
        "Profile.importing", "Profile.transfer",  # handles: what they land is tried below
        # Many transactions, each idempotent: tests of theirs kill it in between.
        "Profile.plan_erasure", "Profile.erase",
    }  # fmt: skip
    methods = {
        f"{kind.__name__}.{name}"
        for kind in (clew.Conversation, clew.TurnHandle, clew.Profile)
        for name, _ in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and not hasattr(clew.ConversationReader, name)
    }
    assert methods - reads == script.used


@pytest.mark.parametrize("how", [RunsTwice, CommitsTwice])
def test_an_import_lands_once(opened: Open, how: How, tmp_path: Path) -> None:
    """New conversations, cuts, a branch, sub-agents, a compaction, usage; and the same again."""
    folder = SAMPLES / "claude-code"
    with clew.open(tmp_path / "once.db") as store:
        import_into(store.profile("p"), folder)
        wanted = shown(store.profile("p"))
    with opened(how, step=1) as store:
        import_into(store.profile("p"), folder)
        import_into(store.profile("p"), folder)
        assert shown(store.profile("p")) == wanted


@pytest.mark.parametrize("how", [RunsTwice, CommitsTwice])
def test_jobs_are_claimed_and_given_back_once(opened: Open, how: How) -> None:
    with opened(how, step=1) as store:
        right = store.claim_job("prune")
        assert right is not None
        assert right.fence == 1
        assert store.claim_job("prune") is None
        store.renew_job(right)
        assert store.release_job(right)
        assert store.jobs()[0].fence == 1


@pytest.mark.parametrize("how", [RunsTwice, CommitsTwice])
def test_a_unit_tells_the_truth_when_another_was_faster(opened: Open, place: Any, how: How) -> None:
    """Between the two runs somebody else writes the same key."""
    with opened(how) as store:
        conv = store.profile("me").create()
        backend = store._db.backend
        with apart(place) as other:
            theirs = other.profile("me").open(conv.id)
            draft = clew.user("a", key="k")
            backend.once = lambda: theirs.append([draft])
            mine = conv.append([draft])
            backend.once = lambda: theirs.begin_turn([clew.user("b", key="b")], holder=OTHER)
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


class TestWhoWasOvertaken:
    """A first run that was rolled back, and another who took over before the second: what the other
    did is not taken for one's own."""

    @pytest.mark.parametrize("state", ["done", "failed", "interrupted", "waiting"])
    def test_a_turn_that_another_ended_was_not_ended_by_us(
        self, opened: Open, place: Any, state: Any
    ) -> None:
        """I-04."""
        with opened(RunsTwice, step=1) as store:
            conv = store.profile("me").create()
            turn = begun(conv.begin_turn([clew.user("q")], holder=HOLDER))
            with apart(place) as other:
                theirs = other.profile("me").open(conv.id)

                def take_over() -> None:
                    taken = theirs.resume_turn(holder=HOLDER)
                    taken.finish([clew.assistant("theirs")], state=state)

                store._db.backend.once = take_over
                with pytest.raises(clew.RightLost):
                    turn.finish([clew.assistant("mine")], state=state)
            assert texts(conv) == ["q", "theirs"]

    def test_a_replacement_whose_cut_is_missing_is_made(self, opened: Open, place: Any) -> None:
        with opened(RunsTwice) as store:
            conv = store.profile("me").create()
            talk(conv, "1", "2")
            with apart(place) as other:
                theirs = other.profile("me").open(conv.id)
                store._db.backend.once = lambda: theirs.append([clew.user("3", key="k3")])
                conv.replace([clew.user("1"), clew.user("3", key="k3")])
            assert texts(conv) == ["1", "3"]

    def test_a_reset_that_another_followed_answers_as_it_did(
        self, opened: Open, place: Any
    ) -> None:
        with opened(CommitsTwice) as store:
            profile = store.profile("me")
            first = profile.conversation("key", source="tg")
            with apart(place) as other:
                store._db.backend.once = lambda: other.profile("me").reset("key", source="tg")
                done = profile.reset("key", source="tg")
            assert done.previous == first.id
            assert profile.open(done.conversation).info().ended
