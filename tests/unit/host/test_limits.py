"""Where a turn is stopped."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.config.values import LimitsConfig
from clew.host.limits import Spending, check, midnight, nearly

SECOND = 1_000_000


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp()) * SECOND


@pytest.mark.parametrize(
    ("limits", "spending", "what"),
    [
        (LimitsConfig(steps=3), Spending(steps=3), "steps"),
        (LimitsConfig(turn_tokens=100), Spending(tokens=120), "turn_tokens"),
        (LimitsConfig(turn_cost=0.5), Spending(cost=0.5), "turn_cost"),
        (LimitsConfig(day_tokens=100), Spending(day_tokens=100), "day_tokens"),
        (LimitsConfig(day_cost=2.0), Spending(day_cost=2.25), "day_cost"),
    ],
)
def test_a_limit_that_is_reached_says_what_and_how_to_raise_it(
    limits: LimitsConfig, spending: Spending, what: str
) -> None:
    reached = check(limits, spending)
    assert reached is not None
    assert reached.what == what
    assert reached.limit == getattr(limits, what)
    assert f"limits.{what}" in reached.text


def test_a_text_has_its_amounts() -> None:
    reached = check(LimitsConfig(day_cost=2.0), Spending(day_cost=2.25))
    assert reached is not None
    assert "$2.25 of $2.00" in reached.text
    reached = check(LimitsConfig(turn_tokens=100_000), Spending(tokens=123_456))
    assert reached is not None
    assert "123,456 tokens of 100,000 tokens" in reached.text
    reached = check(LimitsConfig(turn_cost=0.001), Spending(cost=0.0015))
    assert reached is not None
    assert "$0.0015 of $0.0010" in reached.text


@given(
    st.builds(
        Spending, steps=st.integers(0, 99), tokens=st.integers(0), cost=st.floats(0, 1e6),
        day_tokens=st.integers(0), day_cost=st.floats(0, 1e6),
    )
)  # fmt: skip
def test_zero_is_no_limit(spending: Spending) -> None:
    """Only steps have one by default."""
    assert check(LimitsConfig(), spending) is None
    assert check(LimitsConfig(steps=0), spending) is None
    assert nearly(LimitsConfig(steps=0), spending) is None


def test_the_model_is_told_when_steps_run_out() -> None:
    limits = LimitsConfig(steps=10)
    assert nearly(limits, Spending(steps=7)) is None
    assert (nearly(limits, Spending(steps=8)) or "").startswith("2 of 10 steps")
    assert "last step" in (nearly(limits, Spending(steps=9)) or "")
    assert nearly(LimitsConfig(steps=4), Spending(steps=4)) is None


BERLIN, HAVANA = ZoneInfo("Europe/Berlin"), ZoneInfo("America/Havana")


@pytest.mark.parametrize(
    ("zone", "now", "start"),
    [
        (UTC, "2026-11-30T01:44:17+00:00", "2026-11-30T00:00:00+00:00"),
        (BERLIN, "2026-11-29T23:30:00+00:00", "2026-11-29T23:00:00+00:00"),
        (BERLIN, "2026-03-29T22:30:00+02:00", "2026-03-29T00:00:00+01:00"),  # 23 hours
        (BERLIN, "2026-10-25T23:30:00+01:00", "2026-10-25T00:00:00+02:00"),  # 25 hours
        (HAVANA, "2026-03-08T12:00:00-04:00", "2026-03-08T01:00:00-04:00"),  # begins at one
        (HAVANA, "2026-11-01T00:30:00-05:00", "2026-11-01T00:00:00-04:00"),  # midnight twice
    ],
)
def test_a_day_begins_at_midnight_whatever_the_clocks_do(
    zone: ZoneInfo, now: str, start: str
) -> None:
    assert midnight(at(now), zone) == at(start)


@given(
    st.integers(0, 4_000_000_000_000_000),
    st.sampled_from(["UTC", "Europe/Berlin", "America/Havana", "Asia/Kathmandu", "Pacific/Apia"]),
)
def test_the_day_is_the_one_of_now(now: int, zone: str) -> None:
    tz = ZoneInfo(zone)
    start = midnight(now, tz)
    assert 0 <= now - start < 26 * 3600 * SECOND
    today = datetime.fromtimestamp(now // SECOND, tz).date()
    assert datetime.fromtimestamp(start // SECOND, tz).date() == today
    before = datetime.fromtimestamp(start // SECOND - 1, tz).date()
    assert before < today


def test_without_a_zone_it_is_the_machine_s() -> None:
    now = at("2026-11-30T12:00:00+00:00")
    assert 0 <= now - midnight(now) < 26 * 3600 * SECOND
