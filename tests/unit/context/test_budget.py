"""Budgets: defaults that fit any window, and refusals that say how to mend."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import clew
from clew.context.budget import Budget, budget_for


@given(st.integers(1_000, 3_000_000))
def test_a_window_is_enough(window: int) -> None:
    budget = Budget(window=window)
    assert 0 < budget.low_tokens < budget.high_tokens <= budget.room < window
    assert budget.reply == min(16_000, window // 8)
    assert budget.low_tokens <= 0.75 * budget.high_tokens
    assert abs(budget.high_tokens / window - 0.78) < 0.001
    assert abs(budget.low_tokens / window - 0.38) < 0.002


def test_small_and_large() -> None:
    small, large = Budget(window=8_000), Budget(window=1_000_000)
    assert (small.reply, small.room) == (1_000, 7_000)
    assert (small.high_tokens, small.low_tokens) == (6_240, 3_040)
    assert (large.reply, large.room) == (16_000, 984_000)
    assert small.bytes == 16 * 1024 * 1024


@given(
    st.integers(1_000, 1_000_000), st.floats(0.01, 0.5), st.floats(0.05, 1), st.floats(0.01, 0.75)
)
def test_a_long_reply_leaves_the_order(window: int, reply: float, high: float, low: float) -> None:
    """The mark from which on a context is compacted never lies above what it may have."""
    budget = Budget(window=window, reply=max(1, int(window * reply)), high=high, low=high * low)
    assert budget.low_tokens <= budget.high_tokens <= budget.room


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"window": 999}, "at least 1,000"), ({"window": 0}, "at least 1,000"),
        ({"window": -5}, "at least 1,000"), ({"window": "8000"}, "whole number"),
        ({"window": 8000.0}, "whole number"), ({"window": True}, "whole number"),
        ({"window": 8000, "reply": 5000}, "at most half"), ({"window": 8000, "reply": -1}, "or 0"),
        ({"window": 8000, "reply": None}, "whole number"),
        ({"window": 8000, "bytes": 10}, "at least 65,536"),
        ({"window": 8000, "high": 1.2}, "between 0 and 1"),
        ({"window": 8000, "high": float("nan")}, "between 0 and 1"),
        ({"window": 8000, "low": 0}, "between 0 and 1"), ({"window": 8000, "low": "x"}, "between"),
        ({"window": 8000, "low": 0.7}, "at most 0.58"), ({"window": 8000, "high": 0.3}, "quarter"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(clew.InputError, match=told):
        Budget(**fields)


def test_by_model_or_by_a_window_of_ones_own() -> None:
    assert budget_for("claude-sonnet-4-5").window == 200_000
    assert budget_for("gpt-4").window == 8_000
    assert budget_for(None).window == 128_000
    assert budget_for("gpt-4", 32_000) == Budget(window=32_000)
    with pytest.raises(clew.InputError, match="window is 0"):
        budget_for("gpt-4", 0)
