"""How much of a model's window and of a request's size a context may take."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import force_setattr

from clew.context.families import family_of
from clew.errors import InputError

SMALLEST_WINDOW = 1_000
MOST_REPLY = 16_000
SMALLEST_BYTES = 64 * 1024
FREED = 0.25
"""What a rewrite must free at least, of what was there."""


class Budget(Struct, frozen=True, kw_only=True):
    """What a context must stay within.

    `window`: tokens that the model takes, its reply included; `reply`: those of them kept free for
    it (0: an eighth of the window, at most 16,000); `bytes`: of a request. At `high` of the window
    a context is compacted, down to `low` of it.
    """

    window: int
    reply: int = 0
    bytes: int = 16 * 1024 * 1024
    high: float = 0.78
    low: float = 0.38

    def __post_init__(self) -> None:
        for name in ("window", "reply", "bytes"):
            _check_whole(name, getattr(self, name))
        if self.window < SMALLEST_WINDOW:
            raise InputError(
                f"window is {self.window:,} tokens; give at least {SMALLEST_WINDOW:,}: a "
                "smaller one has no room for rules, a summary and the request"
            )
        if not self.reply:
            force_setattr(self, "reply", min(MOST_REPLY, self.window // 8))
        if not 0 < self.reply <= self.window // 2:
            raise InputError(
                f"reply is {self.reply:,} of a window of {self.window:,} tokens; give at most half "
                "of it, or 0 for an eighth"
            )
        if self.bytes < SMALLEST_BYTES:
            raise InputError(
                f"bytes is {self.bytes:,}; give at least {SMALLEST_BYTES:,}, the body of a "
                "request that the provider takes"
            )
        _check_shares(self.high, self.low)

    @property
    def room(self) -> int:
        """Tokens that a context may have."""
        return self.window - self.reply

    @property
    def high_tokens(self) -> int:
        """From here on a context is compacted."""
        return min(int(self.window * self.high), self.room)

    @property
    def low_tokens(self) -> int:
        """What a compaction aims at."""
        return round(self.high_tokens * self.low / self.high)


def budget_for(model: str | None, window: int | None = None) -> Budget:
    """The budget of a model by its name; with a window of one's own, if given."""
    return Budget(window=family_of(model).window if window is None else window)


def _check_whole(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"{name} is {value!r}; give a whole number")


def _check_shares(high: float, low: float) -> None:
    for name, value in (("high", high), ("low", low)):
        if not isinstance(value, int | float) or not 0 < value <= 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"{name} is {value!r}; give a share of the window between 0 and 1")
    most = high * (1 - FREED)
    if low > most:
        raise InputError(
            f"low is {low} and high {high}: a compaction would free less than a quarter; give a "
            f"low of at most {most:.2f}"
        )
