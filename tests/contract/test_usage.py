"""Model calls: planned before, finished after; usage by model."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from pathlib import Path
from typing import Literal

import apsw
import pytest
from talk import HOLDER, begun, compact, talk

import clew
from clew import CallPlan, CallResult, Usage
from clew.domain.turns import SLOT
from clew.store import queries
from clew.testing.clock import FakeClock

NOTHING = defaultdict[str, int](int)
"""Each parameter of a statement."""


def test_a_call_is_there_before_it_is_made(conv: clew.Conversation) -> None:
    talk(conv, "a", "b")
    compact(conv, 2)
    plan = CallPlan(model="m1", settings={"temperature": 0})
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER, call=plan))
    assert turn.call == 1
    (row,) = conv.calls()
    assert (row.number, row.turn, row.purpose, row.model) == (1, 1, "turn", "m1")
    assert (row.state, row.generation, row.up_to_seq) == ("planned", 1, 3)
    step = turn.record(
        [clew.assistant("x")],
        call=1,
        result=CallResult(usage=Usage(10, 2, 3, 1), cost=0.5, latency=7),
        next_call=CallPlan(model="m2"),
    )
    assert step.call == 2
    one, two = conv.calls()
    assert (one.state, one.usage, one.cost, one.latency) == ("done", Usage(10, 2, 3, 1), 0.5, 7)
    assert (two.state, two.up_to_seq) == ("planned", 4)


def test_the_first_result_of_a_call_stays(conv: clew.Conversation) -> None:
    number = conv.plan_call(CallPlan(model="m", purpose="title"))
    conv.finish_call(number, CallResult(usage=Usage(1)))
    conv.finish_call(number, CallResult(state="failed", error="late"))
    (row,) = conv.calls()
    assert (row.turn, row.purpose, row.state, row.usage.input) == (None, "title", "done", 1)
    with pytest.raises(clew.NotFound):
        conv.finish_call(9, CallResult())


def test_what_streamed_so_far_is_kept_beside_the_call(conv: clew.Conversation) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER, call=CallPlan(model="m")))
    turn.save_partial(1, "Once upon \ud83d")
    assert conv.calls()[0].partial == "Once upon \ud83d"
    assert conv.info().message_count == 1
    turn.save_partial(1, "Once upon a time")
    turn.record([clew.assistant("Once upon a time.")], call=1, result=CallResult())
    assert conv.calls()[0].partial is None


def test_calls_of_an_interrupted_turn_have_failed(conv: clew.Conversation) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER, call=CallPlan(model="m")))
    turn.save_partial(1, "so far")
    conv.interrupt_turn()
    (row,) = conv.calls()
    assert (row.state, row.error, row.partial) == ("failed", "interrupted", "so far")
    with pytest.raises(clew.RightLost):
        turn.save_partial(1, "late")


def test_usage_is_added_up_by_model(
    store: clew.Store, profile: clew.Profile, clock: FakeClock
) -> None:
    one, two = profile.create(), profile.create()
    other = store.profile("other").create()
    for conv, model, tokens in ((one, "a", 1), (one, "a", 2), (two, "b", 4), (other, "a", 8)):
        number = conv.plan_call(CallPlan(model=model))
        conv.finish_call(number, CallResult(usage=Usage(tokens, tokens), cost=0.25))
        clock.advance(10)
    failed = one.plan_call(CallPlan(model="a"))
    conv_usage = one.usage()
    one.finish_call(failed, CallResult(state="failed", usage=Usage(16)))
    assert [(u.model, u.calls, u.usage.input, u.cost) for u in conv_usage] == [("a", 2, 3, 0.5)]
    assert [(u.model, u.calls, u.usage.input) for u in profile.usage()] == [
        ("a", 3, 19), ("b", 1, 4),
    ]  # fmt: skip
    assert [(u.model, u.calls) for u in profile.usage(clock.now())] == [("a", 1)]


def called(
    conv: clew.Conversation, model: str, tokens: int, cost: float | None = None,
    purpose: Literal["turn", "summary", "title", "review"] = "turn",
    state: Literal["done", "failed"] = "done",
) -> None:  # fmt: skip
    """A call that ended now."""
    number = conv.plan_call(CallPlan(model=model, purpose=purpose))
    usage = Usage(tokens, tokens * 2, tokens // 2, 1)
    conv.finish_call(number, CallResult(state=state, usage=usage, cost=cost))


def test_usage_by_model_tells_purposes_and_what_is_not_known(profile: clew.Profile) -> None:
    conv = profile.create()
    called(conv, "b", 10, 0.5)
    called(conv, "b", 20)
    called(conv, "b", 4, 0.25, "title")
    called(conv, "a", 8, None, "summary", "failed")
    conv.plan_call(CallPlan(model="a"))
    rows = profile.usage_by()
    assert [(r.model, r.purpose, r.calls, r.failed, r.priced, r.cost) for r in rows] == [
        ("a", "summary", 1, 1, 0, 0.0), ("b", "title", 1, 0, 1, 0.25), ("b", "turn", 2, 0, 1, 0.5),
    ]  # fmt: skip
    assert rows[2].usage == Usage(30, 60, 15, 2)
    assert {(r.at, r.conversation, r.title) for r in rows} == {(None, None, None)}


def test_usage_by_time_has_slots_of_which_any_zone_makes_days(
    profile: clew.Profile, clock: FakeClock
) -> None:
    conv = profile.create()
    clock.advance(-clock.now() % SLOT)
    begin = clock.now()
    called(conv, "m", 1)
    clock.advance(SLOT - 1)
    called(conv, "m", 2)
    clock.advance(1)
    called(conv, "m", 4)
    assert [(r.at, r.calls, r.usage.input) for r in profile.usage_by("time")] == [
        (begin, 2, 3), (begin + SLOT, 1, 4),
    ]  # fmt: skip


def test_usage_by_conversation_names_it(store: clew.Store, profile: clew.Profile) -> None:
    one, two = profile.create(title="one"), profile.create()
    called(two, "m", 1)
    called(one, "m", 2)
    called(one, "n", 4)
    called(store.profile("other").create(), "m", 8)
    assert [(r.conversation, r.title, r.model, r.usage.input) for r in
            profile.usage_by("conversation")] == [
        (one.id, "one", "m", 2), (one.id, "one", "n", 4), (two.id, None, "m", 1),
    ]  # fmt: skip


def test_usage_is_of_a_span(profile: clew.Profile, clock: FakeClock) -> None:
    conv = profile.create()
    for tokens in (1, 2, 4):
        called(conv, "m", tokens)
        clock.advance(10)
    now = clock.now()
    assert [r.usage.input for r in profile.usage_by(since=now - 20)] == [6]
    assert [r.usage.input for r in profile.usage_by(since=now - 30, until=now - 10)] == [3]
    assert profile.usage_by(since=now) == profile.usage_by(until=0) == ()


def test_usage_by_something_else_is_refused(profile: clew.Profile) -> None:
    with pytest.raises(clew.InputError, match="conversation"):
        profile.usage_by("week")  # type: ignore[arg-type]


@pytest.mark.requires("file")
@pytest.mark.parametrize("name", ["model_call_usage", "model_call_usage_by"])
def test_recent_usage_does_not_read_old_calls(
    name: str, profile: clew.Profile, place: Path
) -> None:
    """What a day cost is asked before each turn."""
    profile.create()
    with contextlib.closing(apsw.Connection(str(place))) as file:
        plan = file.execute(f"EXPLAIN QUERY PLAN {queries.load('sqlite')[name]}", NOTHING)
        steps = [step for *_, step in plan]
    assert "model_call_started" in steps[0]
    assert not [step for step in steps if step.startswith("SCAN")]
