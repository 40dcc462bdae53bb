"""What to do about a model call that failed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.host.retry import (
    FIRST,
    LONGEST,
    PATIENCE,
    SPREAD,
    Again,
    Compact,
    Fallback,
    GiveUp,
    Step,
    next_step,
    wait,
)
from clew.providers import errors
from clew.providers.errors import ProviderError, RateLimited

WAITING = (errors.RateLimited, errors.ServerFailed, errors.TimedOut, errors.Unreachable)
OTHERS = (
    errors.BadKey, errors.OutOfCredit, errors.NoModel, errors.BadRequest, errors.NotConfigured,
)  # fmt: skip
jitters = st.floats(0, 1)


def of(kind: type[ProviderError], after: float | None = None) -> ProviderError:
    return kind("it failed", provider="p", retry_after=after)


def step(
    error: ProviderError, *, tried: int = 1, more: bool = True, compacted: bool = False
) -> Step:
    return next_step(error, tried=tried, tries=3, jitter=0.5, more=more, compacted=compacted)


@pytest.mark.parametrize("kind", WAITING)
def test_the_same_model_is_tried_again_until_its_tries_are_used_up(
    kind: type[ProviderError],
) -> None:
    assert step(of(kind), tried=1) == Again(0.5)
    assert step(of(kind), tried=2) == Again(1.0)
    assert step(of(kind), tried=3) == Fallback()
    assert step(of(kind), tried=3, more=False) == GiveUp()


@pytest.mark.parametrize("kind", OTHERS)
def test_what_waiting_does_not_help_goes_to_the_next_model(kind: type[ProviderError]) -> None:
    assert wait(of(kind, 1.0), 1, 0.5) is None
    assert step(of(kind)) == Fallback()
    assert step(of(kind), more=False) == GiveUp()


def test_an_overflow_is_compacted_once() -> None:
    assert step(of(errors.Overflow)) == Compact()
    assert step(of(errors.Overflow), tried=3, more=False) == Compact()
    assert step(of(errors.Overflow), compacted=True) == Fallback()
    assert step(of(errors.Overflow), compacted=True, more=False) == GiveUp()


@given(after=st.floats(0, PATIENCE), jitter=jitters)
def test_a_server_that_says_how_long_is_believed(after: float, jitter: float) -> None:
    seconds = wait(of(RateLimited, after), 1, jitter)
    assert seconds is not None
    assert after <= seconds <= after * (1 + SPREAD)


def test_a_server_that_wants_too_much_is_left_at_once() -> None:
    assert wait(of(RateLimited, PATIENCE + 1), 1, 0.0) is None
    assert step(of(RateLimited, 3600.0)) == Fallback()
    assert step(of(RateLimited, 3600.0), more=False) == GiveUp()


@given(tried=st.integers(1, 10_000), jitter=jitters)
def test_pauses_grow_to_a_bound_with_full_jitter(tried: int, jitter: float) -> None:
    most = wait(of(RateLimited), tried, 1.0, tries=0)
    seconds = wait(of(RateLimited), tried, jitter, tries=0)
    assert most is not None
    assert seconds is not None
    assert most == min(LONGEST, FIRST * 2 ** min(tried - 1, 30))
    assert seconds == pytest.approx(jitter * most)


def test_a_header_of_nonsense_counts_as_none() -> None:
    assert wait(of(RateLimited, -5.0), 1, 1.0) == FIRST
