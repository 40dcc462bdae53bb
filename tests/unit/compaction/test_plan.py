"""Plans: what is covered, what stays, and what is never touched."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

import clew
from clew import Draft, Ref, Role, Stub, Text, ToolCall, ToolResult
from clew.compaction.plan import Nothing, Plan, make_plan
from clew.compaction.view import look
from clew.context.budget import Budget
from clew.domain.parts import answered_ids, call_ids
from clew.testing.clock import FakeClock, seeded_ids
from clew.testing.reference import ReferenceStore

BUDGET = Budget(window=6_000)
PROSE = "It reads the file, looks for the name, and writes what it has found to the other one. "


def conversation(drafts: list[Draft], **fields: Any) -> Any:
    clock = FakeClock()
    store: Any = ReferenceStore(clock=clock, ids=seeded_ids(clock))
    conv = store.profile("me").create(**fields)
    conv.append(drafts)
    return conv


def planned(conv: Any, target: int | None = None, budget: Budget = BUDGET) -> Plan | Nothing:
    view = look(conv, budget)
    return make_plan(view.inputs, view.layout, view.budget, view.measure, target)


def plan_of(conv: Any, target: int | None = None) -> Plan:
    plan = planned(conv, target)
    assert isinstance(plan, Plan)
    return plan


def exchange(n: int, words: int = 4) -> list[Draft]:
    return [clew.user(f"What does part {n} do?"), clew.assistant(PROSE * words)]


def step(n: int, output: int = 40) -> list[Draft]:
    return [
        Draft(role=Role.ASSISTANT, parts=(ToolCall(f"c{n}", "run", '{"command": "make"}'),)),
        Draft(role=Role.TOOL, parts=(ToolResult(f"c{n}", f"line {n}\n" * output, "run"),)),
    ]


def prose(count: int) -> list[Draft]:
    return [draft for n in range(count) for draft in exchange(n)]


def test_outputs_go_first_and_that_may_be_enough() -> None:
    conv = conversation([
        clew.user("Start."), *(d for n in range(16) for d in step(n, 110)), clew.assistant("Done."),
    ])  # fmt: skip
    plan = plan_of(conv)
    assert (plan.first, plan.room, plan.messages) == (0, 0, 0)
    assert plan.stubbed > 8
    assert all(isinstance(item, Ref | Stub) for item in plan.kept)


def test_else_the_oldest_give_way_to_the_ledger() -> None:
    plan = plan_of(conversation(prose(60)))
    assert plan.head == Ref(1, 2)
    assert (plan.first, plan.messages) == (3, plan.last - 2)
    assert plan.room > 0
    assert plan.covers_to > plan.last


def test_head_and_tail_are_protected() -> None:
    conv = conversation(prose(60))
    plan = plan_of(conv)
    tail = [m for m in conv.messages() if m.seq > plan.covers_to]
    assert len(tail) >= 4
    assert plan.head is not None
    assert plan.head.last < plan.first


def test_a_head_that_is_long_is_none() -> None:
    plan = plan_of(conversation([clew.user(PROSE * 60), clew.assistant("Yes."), *prose(50)]))
    assert plan.head is None
    assert plan.first == 1


def test_an_explicit_target_is_kept_to() -> None:
    conv = conversation(prose(60))
    wide, narrow = plan_of(conv, 3_000), plan_of(conv, 1_200)
    assert narrow.last > wide.last


def test_a_system_prompt_that_takes_all_is_told() -> None:
    conv = conversation(prose(60), prompt="word " * 5_500)
    plan = planned(conv, target=2_000)
    assert isinstance(plan, Nothing)
    assert "alone take" in plan.reason


def test_nothing_of_a_call_that_wants_its_result() -> None:
    """B37, B35."""
    drafts = [*prose(60), clew.user("go"), *step(1)[:1]]
    plan = plan_of(conversation(drafts))
    assert plan.covers_to < len(drafts) - 1


def test_parallel_calls_stay_together() -> None:
    """B28, B29."""
    calls = tuple(ToolCall(f"p{n}", "run") for n in range(8))
    results = [Draft(role=Role.TOOL, parts=(ToolResult(f"p{n}", PROSE * 12),)) for n in range(8)]
    conv = conversation([*prose(30), Draft(role=Role.ASSISTANT, parts=calls), *results,
                         clew.assistant("All ran."), *prose(3)])  # fmt: skip
    for target in range(800, 3_600, 100):
        plan = planned(conv, target)
        if isinstance(plan, Plan):
            _no_pair_is_split(conv, plan.covers_to)
            _no_pair_is_split(conv, plan.last)


def _no_pair_is_split(conv: Any, border: int) -> None:
    below = [m for m in conv.messages() if m.seq <= border]
    made = {call for m in below for call in call_ids(m.parts)}
    answered = {call for m in below for call in answered_ids(m.parts)}
    above = {call for m in conv.messages() if m.seq > border for call in answered_ids(m.parts)}
    assert not (made - answered) & above


@given(st.lists(st.sampled_from(["exchange", "step", "user", "groups"]), min_size=10, max_size=60),
       st.integers(600, 3_000))  # fmt: skip
def test_no_plan_splits_what_belongs_together(kinds: list[str], target: int) -> None:
    drafts: list[Draft] = []
    for n, kind in enumerate(kinds):
        match kind:
            case "exchange":
                drafts += exchange(n, 3)
            case "step":
                drafts += step(n, 10)
            case "user":
                drafts.append(clew.user(f"And {n}?"))
            case _:
                drafts += [
                    Draft(role=Role.ASSISTANT, parts=(Text(PROSE),), api_group=f"g{n}"),
                    Draft(role=Role.ASSISTANT, parts=(Text(PROSE),), api_group=f"g{n}"),
                ]
    conv = conversation(drafts)
    plan = planned(conv, target)
    if isinstance(plan, Nothing):
        assert plan.reason
        return
    _no_pair_is_split(conv, plan.covers_to)
    groups = {m.api_group for m in conv.messages() if m.seq <= plan.covers_to} - {None}
    assert not groups & {m.api_group for m in conv.messages() if m.seq > plan.covers_to}
    named = [seq for item in plan.kept for seq in _seqs(item)]
    assert named == sorted(set(named))
    assert not named or named[-1] <= plan.covers_to


def _seqs(item: Ref | Stub) -> list[int]:
    return [item.seq] if isinstance(item, Stub) else list(range(item.first, item.last + 1))
