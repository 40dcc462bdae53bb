"""Model calls: planned before they are made, finished after; usage lives here only."""

from __future__ import annotations

from collections.abc import Iterable

from clew.domain.turns import (
    SLOT,
    CallPlan,
    CallResult,
    ModelCall,
    ModelUsage,
    Spent,
    Usage,
    UsageBy,
    UsageRow,
)
from clew.errors import InputError, NotFound, TooLarge
from clew.store import conversations
from clew.store.backend import Row, Transaction, Value
from clew.store.codec import json_text, json_value
from clew.store.conversations import Locked
from clew.store.kit import Kit
from clew.store.unit import Once

Landed = tuple[str, Spent, int, int]
"""The group of an imported call, what it cost, the head and the time at it."""


def plan(
    tx: Transaction, kit: Kit, row: Locked, plan: CallPlan, now: int, turn: int | None = None,
    attempt: int | None = None,
) -> int:  # fmt: skip
    """Insert a planned call; gives its number. A crash leaves the row. `attempt`: the one it
    belongs to; when None, the newest there is, so that it stands in order with all of them."""
    kit.choice("purpose", plan.purpose, ("turn", "summary", "title", "review"))
    if plan.expected is not None and not 0 <= plan.expected <= MOST:
        raise InputError(f"expected is {plan.expected} tokens; give 0..{MOST}")
    last = tx.row("model_call_last", no=row.no)
    number = (last[0] if last else 0) + 1
    tx.run(
        "model_call_insert", no=row.no, number=number, turn=turn, purpose=plan.purpose,
        after_attempt=attempt, model=kit.key("model", plan.model), expected=plan.expected,
        settings=kit.json("settings", plan.settings), at=now,
    )  # fmt: skip
    return number


class Plan(Once[int]):
    """The unit of a call outside any turn."""

    def __init__(self, kit: Kit, no: int, name: str, plan: CallPlan, attempt: int | None) -> None:
        self._kit, self._no, self._name = kit, no, name
        self._plan, self._attempt, self._now = plan, attempt, kit.clock.now()

    def is_stored(self, tx: Transaction) -> bool:
        assert self._first is not None
        row = tx.row("model_call_get", no=self._no, number=self._first)
        return row is not None and (row[3], row[13]) == (self._plan.model, self._now)

    def run(self, tx: Transaction) -> int:
        row = conversations.lock(tx, self._no, self._name)
        return plan(tx, self._kit, row, self._plan, self._now, None, self._attempt)


def delete(tx: Transaction, no: int) -> None:
    tx.run("model_call_delete", no=no)


NEVER = 1 << 62
"""Microseconds: later than any call, and one slot that holds all."""
MOST = 1 << 53
"""No number that a result brings is higher: a sum of them stays an integer."""


def check_result(result: CallResult) -> None:
    """Refuse numbers that could not be added up."""
    usage = result.usage
    for name, value in (
        ("input", usage.input), ("output", usage.output), ("cached", usage.cached),
        ("reasoning", usage.reasoning), ("latency", result.latency or 0),
        ("expected", result.expected or 0), ("generation", result.generation or 0),
        ("up_to_seq", result.up_to_seq or 0),
    ):  # fmt: skip
        if not 0 <= value <= MOST:
            raise InputError(f"{name} is {value}; give 0..{MOST}")


def finish(tx: Transaction, kit: Kit, row: Locked, number: int, result: CallResult) -> None:
    """Store the result of a planned call; a second result changes nothing."""
    usage = result.usage
    check_result(result)
    kit.choice("the state of a call's result", result.state, ("done", "failed"))
    changed = tx.changed(
        "model_call_finish", no=row.no, number=number, state=result.state, input=usage.input,
        output=usage.output, cached=usage.cached, reasoning=usage.reasoning, cost=result.cost,
        latency=result.latency, prefix_hash=kit.label("prefix hash", result.prefix_hash),
        error=kit.remark(result.error), expected=result.expected, generation=result.generation,
        up_to_seq=result.up_to_seq,
    )  # fmt: skip
    if not changed and tx.row("model_call_get", no=row.no, number=number) is None:
        raise NotFound("model call", str(number))


def land(tx: Transaction, kit: Kit, no: int, calls: Iterable[Landed]) -> None:
    """Store the usage of another tool's calls. Of the same group again: the larger counts stay."""
    rows: list[dict[str, Value]] = []
    for group, spent, up_to_seq, at in calls:
        usage = spent.usage
        check_result(CallResult(usage=usage, latency=spent.latency))
        rows.append({
            "no": no, "model": kit.key("model", spent.model), "up_to_seq": up_to_seq,
            "input": usage.input, "output": usage.output, "cached": usage.cached,
            "reasoning": usage.reasoning, "cost": spent.cost, "latency": spent.latency, "at": at,
            "api_group": kit.key("api_group", group),
        })  # fmt: skip
    tx.batch("model_call_import", rows)


def streamed(tx: Transaction, no: int, turn: int) -> str | None:
    """What a planned call of the turn has streamed so far, as far as that was kept."""
    row = tx.row("model_call_streamed", no=no, turn=turn)
    return None if row is None else json_value(row[0])


def interrupt(tx: Transaction, no: int, turn: int) -> None:
    """Calls that were planned when their turn ended have failed."""
    tx.run("model_call_interrupt", no=no, turn=turn)


def save_partial(tx: Transaction, kit: Kit, no: int, number: int, text: str) -> None:
    """Keep what was streamed so far beside the planned call."""
    if len(text) > kit.limits.message:
        raise TooLarge("partial", len(text), kit.limits.message)
    tx.run("model_call_partial", no=no, number=number, partial=json_text(text))


def all_of(tx: Transaction, no: int, newest: int | None = None) -> tuple[ModelCall, ...]:
    """By number; with `newest` only the last so many."""
    if newest is None:
        return tuple(_call(row) for row in tx.rows("model_call_all", no=no))
    rows = tx.rows("model_call_newest", no=no, limit=newest)
    return tuple(_call(row) for row in reversed(list(rows)))


def _call(row: Row) -> ModelCall:
    return ModelCall(
        number=row[0], turn=row[1], purpose=row[2], model=row[3], state=row[4],
        generation=row[5], up_to_seq=row[6], usage=Usage(row[7], row[8], row[9], row[10]),
        cost=row[11], latency=row[12], started_at=row[13], partial=json_value(row[14]),
        error=row[15], api_group=row[16], expected=row[17], after_attempt=row[18],
        prefix_hash=row[19],
    )  # fmt: skip


def usage_of(tx: Transaction, no: int) -> tuple[ModelUsage, ...]:
    """Usage by model of one conversation, of calls that ended."""
    return _by_model(tx.rows("model_call_usage_here", no=no))


def usage(tx: Transaction, profile: str, since: int) -> tuple[ModelUsage, ...]:
    """Usage by model of a profile, of calls that ended, from `since` on."""
    return _by_model(tx.rows("model_call_usage", profile=profile, since=since))


def usage_by(
    tx: Transaction, profile: str, by: UsageBy, since: int, until: int | None
) -> tuple[UsageRow, ...]:
    """Usage of a profile by model, purpose, and one thing more."""
    rows = tx.rows(
        "model_call_usage_by", profile=profile, since=since, one=int(by == "conversation"),
        until=NEVER if until is None else until, slot=SLOT if by == "time" else NEVER,
    )  # fmt: skip
    return tuple(
        UsageRow(
            at=row[0] * SLOT if by == "time" else None,
            conversation=row[2] if by == "conversation" else None,
            title=row[3] if by == "conversation" else None, model=row[4], purpose=row[5],
            calls=row[6], failed=row[7], priced=row[8],
            usage=Usage(row[9], row[10], row[11], row[12]), cost=row[13],
        )
        for row in rows
    )  # fmt: skip


def _by_model(rows: Iterable[Row]) -> tuple[ModelUsage, ...]:
    return tuple(
        ModelUsage(row[0], row[1], Usage(row[2], row[3], row[4], row[5]), row[6]) for row in rows
    )


def erase(tx: Transaction, no: int) -> list[Row]:
    """What models had said, settings and faults of calls; gives them. Usage stays."""
    taken = tx.rows("model_call_texts", no=no)
    tx.run("model_call_erase", no=no)
    return taken


def unprompt(tx: Transaction, no: int) -> None:
    """Which prompts and tool sets the calls were made with."""
    tx.run("model_call_unprompt", no=no)
