"""Usage of model calls, added up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from clew.domain.turns import SLOT, ModelCall, ModelUsage, Usage, UsageBy, UsageRow
from clew.errors import InputError
from clew.testing.reference.state import State


class _Group(NamedTuple):
    """What a row stands for; `at` and `number` are 0 where nobody asked for them."""

    at: int
    number: int
    model: str
    purpose: str


def by_model(calls: Iterable[ModelCall]) -> tuple[ModelUsage, ...]:
    """By model alone."""
    groups: dict[str, list[ModelCall]] = {}
    for call in calls:
        if call.state != "planned":
            groups.setdefault(call.model, []).append(call)
    return tuple(
        ModelUsage(model, len(group), _sum(group), _cost(group))
        for model, group in sorted(groups.items())
    )


def rows(
    states: Iterable[State], by: UsageBy, since: int, until: int | None
) -> tuple[UsageRow, ...]:
    """By model, purpose, and one thing more."""
    if by not in ("model", "time", "conversation"):
        raise InputError(f"by is {by!r}; give model, time or conversation")
    groups: dict[_Group, list[ModelCall]] = {}
    listed = list(states)
    for number, state in enumerate(listed):
        for call in state.calls:
            inside = since <= call.started_at and (until is None or call.started_at < until)
            if call.state != "planned" and inside:
                at = call.started_at // SLOT if by == "time" else 0
                where = number if by == "conversation" else 0
                group = _Group(at, where, call.model, call.purpose)
                groups.setdefault(group, []).append(call)
    return tuple(_row(group, listed[group.number], by, groups[group]) for group in sorted(groups))


def _row(group: _Group, state: State, by: UsageBy, calls: list[ModelCall]) -> UsageRow:
    one = by == "conversation"
    titles = (state.titles[each] for each in ("user", "llm", "derived") if each in state.titles)
    return UsageRow(
        model=group.model, purpose=group.purpose, calls=len(calls),
        failed=sum(call.state == "failed" for call in calls),
        priced=sum(call.cost is not None for call in calls), usage=_sum(calls), cost=_cost(calls),
        at=group.at * SLOT if by == "time" else None, conversation=state.id if one else None,
        title=next(titles, None) if one else None,
    )  # fmt: skip


def _sum(calls: list[ModelCall]) -> Usage:
    return Usage(
        sum(call.usage.input for call in calls), sum(call.usage.output for call in calls),
        sum(call.usage.cached for call in calls), sum(call.usage.reasoning for call in calls),
    )  # fmt: skip


def _cost(calls: list[ModelCall]) -> float:
    return sum((call.cost or 0.0 for call in calls), 0.0)
