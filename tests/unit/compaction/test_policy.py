"""When an attempt may begin: each rule by itself, then what holds whatever was before."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from clew.clock import SECOND
from clew.compaction.policy import (
    COOLDOWNS,
    WINDOW,
    Guard,
    Undone,
    due,
    effective,
    freed_enough,
    guard,
)
from clew.context.budget import Budget
from clew.context.measure import Reading
from clew.domain.compactions import Attempt

MODEL, OTHER = "gpt-5", "glm-5"
HIGH = 1000
"""The threshold of all these tests, in tokens."""
START = 1_750_000_000 * SECOND
MINUTE = 60 * SECOND
TRIGGERS = ("soft", "hard", "user")


def attempt(number: int, at: int = START, **fields: Any) -> Attempt:
    """A committed attempt that freed half; `at` is when it ended."""
    usual: dict[str, Any] = {
        "view": 0, "base_generation": 0, "state": "committed", "trigger": "soft", "model": MODEL,
        "verdict": "ledger", "started_at": at - SECOND, "ended_at": at, "tokens_before": 1000,
        "tokens_after": 500,
    }  # fmt: skip
    return Attempt(number=number, **(usual | fields))


def strike(number: int, at: int = START, **fields: Any) -> Attempt:
    return attempt(number, at, **({"state": "failed", "verdict": "no-op"} | fields))


def unsummed(number: int, at: int = START, **fields: Any) -> Attempt:
    """The ledger was committed since the summariser had failed."""
    return attempt(number, at, **({"summary_error": "HTTP 500"} | fields))


def opened(number: int, at: int = START, **fields: Any) -> Attempt:
    usual = {"state": "open", "verdict": None, "started_at": at, "ended_at": None}
    return attempt(number, at, **(usual | {"tokens_after": None} | fields))


def asked(
    *attempts: Attempt, now: int = START + SECOND, trigger: Any = "soft", model: str | None = MODEL,
    readings: Sequence[Reading] = (), undone: Undone | None = None,
) -> Guard:  # fmt: skip
    return guard(
        trigger, attempts=attempts, readings=readings, model=model, now=now, threshold=HIGH,
        undone=undone,
    )  # fmt: skip


# ---------------------------------------------------------------------- when one is due


def test_it_is_due_from_the_high_water_mark_on_and_hard_when_the_next_request_would_not_fit() -> (
    None
):
    budget = Budget(window=100_000)
    assert due(budget.high_tokens - 1, budget) is None
    assert due(budget.high_tokens, budget) == "soft"
    assert due(budget.room, budget) == "soft"
    assert due(budget.room + 1, budget) == "hard"


def test_the_bytes_of_a_request_make_it_due_like_its_tokens() -> None:
    budget = Budget(window=100_000, bytes=1_000_000)
    assert due(10, budget, 779_999) is None
    assert due(10, budget, 780_000) == "soft"
    assert due(10, budget, 1_000_001) == "hard"
    assert due(budget.room + 1, budget, 780_000) == "hard"


def test_a_quarter_is_enough() -> None:
    assert freed_enough(1000, 750)
    assert not freed_enough(1000, 751)
    assert not freed_enough(0, 0)
    assert effective(attempt(1, tokens_after=750))
    assert not effective(attempt(1, tokens_after=751))
    assert not effective(strike(1))


# ---------------------------------------------------------------------- strikes


@pytest.mark.parametrize("verdict", ["no-op", "check", "ineffective"])
def test_two_ineffective_attempts_close_it_for_a_window(verdict: str) -> None:
    """S19.1, S19.5, S20.1, S20.4."""
    one, two = strike(1, START - 60 * MINUTE, verdict=verdict), strike(2, START, verdict=verdict)
    assert asked(one).go
    closed = asked(one, two)
    assert (closed.go, closed.paid, closed.until) == (False, False, START + WINDOW)
    assert "2 attempts" in closed.reason
    assert not asked(one, two, now=START + WINDOW - 1).go
    assert asked(one, two, now=START + WINDOW).go


def test_a_commit_that_freed_little_is_a_strike() -> None:
    little = {"tokens_after": 800}
    assert not asked(attempt(1, **little), attempt(2, **little)).go


def test_one_probe_may_try_and_a_useless_one_closes_it_again() -> None:
    """S20.1, S20.6."""
    two = [strike(1), strike(2, START)]
    probe = START + WINDOW
    assert asked(*two, now=probe).go
    assert not asked(*two, opened(3, probe), now=probe + SECOND).go
    again = asked(*two, strike(3, probe + MINUTE), now=probe + 2 * MINUTE)
    assert (again.go, again.until) == (False, probe + MINUTE + WINDOW)
    assert asked(*two, strike(3, probe + MINUTE), now=probe + MINUTE + WINDOW).go


def test_asking_again_does_not_postpone_the_probe() -> None:
    """S20.2, S20.3: nothing is armed, so a new agent each turn changes nothing."""
    answers = {asked(strike(1), strike(2), now=START + n * SECOND).until for n in range(299)}
    assert answers == {START + WINDOW}


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_an_effective_attempt_of_any_trigger_clears_strikes(trigger: Any) -> None:
    """S20.7."""
    assert asked(strike(1), attempt(2, trigger=trigger), strike(3)).go


def test_attempts_that_must_succeed_are_no_strikes() -> None:
    """Hard and forced ones are made where little can be freed."""
    for trigger in ("hard", "user"):
        assert asked(*(strike(n, trigger=trigger) for n in (1, 2, 3))).go


def test_an_attempt_of_unknown_size_neither_strikes_nor_clears() -> None:
    unknown = attempt(2, tokens_before=None)
    assert asked(unknown, replace(unknown, number=3), replace(unknown, number=4)).go
    assert not asked(strike(1), unknown, strike(3)).go


def test_another_model_begins_without_strikes() -> None:
    """S19.3."""
    two = [strike(1), strike(2)]
    assert asked(*two, model=OTHER).go
    assert asked(*two, attempt(3, model=OTHER, tokens_after=900)).go
    assert not asked(*two, attempt(3, model=None, state="failed", verdict="error")).go


def test_attempts_are_in_the_order_of_their_numbers_whatever_the_clock_said() -> None:
    two = [strike(1), strike(2)]
    assert asked(*two, attempt(3, START - 60 * MINUTE)).go
    assert not asked(attempt(1, START + 60 * MINUTE), strike(2), strike(3)).go


@pytest.mark.parametrize("state", ["cancelled", "overtaken"])
def test_what_was_cancelled_or_overtaken_neither_clears_nor_strikes_nor_fails(state: str) -> None:
    """S17.3."""
    gone = attempt(3, state=state, model=OTHER, summary_error="timeout")
    assert not asked(strike(1), strike(2), gone).go
    assert asked(strike(1), strike(2, state=state)).go
    assert asked(gone).paid


def test_a_real_reading_below_the_threshold_clears_strikes() -> None:
    """S19.4: what a provider reported, after the attempt; an estimate does not exist here."""
    two = [strike(1), strike(2)]
    assert not asked(*two, readings=[Reading(MODEL, 900, HIGH, 2)]).go
    assert not asked(*two, readings=[Reading(MODEL, 900, HIGH - 1, 0)]).go
    assert asked(*two, readings=[Reading(MODEL, 2000, HIGH - 1, 2)]).go
    assert asked(*two, readings=[Reading(MODEL, 2000, HIGH - 1, 1)]).go


def test_a_call_without_usage_and_one_of_another_model_are_no_readings() -> None:
    """S19.4."""
    two = [strike(1), strike(2)]
    assert not asked(*two, readings=[Reading(MODEL, 900, 0, 2)]).go
    assert not asked(*two, readings=[Reading(OTHER, 900, 500, 2)]).go


def test_s19_9_a_restart_does_not_buy_another_attempt() -> None:
    """A context that stays near the threshold, and a new process each minute, for a day."""
    made: list[Attempt] = []
    for minute in range(24 * 60):
        now = START + minute * MINUTE
        if asked(*made, now=now).go:
            made.append(strike(len(made) + 1, now))
    assert len(made) <= 2 + 24 * 60 // 5


# ---------------------------------------------------------------------- the summariser


def test_a_summariser_that_failed_rests_longer_each_time_and_the_ledger_goes_on() -> None:
    """S18.1, S18.13, S19.8."""
    made: list[Attempt] = []
    for length in (*COOLDOWNS, COOLDOWNS[-1]):
        made.append(unsummed(len(made) + 1))
        resting = asked(*made, now=START + length - 1)
        assert (resting.go, resting.paid, resting.until) == (True, False, START + length)
        assert "HTTP 500" in resting.reason
        assert asked(*made, now=START + length).paid
    assert COOLDOWNS == (MINUTE, 5 * MINUTE, 15 * MINUTE)


def test_a_summary_that_was_used_ends_the_run_and_a_ledger_does_not() -> None:
    used = attempt(3, verdict="summary")
    assert asked(unsummed(1), unsummed(2), used).paid
    after = asked(unsummed(1), unsummed(2), used, unsummed(4))
    assert after.until == START + COOLDOWNS[0]
    by_ledger = asked(unsummed(1), unsummed(2), attempt(3), now=START + 2 * MINUTE)
    assert (by_ledger.paid, by_ledger.until) == (False, START + COOLDOWNS[1])


def test_a_stalled_summariser_is_a_failure_of_it_and_no_strike() -> None:
    left = attempt(1, state="failed", verdict="abandoned", deadline=START, ended_at=START + MINUTE)
    asked_now = asked(left)
    assert (asked_now.go, asked_now.paid, asked_now.until) == (True, False, START + MINUTE)
    many = [replace(left, number=n) for n in range(1, 9)]
    assert asked(*many).go


def test_an_attempt_past_its_deadline_is_abandoned_before_somebody_writes_so() -> None:
    """The answer does not depend on who looks first."""
    hanging = opened(1, START - MINUTE, deadline=START)
    for late in range(0, 600, 30):
        now = START + late * SECOND
        written = replace(hanging, state="failed", verdict="abandoned", ended_at=now)
        assert asked(hanging, now=now) == asked(written, now=now)


def test_hard_obeys_the_rest_and_user_does_not() -> None:
    """S18.6."""
    failed = unsummed(1)
    assert asked(failed, trigger="hard") == asked(failed)
    assert asked(failed, trigger="user").paid


def test_a_forced_attempt_that_was_cancelled_leaves_the_rest_as_it_was() -> None:
    """S18.7, S18.8, S18.12: there is no row to restore."""
    rows = [unsummed(1), unsummed(2)]
    forced = attempt(3, state="cancelled", trigger="user", verdict=None)
    for late in (-10, 0, 59, 299, 300, 301):
        now = START + late * SECOND
        assert asked(*rows, now=now) == asked(*rows, forced, now=now)


# ---------------------------------------------------------------------- attempts at work


def test_beside_an_attempt_at_work_soft_waits_and_hard_does_not_pay() -> None:
    at_work = opened(1, deadline=START + 2 * MINUTE)
    soft, hard, user = (asked(at_work, trigger=trigger) for trigger in TRIGGERS)
    assert (soft.go, soft.paid, soft.until) == (False, False, START + 2 * MINUTE)
    assert (hard.go, hard.paid) == (True, False)
    assert (user.go, user.paid) == (True, True)


def test_several_at_once_cost_one_extra_summary_at_most() -> None:
    """Whatever they are: who opens its attempt, then asks with those numbered below its own."""
    for triggers in (["user"] * 5, ["hard", "user", "soft", "user", "hard"], ["soft"] * 4):
        rows: list[Attempt] = []
        paid = 0
        for number, trigger in enumerate(triggers, start=1):
            answer = asked(*rows, trigger=trigger)
            paid += answer.paid
            if answer.go:
                rows.append(opened(number, trigger=trigger))
        assert paid <= 2


def test_an_attempt_without_a_deadline_is_waited_for_no_longer_than_a_window() -> None:
    assert asked(opened(1), now=START + WINDOW - 1).until == START + WINDOW
    assert asked(opened(1), now=START + WINDOW).go
    assert asked(opened(1), now=START + WINDOW).paid


def test_an_attempt_of_a_clock_that_ran_ahead_is_not_waited_for() -> None:
    assert asked(opened(1, START + 60 * MINUTE, deadline=START + 62 * MINUTE)).go


# ---------------------------------------------------------------------- after an undo


def test_an_undone_compaction_is_not_made_again_before_the_context_has_grown() -> None:
    assert not asked(undone=Undone(1000, 1000)).go
    held = asked(undone=Undone(1000, 1099))
    assert (held.go, held.until) == (False, None)
    assert asked(undone=Undone(1000, 1100)).go
    assert asked(undone=Undone(1000, 1000), trigger="hard").go
    assert asked(undone=Undone(1000, 1000), trigger="user").go


# ---------------------------------------------------------------------- whatever was before

times = st.integers(min_value=-40, max_value=40).map(lambda n: START + n * MINUTE)
"""Not in the order of the numbers: clocks jump."""


@st.composite
def histories(draw: st.DrawFn) -> list[Attempt]:
    found: list[Attempt] = []
    for number in range(1, draw(st.integers(0, 8)) + 1):
        at = draw(times)
        state = draw(st.sampled_from(["committed", "failed", "open", "cancelled", "overtaken"]))
        verdicts = ["no-op", "check", "ineffective", "abandoned", "summary", "ledger", None]
        deadline = draw(st.none() | st.just(at + draw(st.integers(1, 5)) * MINUTE))
        found.append(
            attempt(
                number, at, state=state, trigger=draw(st.sampled_from(TRIGGERS)),
                model=draw(st.sampled_from([MODEL, OTHER, None])),
                verdict=draw(st.sampled_from(verdicts)), deadline=deadline, started_at=at,
                ended_at=None if state == "open" else at + draw(st.integers(0, 2)) * MINUTE,
                summary_error=draw(st.sampled_from([None, None, "timeout"])),
                tokens_after=draw(st.sampled_from([None, 500, 750, 751, 999])),
            )
        )  # fmt: skip
    return found


readings_of = st.lists(
    st.builds(
        Reading, st.sampled_from([MODEL, OTHER]), st.just(900),
        st.sampled_from([0, HIGH - 1, HIGH]), st.integers(0, 8),
    ),
    max_size=3,
)  # fmt: skip
any_trigger = st.sampled_from(TRIGGERS)


@given(histories(), readings_of, any_trigger, times, st.randoms(use_true_random=False))
def test_the_answer_is_a_function_of_the_rows(
    rows: list[Attempt], readings: list[Reading], trigger: Any, now: int, chance: random.Random
) -> None:
    """S18.3, S18.4, S19.1, S19.2, S19.6, S19.7: any process, in any order of reading, after any
    restart; there is nothing in memory that could differ."""
    first = asked(*rows, readings=readings, trigger=trigger, now=now)
    shuffled, others = list(rows), list(readings)
    chance.shuffle(shuffled)
    chance.shuffle(others)
    assert asked(*shuffled, readings=others, trigger=trigger, now=now) == first


@given(histories(), readings_of, any_trigger, times, st.data())
def test_what_was_cancelled_or_overtaken_never_was(
    rows: list[Attempt], readings: list[Reading], trigger: Any, now: int, data: st.DataObject
) -> None:
    """S17.3, S18.7: at any place, with any fields."""
    more: list[Attempt] = []
    for row in rows:
        ghost = data.draw(st.none() | st.sampled_from(["cancelled", "overtaken"]))
        if ghost is not None:
            more.append(
                replace(
                    row, number=2 * row.number + 1, state=ghost, model=OTHER, trigger="soft",
                    verdict="no-op", summary_error="timeout",
                )
            )  # fmt: skip
    doubled = [replace(row, number=2 * row.number) for row in rows]
    wanted = [reading._replace(after_attempt=2 * reading.after_attempt) for reading in readings]
    without = asked(*doubled, readings=wanted, trigger=trigger, now=now)
    assert asked(*doubled, *more, readings=wanted, trigger=trigger, now=now) == without


@given(histories(), readings_of, times)
def test_a_person_always_goes_and_what_must_fit_always_goes(
    rows: list[Attempt], readings: list[Reading], now: int
) -> None:
    undone = Undone(1000, 1000)
    for trigger in ("user", "hard"):
        assert asked(*rows, readings=readings, trigger=trigger, now=now, undone=undone).go
    working = [row for row in rows if row.state == "open"]
    paid = asked(*rows, readings=readings, trigger="user", now=now).paid
    assert paid or len(working) > 1


@given(histories(), readings_of, st.sampled_from(["soft", "hard"]), times)
def test_nobody_waits_for_longer_than_one_window_whatever_the_clock_did(
    rows: list[Attempt], readings: list[Reading], trigger: Any, now: int
) -> None:
    """S20.5."""
    answer = asked(*rows, readings=readings, trigger=trigger, now=now)
    if answer.until is None:
        assert answer.go
        assert answer.paid
        return
    assert now < answer.until <= now + COOLDOWNS[-1]
    if not answer.go:
        assert answer.until <= now + WINDOW  # deadlines here are five minutes at most
    later = now
    for _ in range(2 * len(rows) + 1):
        answer = asked(*rows, readings=readings, trigger=trigger, now=later)
        if answer.until is None:
            break
        later = answer.until
    assert answer.go
    assert answer.paid


@given(histories(), times)
def test_a_reading_below_the_threshold_opens_what_strikes_have_closed(
    rows: list[Attempt], now: int
) -> None:
    """S19.4."""
    settled = [row for row in rows if row.state != "open"]
    cleared = [Reading(MODEL, 900, HIGH - 1, 8)]
    assert asked(*settled, readings=cleared, now=now).go


@settings(max_examples=5)
@given(st.integers(0, 10_000))
def test_a_year_of_useless_attempts_costs_one_for_each_window(seed: int) -> None:
    """S19.9, S20.1: many processes ask at their own times, the clock of each is a little off, and
    nothing they try ever helps."""
    chance = random.Random(seed)
    rows: list[Attempt] = []
    now, ended = START, 0
    while now < START + 365 * 24 * 60 * MINUTE:
        now += int(chance.expovariate(1 / (24 * 60 * MINUTE)))
        for _ in range(chance.randint(1, 6)):
            now += chance.randint(0, 90) * SECOND
            if not asked(*rows, now=now).go:
                continue
            if len(rows) >= 2:
                assert now - ended >= WINDOW
            ended = now + chance.randint(0, 90) * SECOND
            rows.append(strike(len(rows) + 1, ended, started_at=now))
            now = ended
    assert len(rows) > 100
