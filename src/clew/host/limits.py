"""Where a turn is stopped: steps, tokens and money, of the turn and of the day. Pure.

Asked before each model call, of what was spent until then: a call that has begun is paid for, so it
is let run to its end, and a limit may be passed by one call.
"""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import Literal

from msgspec import Struct

from clew.clock import SECOND, Micros
from clew.config.values import LimitsConfig

NEAR = 0.8
"""Of the steps of a turn, from where on the model is told how many are left."""
FEW = 5
"""A limit of fewer steps is too short for a warning."""

What = Literal["steps", "turn_tokens", "turn_cost", "day_tokens", "day_cost"]
"""The keys of `[limits]`."""


class Spending(Struct, frozen=True, kw_only=True):
    """What was spent. Tokens are input and output together, cached ones too; cost in US dollars."""

    steps: int = 0
    """Model calls of the turn that were made."""
    tokens: int = 0
    """Of the turn."""
    cost: float = 0.0
    """Of the turn."""
    day_tokens: int = 0
    """Of all conversations of the profile since midnight, this turn included."""
    day_cost: float = 0.0


class Reached(Struct, frozen=True):
    """A limit that was reached. `what`: its key in `[limits]`."""

    what: What
    used: float
    limit: float

    @property
    def text(self) -> str:
        """For the person: what, how much, and what to do."""
        used, limit = (_amount(self.what, value) for value in (self.used, self.limit))
        remedy = f"Raise limits.{self.what} in the configuration (0: no limit)"
        if self.what.startswith("day_"):
            return f"Today {used} of {limit} were used. {remedy}, or wait until midnight."
        then = "write on, which begins another turn"
        return f"The turn was stopped: {used} of {limit} were used. {remedy}, or {then}."


def check(limits: LimitsConfig, spending: Spending) -> Reached | None:
    """The first limit that the next model call would be beyond."""
    pairs: tuple[tuple[What, float, float], ...] = (
        ("day_cost", spending.day_cost, limits.day_cost),
        ("day_tokens", spending.day_tokens, limits.day_tokens),
        ("turn_cost", spending.cost, limits.turn_cost),
        ("turn_tokens", spending.tokens, limits.turn_tokens),
        ("steps", spending.steps, limits.steps),
    )
    for what, used, limit in pairs:
        if 0 < limit <= used:
            return Reached(what, used, limit)
    return None


def nearly(limits: LimitsConfig, spending: Spending) -> str | None:
    """What the model is told when the steps of the turn run out."""
    if limits.steps < FEW or spending.steps < limits.steps * NEAR:
        return None
    left = limits.steps - spending.steps
    if left <= 1:
        return "This is the last step of the turn: answer now, without calling tools."
    return (
        f"{left} of {limits.steps} steps of this turn are left. Finish what matters most, or say "
        "what is done and what is not."
    )


def midnight(now: Micros, tz: tzinfo | None = None) -> Micros:
    """When the day of `now` began, by the clocks of `tz` (None: of this machine). Where clocks are
    changed at midnight it is the day's first moment."""
    day = datetime.fromtimestamp(now // SECOND, tz)
    return round(datetime(day.year, day.month, day.day, tzinfo=tz).timestamp()) * SECOND


def day_of(now: Micros, tz: tzinfo | None = None) -> tuple[Micros, Micros]:
    """When the day of `now` begins and ends. What a clock that was ahead has written on later days
    is none of it: else that would use up each day until then."""
    start = midnight(now, tz)
    return start, midnight(start + 36 * 3600 * SECOND, tz)


def _amount(what: What, value: float) -> str:
    if what.endswith("cost"):
        return f"${value:,.2f}" if value >= 0.01 else f"${value:.4f}"
    one = "step" if what == "steps" else "token"
    return f"{value:,.0f} {one}{'' if value == 1 else 's'}"
