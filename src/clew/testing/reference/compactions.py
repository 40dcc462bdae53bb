"""Compactions and attempts: records beside the log."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from clew.domain.compactions import (
    Attempt,
    AttemptState,
    BodyItem,
    Compaction,
    Proposal,
    Ref,
    Stub,
    Trigger,
    in_effect,
)
from clew.domain.cuts import Cut, hidden, in_force_at
from clew.domain.parts import answered_ids, call_ids, unasked_ids
from clew.errors import Cancelled, InputError, InvalidCompaction, NotFound
from clew.testing.reference.log import visible
from clew.testing.reference.state import State, World
from clew.testing.reference.values import label, plain_json


def effective(
    state: State, cuts: Sequence[Cut], last: int, without: int | None = None
) -> Compaction | None:
    """The compaction that stands for the beginning of the log."""
    known = (c for c in state.compactions if c.covers_to <= last and c.generation != without)
    return in_effect(list(known), cuts)


def check_counts(proposal: Proposal) -> None:
    """Both are counts of tokens."""
    check_tokens(proposal.tokens_before, proposal.tokens_after)


def check_tokens(*counts: int) -> None:
    """All are counts of tokens."""
    if not all(0 <= count <= 1 << 53 for count in counts):
        raise InvalidCompaction(f"{counts} are no counts of tokens")


def check(state: State, proposal: Proposal) -> None:
    """What a compaction may cover."""
    to = proposal.covers_to
    if not 0 < to <= state.head:
        raise InvalidCompaction(f"covers_to {to} is not within 1..{state.head}")
    if state.open_turn is not None and to >= state.open_turn.first_seq:
        raise InvalidCompaction("it reaches into the open turn")
    _check_body(state, proposal.body, to)
    above, below = visible(state, to + 1), visible(state, 1, to)
    made = {call for message in below for call in call_ids(message.parts)}
    if made & unasked_ids(message.parts for message in above):
        raise InvalidCompaction("it splits a call from its result")
    answered: set[str] = set()
    for message in reversed(below):
        if not answered_ids(message.parts):
            if set(call_ids(message.parts)) - answered:
                raise InvalidCompaction("it covers a call that wants its result")
            return
        answered.update(answered_ids(message.parts))


def _check_body(state: State, body: Sequence[BodyItem], to: int) -> None:
    """A body names covered messages, each once, in the order of the log."""
    named: list[int] = []
    for item in body:
        if isinstance(item, Ref):
            if not 0 < item.first <= item.last <= to:
                raise InvalidCompaction(f"{item} is not covered")
            named += range(item.first, item.last + 1)
        elif isinstance(item, Stub):
            if not 0 < item.seq <= to or hidden(state.cuts, item.seq):
                raise InvalidCompaction(f"{item} names no visible covered message")
            named.append(item.seq)
    if named != sorted(set(named)):
        raise InvalidCompaction("it names a message twice, or not in the order of the log")


def compact(
    world: World, state: State, attempt: int | None, proposal: Proposal, now: int
) -> Compaction:
    """Add the record; nothing else changes."""
    record = Compaction(
        generation=len(state.compactions) + 1, attempt=attempt, covers_to=proposal.covers_to,
        body=tuple(proposal.body), cuts=in_force_at(state.cuts, proposal.covers_to),
        kind="foreign" if attempt is None else "ours", tokens_before=proposal.tokens_before,
        tokens_after=proposal.tokens_after, created_at=now,
        receipt=plain_json(world.limits, "receipt", proposal.receipt),
    )  # fmt: skip
    state.compactions.append(record)
    state.view += 1
    return record


def attempt_of(state: State, number: int) -> Attempt:
    """The attempt of a number."""
    if not 0 < number <= len(state.attempts):
        raise NotFound("attempt", str(number))
    return state.attempts[number - 1]


def open_attempt(
    world: World, state: State, trigger: Trigger, model: str | None, deadline: int | None,
    tokens_before: int | None,
) -> Attempt:  # fmt: skip
    """A new one, which knows the others that are open; those past their deadline are not."""
    if trigger not in ("soft", "hard", "user"):
        raise InputError(f"trigger is {trigger!r}; give one of soft, hard, user")
    now = world.clock.now()
    for other in state.attempts:
        if other.state == "open" and other.deadline is not None and other.deadline <= now:
            end_attempt(state, other.number, "failed", now, "abandoned")
    attempt = Attempt(
        number=len(state.attempts) + 1, view=state.view, base_generation=len(state.compactions),
        state="open", trigger=trigger, started_at=now, deadline=deadline,
        model=label(world.limits, "model", model), tokens_before=tokens_before,
    )  # fmt: skip
    rivals = tuple(other.number for other in state.attempts if other.state == "open")
    state.attempts.append(attempt)
    return replace(attempt, rivals=rivals)


def end_attempt(
    state: State, number: int, how: AttemptState, now: int, verdict: str | None = None,
    summary_error: str | None = None, tokens_after: int | None = None,
) -> Attempt:  # fmt: skip
    """Leave the state open; whoever comes second is refused."""
    attempt = attempt_of(state, number)
    if attempt.state != "open":
        raise Cancelled(number, attempt.state)
    attempt = replace(
        attempt, state=how, ended_at=now, verdict=verdict, summary_error=summary_error,
        tokens_after=tokens_after,
    )  # fmt: skip
    state.attempts[number - 1] = attempt
    return attempt
