"""Model calls: planned before, finished after; usage by model."""

from __future__ import annotations

import pytest
from talk import HOLDER, begun, compact, talk

import clew
from clew import CallPlan, CallResult, Usage
from clew.testing.clock import FakeClock


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


@pytest.mark.requires("usage")
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
