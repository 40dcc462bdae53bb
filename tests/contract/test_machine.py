"""Random work on the reference and on every engine: same answers, same errors, same state."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)
from talk import memory_dir
from twins import OBSERVED, Twins, outcome

import clew
import servers
from clew import Draft, Role, Text, ToolCall, ToolResult
from clew.domain.parts import call_ids
from clew.testing.clock import FakeClock, seeded_ids
from clew.testing.reference import ReferenceStore

TTL = 1000
NAMED = st.sampled_from([
    clew.user("first", key="k1"),
    clew.assistant("second", key="k2"),
    clew.user("third", uid="1" * 32),
    clew.user("third", uid="1" * 32, key="k3"),
    clew.user("something else", key="k1"),
    clew.assistant("something else", uid="1" * 32),
    clew.user("for the next turn", meta={"queue": True}),
])  # fmt: skip
"""Messages that come again, and names that come with other content."""
TEXTS = st.sampled_from(["a", "b", "", "two words\nand a line", "\ud800 lone", "nul \0"])
KEYS = st.sampled_from([None, None, "k4", "k5"])
CALLS = st.lists(st.sampled_from(["c1", "c2"]), min_size=1, max_size=2, unique=True)


@st.composite
def free(draw: st.DrawFn) -> Draft:
    role = draw(st.sampled_from([Role.USER, Role.USER, Role.ASSISTANT, Role.SYSTEM, Role.TOOL]))
    parts: tuple[Any, ...] = (Text(draw(TEXTS)),)
    if role is Role.ASSISTANT and draw(st.booleans()):
        parts += tuple(ToolCall(id, "run", "{}") for id in draw(CALLS))
    if role is Role.TOOL:
        parts = tuple(ToolResult(id, "ok") for id in draw(CALLS))
    return Draft(
        role=role, parts=parts,
        author=draw(st.sampled_from([None, None, "Ada"])),
        created_at=draw(st.sampled_from([None, None, 1_700_000_000_000_000])),
        replaces=draw(st.sampled_from([None] * 9 + [1])),
    )  # fmt: skip


HASH = hashlib.sha256(b"png").hexdigest()
PICTURE = st.sampled_from([{"data": b"png"}, {"hash": HASH}, {"hash": HASH, "size": 3}]).map(
    lambda fields: Draft(role=Role.USER, parts=(clew.Image(**fields),))
)
"""An image with its bytes, or by a hash that may not be here."""
DRAFT = st.one_of(free(), free(), NAMED, PICTURE)
BATCH = st.lists(DRAFT, min_size=1, max_size=3)
MAYBE = st.lists(DRAFT, max_size=2)
PLAN = st.none() | st.builds(clew.CallPlan, model=st.sampled_from(["m1", "m2"]))
RESULT = st.builds(clew.CallResult, usage=st.just(clew.Usage(3, 4)), latency=st.just(5))
SEEN = st.sampled_from([None, None, "right", "wrong"])
"""What the caller says of head or view: nothing, the truth, or something else."""
MANY = 4
"""Conversations at once; more are only more of the same."""
PLACE = st.integers(0, 9)
"""A place in the log, counted from its end; 9 is none that is there."""


LITTLE: list[Callable[[Any], Any]] = [
    lambda c: c.set_title("A"),
    lambda c: c.set_title("É_\U0001f600 a%"),
    lambda c: c.set_title(None),
    lambda c: c.set_title("robot", "llm"),
    lambda c: c.set_title(" ", "derived"),
    lambda c: c.lock_title("locked"),
    lambda c: c.lock_title("free", False),
    lambda c: c.mark(read_only=True),
    lambda c: c.set_todos([clew.Todo("t"), clew.Todo("u", "done")]),
    lambda c: c.set_goal("x"),
    lambda c: c.close_goal(),
    lambda c: c.claim_alias("tool", "f1"),
    lambda c: c.claim_alias("tool", "f2", from_seq=2),
    lambda c: c.withdraw(1),
    lambda c: c.plan_call(clew.CallPlan(model="m3", purpose="title")),
    lambda c: c.finish_call(1, clew.CallResult(state="failed", error="e")),
    lambda c: c.interrupt_turn("why"),
    lambda c: c.pin(),
    lambda c: c.archive(),
]
LOOKS: list[Callable[[Any], Any]] = [
    *[lambda p, n=name: p.resolve(n) for name in ("c", "c001", "f1", "f", "C002", "nobody")],
    lambda p: p.list(limit=20).items,
    lambda p: p.list(clew.ListFilter(archived=True), limit=20).items,
    lambda p: p.list(limit=20, pinned_first=True).items,
    *[
        lambda p, t=text: p.list(clew.ListFilter(title=t), limit=20).items
        for text in ("A", "_", "é")
    ],
    lambda p: p.unfinished(),
    lambda p: p.bound("x", source="tg"),
]


class Same:
    """The same in every store: stores, a conversation, a turn, an answer."""

    def __init__(self, reference: Any, *engines: Any) -> None:
        self.reference, self.engines = reference, engines

    def map(self, work: Callable[[Any], Any]) -> Same:
        return Same(*map(work, (self.reference, *self.engines)))


class Machine(RuleBasedStateMachine):
    """Every rule does one thing to all stores."""

    conversations = Bundle("conversations")
    turns = Bundle("turns")

    def __init__(self) -> None:
        super().__init__()
        self.dir = memory_dir()
        self.clocks: list[FakeClock] = []
        places = self.dir / "store.db", servers.empty_database()
        self.stores = Same(
            ReferenceStore(**self.tools()), *[clew.open(place, **self.tools()) for place in places]
        )
        self.twins = [Twins() for _ in places]
        self.touched: dict[str, Same] = {}
        self.changed: set[str] = set()
        self.made = 0

    def tools(self) -> dict[str, Any]:
        """A clock, ids and limits: alike, but each store mints ids of its own."""
        clock = FakeClock(step=0)
        self.clocks.append(clock)
        ids = seeded_ids(clock, len(self.clocks))
        return {"clock": clock, "ids": ids, "limits": clew.Limits(inbox=3)}

    def teardown(self) -> None:
        try:
            for conv in self.touched.values():
                self.look(conv)
            for store in self.stores.engines:
                problems = store.verify()
                assert problems == [], problems
        finally:
            for store in self.stores.engines:
                store.close()
            shutil.rmtree(self.dir)

    # ------------------------------------------------------------------ all at once

    def all(self, those: Same, work: Callable[[Any], Any]) -> Same:
        """Do the same to each and compare; gives the answers."""
        id = getattr(those.reference, "id", None)
        self.changed |= self.touched.keys() if id is None else {id}
        answers = those.map(lambda one: outcome(lambda: work(one)))
        self.compare(answers, "answer")
        return answers

    def compare(self, answers: Same, where: str) -> None:
        for twins, actual in zip(self.twins, answers.engines, strict=True):
            twins.same(answers.reference, actual, where)

    def profiles(self) -> Same:
        return self.stores.map(lambda store: store.profile("p"))

    def look(self, conv: Same) -> None:
        """All that can be seen is the same."""
        for name, read in OBSERVED:
            self.compare(conv.map(read), name)

    def glance(self, conv: Same) -> None:
        """As `look`, at the first engine only: many small reads are slow on a server."""
        for name, read in OBSERVED:
            self.twins[0].same(read(conv.reference), read(conv.engines[0]), name)

    def known(self, answers: Same) -> Any:
        """The answer as a conversation to go on with, unless it is an error."""
        if isinstance(answers.reference, tuple):
            return multiple()
        return self.touched.setdefault(answers.reference.id, answers)

    def new(self, **fields: Any) -> clew.NewConversation:
        self.made += 1
        return clew.NewConversation(id=f"c{self.made:03}", source="tg", **fields)

    @staticmethod
    def seq_at(conv: Any, place: int) -> int:
        """The seq of a place."""
        head = conv.info().head
        return head + 1 if place == 9 else max(1, head - place)

    def uid_at(self, conv: Any, place: int) -> str:
        """The uid of a place, or one that nobody has."""
        try:
            return conv.message(self.seq_at(conv, place)).uid
        except clew.NotFound:
            return "f" * 32

    def proposal(self, conv: Any, to: int, length: int, stub: bool) -> clew.Proposal:
        """A summary, then the last of what it covers, verbatim or shortened."""
        last = self.seq_at(conv, to)
        first = max(1, last - length)
        kept = clew.Stub(first, "short") if stub else clew.Ref(first, last)
        body = (clew.Inline(Role.USER, (Text("summary"),)), kept)
        return clew.Proposal(covers_to=last, body=body, tokens_before=9, tokens_after=3)

    @staticmethod
    def seen(conv: Any, head: str | None, view: str | None) -> dict[str, int]:
        info = conv.info()
        said = {"head": (head, info.head), "view": (view, info.view)}
        return {
            name: value if truth == "right" else value + 1
            for name, (truth, value) in said.items()
            if truth is not None
        }

    # ------------------------------------------------------------------ conversations

    @initialize(target=conversations, batch=BATCH)
    def first(self, batch: list[Draft]) -> Any:
        new = self.new(title="Title")
        made = self.known(self.all(self.profiles(), lambda p: p.create(new)))
        talk = [clew.user("q1"), clew.assistant("a1"), clew.user("q2"), clew.assistant("a2")]
        self.all(made, lambda c: c.append([*talk, *batch]))
        return made

    @rule(conv=conversations, batch=BATCH, head=SEEN)
    def append(self, conv: Same, batch: list[Draft], head: str | None) -> None:
        self.all(conv, lambda c: c.append(batch, **self.seen(c, head, None)))

    @rule(conv=conversations, count=st.integers(1, 3))
    def pop(self, conv: Same, count: int) -> None:
        self.all(conv, lambda c: c.pop(count))

    @rule(conv=conversations, keep=st.integers(0, 3), batch=MAYBE)
    def replace(self, conv: Same, keep: int, batch: list[Draft]) -> None:
        def work(c: Any) -> Any:
            there = [m.draft() for m in list(c.messages())[:keep]]
            return c.replace([*there, *batch])

        self.all(conv, work)

    # ------------------------------------------------------------------ turns

    @rule(target=turns, conv=conversations, batch=MAYBE, plan=PLAN,
          holder=st.sampled_from(["h1", "h2"]))  # fmt: skip
    def begin(self, conv: Same, batch: list[Draft], plan: Any, holder: str) -> Any:
        begun = self.all(conv, lambda c: c.begin_turn(batch, holder=holder, ttl=TTL, call=plan))
        return begun if hasattr(begun.reference, "right") else multiple()

    @rule(target=turns, conv=conversations, holder=st.sampled_from(["h1", "h2"]))
    def resume(self, conv: Same, holder: str) -> Any:
        begun = self.all(conv, lambda c: c.resume_turn(holder=holder, ttl=TTL))
        return begun if hasattr(begun.reference, "right") else multiple()

    @rule(target=turns, conv=conversations, head=SEEN)
    def begin_at(self, conv: Same, head: str | None) -> Any:
        """To answer what stands at the end."""
        begun = self.all(
            conv, lambda c: c.begin_turn(holder="h1", ttl=TTL, **self.seen(c, head, None))
        )
        return begun if hasattr(begun.reference, "right") else multiple()

    @rule(turn=turns, batch=MAYBE, take=st.booleans(), plan=PLAN, asks=st.booleans())
    def record(self, turn: Same, batch: list[Draft], take: bool, plan: Any, asks: bool) -> None:
        made = [id for draft in batch for id in call_ids(draft.parts)] if asks else []
        wanted = [clew.Ask(id, f"tool {id}") for id in made]
        self.all(turn, lambda t: t.record(batch, take_inbox=take, next_call=plan, asks=wanted))

    @rule(turn=turns, conv=conversations, id=st.sampled_from(["c1", "c2"]), allow=st.booleans(),
          always=st.booleans())  # fmt: skip
    def answer(self, turn: Same, conv: Same, id: str, allow: bool, always: bool) -> None:
        self.all(conv, lambda c: c.answer_call(id, allow, always=always, by="Ada"))
        self.all(turn, lambda t: t.record(started=[id]))

    @rule(turn=turns, number=st.integers(1, 3), result=RESULT)
    def finish_call(self, turn: Same, number: int, result: clew.CallResult) -> None:
        self.all(turn, lambda t: t.save_partial(number, "so far"))
        self.all(turn, lambda t: t.record(call=number, result=result))
        self.all(turn, lambda t: t.renew())

    @rule(turn=turns, batch=MAYBE, state=st.sampled_from(["done", "failed", "waiting"]))
    def finish(self, turn: Same, batch: list[Draft], state: Any) -> None:
        self.all(turn, lambda t: t.finish(batch, state=state, deliveries=[clew.Delivery("r", 1)]))

    @rule(micros=st.sampled_from([1, TTL - 1, TTL, -2 * TTL]))
    def time_passes(self, micros: int) -> None:
        for clock in self.clocks:
            clock.advance(micros)

    # ------------------------------------------------------------------ cuts and branches

    @rule(conv=conversations, seq=PLACE, head=SEEN, view=SEEN)
    def cut(self, conv: Same, seq: int, head: str | None, view: str | None) -> None:
        self.all(conv, lambda c: c.cut(self.uid_at(c, seq), **self.seen(c, head, view)))

    @rule(conv=conversations, number=st.none() | st.integers(1, 3), head=SEEN, view=SEEN)
    def undo(self, conv: Same, number: int | None, head: str | None, view: str | None) -> None:
        self.all(conv, lambda c: c.undo_cut(number, **self.seen(c, head, view)))

    @rule(conv=conversations, seq=PLACE, draft=DRAFT, view=SEEN)
    def edit(self, conv: Same, seq: int, draft: Draft, view: str | None) -> None:
        self.all(conv, lambda c: c.edit(self.uid_at(c, seq), draft, **self.seen(c, None, view)))

    @rule(conv=conversations, seq=PLACE, key=KEYS)
    def retry(self, conv: Same, seq: int, key: str | None) -> None:
        self.all(conv, lambda c: c.retry(self.uid_at(c, seq), key=key))

    @precondition(lambda self: len(self.touched) < MANY)
    @rule(target=conversations, conv=conversations, seq=st.none() | PLACE, head=SEEN)
    def branch(self, conv: Same, seq: int | None, head: str | None) -> Any:
        new = self.new()

        def work(c: Any) -> Any:
            uid = None if seq is None else self.uid_at(c, seq)
            return c.branch(uid, new=new, **self.seen(c, head, None))

        return self.known(self.all(conv, work))

    @precondition(lambda self: len(self.touched) < MANY)
    @rule(target=conversations, conv=conversations, number=st.integers(1, 3))
    def branch_at_cut(self, conv: Same, number: int) -> Any:
        new = self.new()
        return self.known(self.all(conv, lambda c: c.branch(at_cut=number, new=new)))

    @precondition(lambda self: len(self.touched) < MANY)
    @rule(target=conversations, conv=conversations)
    def delegate(self, conv: Same) -> Any:
        new = self.new()
        return self.known(self.all(conv, lambda c: c.delegate(new)))

    @rule(conv=conversations, seq=st.none() | PLACE, id=st.integers(1, MANY))
    def repeat(self, conv: Same, seq: int | None, id: int) -> None:
        """Make a conversation of an id that is there: as it was made, or as something else."""
        new = clew.NewConversation(id=f"c{id:03}", source="tg")
        if new.id not in self.touched:
            return

        def branch(c: Any) -> Any:
            return c.branch(None if seq is None else self.uid_at(c, seq), new=new)

        self.all(conv, branch)
        self.all(conv, lambda c: c.delegate(new))
        self.all(self.profiles(), lambda p: p.create(new))
        self.all(self.profiles(), lambda p: p.conversation(f"key {seq}", new=new))

    @rule(conv=conversations, at=st.none() | st.integers(0, 6))
    def snapshot(self, conv: Same, at: int | None) -> None:
        self.all(
            conv,
            lambda c: [list(c.snapshot(at).messages()), c.snapshot(at).context_inputs().messages],
        )

    # ------------------------------------------------------------------ compactions

    @rule(conv=conversations, trigger=st.sampled_from(["soft", "hard", "user"]),
          deadline=st.booleans())  # fmt: skip
    def open_attempt(self, conv: Same, trigger: Any, deadline: bool) -> None:
        limit = self.clocks[0].now() + TTL if deadline else None
        self.all(conv, lambda c: c.open_attempt(trigger, model="m1", deadline=limit))

    @rule(conv=conversations, back=st.integers(0, 1), to=PLACE, length=PLACE, stub=st.booleans())
    def commit(self, conv: Same, back: int, to: int, length: int, stub: bool) -> None:
        self.all(
            conv,
            lambda c: c.commit_attempt(
                len(c.attempts()) - back, self.proposal(c, to, length, stub)
            ),
        )

    @rule(conv=conversations, to=PLACE, length=PLACE, stub=st.booleans())
    def compact(self, conv: Same, to: int, length: int, stub: bool) -> None:
        self.all(
            conv,
            lambda c: c.commit_attempt(c.open_attempt().number, self.proposal(c, to, length, stub)),
        )

    @rule(conv=conversations, to=PLACE)
    def foreign(self, conv: Same, to: int) -> None:
        self.all(conv, lambda c: c.record_foreign_compaction(self.proposal(c, to, 0, False)))

    @rule(conv=conversations, back=st.integers(0, 1), fail=st.booleans())
    def close_attempt(self, conv: Same, back: int, fail: bool) -> None:
        def work(c: Any) -> Any:
            number = len(c.attempts()) - back
            return c.fail_attempt(number, "no-op") if fail else c.cancel_attempt(number)

        self.all(conv, work)

    @rule(conv=conversations, generation=st.integers(1, 3))
    def undo_compaction(self, conv: Same, generation: int) -> None:
        self.all(conv, lambda c: c.undo_compaction(generation))

    # ------------------------------------------------------------------ the row

    @rule(conv=conversations, reason=st.sampled_from(["closed", "stale", "idle", "nonsense"]))
    def end(self, conv: Same, reason: str) -> None:
        self.all(conv, lambda c: c.end(reason))

    @rule(conv=conversations)
    def reopen(self, conv: Same) -> None:
        self.all(conv, lambda c: c.mark(read_only=False))
        self.all(conv, lambda c: c.reopen())

    @rule(conv=conversations, work=st.sampled_from(LITTLE))
    def little(self, conv: Same, work: Callable[[Any], Any]) -> None:
        self.all(conv, work)

    # ------------------------------------------------------------------ profile

    @precondition(lambda self: len(self.touched) < MANY)
    @rule(target=conversations, key=st.sampled_from(["x", "y"]))
    def route(self, key: str) -> Any:
        new = self.new()
        return self.known(
            self.all(self.profiles(), lambda p: p.conversation(key, source="tg", new=new))
        )

    @precondition(lambda self: len(self.touched) < MANY)
    @rule(target=conversations, key=st.sampled_from(["x", "y"]))
    def reset(self, key: str) -> Any:
        new = self.new()
        self.all(self.profiles(), lambda p: p.reset(key, source="tg", new=new))
        return self.known(self.all(self.profiles(), lambda p: p.open(new.id)))

    @rule(route=st.sampled_from(["x", "y"]), update=st.sampled_from(["u1", "u2"]), batch=MAYBE,
          wait=st.booleans())  # fmt: skip
    def receive(self, route: str, update: str, batch: list[Draft], wait: bool) -> None:
        new = self.new()
        self.all(
            self.profiles(),
            lambda p: p.receive(
                route,
                batch,
                source="tg",
                account="bot",
                key=update,
                new=new,
                result="r",
                wait=wait,
            ),
        )

    @rule(work=st.sampled_from(LOOKS))
    def look_around(self, work: Callable[[Any], Any]) -> None:
        self.all(self.profiles(), work)

    @precondition(lambda self: len(self.touched) > 2)
    @rule(conv=consumes(conversations))
    def delete(self, conv: Same) -> None:
        self.all(self.profiles(), lambda p: p.delete(conv.reference.id))
        self.all(conv, lambda c: c.info())
        self.touched.pop(conv.reference.id, None)

    # ------------------------------------------------------------------ always

    @invariant()
    def looks_the_same(self) -> None:
        for id in self.changed & self.touched.keys():
            self.glance(self.touched[id])
        self.changed.clear()


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=2 * settings.default.max_examples, stateful_step_count=25
)
