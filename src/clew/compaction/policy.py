"""When to compact, and whether one may: pure functions of what was tried before.

Nothing is armed, carried over or restored. Every process asks the same rows and gets the same
answer, also after a restart. Times are microseconds since 1970-01-01 UTC and come from clocks that
jump: attempts are ordered by their number, never by time, and a window blocks only while
0 <= now - its start < its length. So a clock that went back frees, and nobody waits for longer than
one window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from clew.clock import SECOND, Micros
from clew.context.budget import FREED, Budget
from clew.context.measure import Reading
from clew.domain.compactions import Attempt, Trigger

STRIKES = 2
"""So many ineffective attempts close it."""
WINDOW: Micros = 300 * SECOND
"""How long it stays closed after the last of them; then one more may try."""
COOLDOWNS: tuple[Micros, ...] = (60 * SECOND, 300 * SECOND, 900 * SECOND)
"""How long a summariser rests after its first, second, third failure in a row, and each later."""
GROWTH = 1.10
"""An undone compaction is not made again before the context has grown to so much."""
EXTRA = 1
"""Attempts at work beside which a person's own may pay for a summary, too."""

INEFFECTIVE = ("no-op", "check", "ineffective", "error")
"""Verdicts of failed attempts that are strikes."""
ABANDONED = "abandoned"
"""Verdict of an attempt whose deadline passed while it was open."""
SUMMARY, LEDGER = "summary", "ledger"
"""Verdicts of committed attempts: a paid summary was used, or the ledger alone."""


class Undone(NamedTuple):
    """The last compaction was undone: tokens of the context right after that, and now."""

    tokens: int
    now_tokens: int


class Guard(Struct, frozen=True):
    """Whether an attempt may begin.

    `paid`: whether it may call the summariser; the ledger needs no leave. `reason`: one sentence
    for a person. `until`: when what is held back may be tried again; None when nothing is, or when
    it does not depend on time.
    """

    go: bool
    paid: bool
    reason: str
    until: Micros | None = None


class _Wait(NamedTuple):
    """A window that blocks now: why, and when it ends."""

    reason: str
    until: Micros


def due(tokens: int, budget: Budget, size: int = 0) -> Trigger | None:
    """Which attempt a context of so many tokens, and bytes in a request, calls for.

    hard: the next request would not fit. soft: it has reached the high-water mark.
    """
    if tokens > budget.room or size > budget.bytes:
        return "hard"
    if tokens >= budget.high_tokens or size >= budget.high * budget.bytes:
        return "soft"
    return None


def guard(
    trigger: Trigger, *, attempts: Sequence[Attempt], readings: Sequence[Reading] = (),
    model: str | None = None, now: Micros, threshold: int, undone: Undone | None = None,
) -> Guard:  # fmt: skip
    """Whether an attempt of this trigger may begin now, and whether it may pay for a summary.

    `threshold`: the high-water mark in tokens of the model; a reading below it clears strikes.

    soft obeys everything. hard always goes (the next request would not fit) and obeys only the
    summariser's rest and an attempt at work. user goes and pays, whatever was before; it does not
    pay beside two attempts at work, so that several at once cost one extra summary at most.

    Two that ask at the same moment both see nobody at work. Who asks again after opening its own
    attempt, with the attempts numbered below it, closes that gap: the numbers come one by one.
    """
    working, ended = at_work(attempts, now), _ended(attempts, now)
    until = max(map(_deadline, working), default=None)
    if trigger == "user":
        if len(working) > EXTRA:
            return Guard(True, False, "Other attempts are at work already.", until)
        return Guard(True, True, "A person asked for it.")
    if working:
        return Guard(trigger == "hard", False, "Another attempt is at work.", until)
    if trigger == "soft":
        if undone is not None and undone.now_tokens < undone.tokens * GROWTH:
            return Guard(False, False, "The last compaction was undone; the context may grow.")
        closed = _closed(_strikes(ended, readings, model, threshold), now)
        if closed is not None:
            return Guard(False, False, closed.reason, closed.until)
    rest = _rest(ended, now)
    if rest is not None:
        return Guard(True, False, rest.reason, rest.until)
    return Guard(True, True, "Nothing holds it back.")


def freed_enough(before: int, after: int) -> bool:
    """Whether going from `before` to `after` tokens frees at least a quarter."""
    return before > 0 and before - after >= before * FREED


def effective(attempt: Attempt) -> bool:
    """Whether it was committed and freed enough. Of unknown tokens it is neither this nor a
    strike."""
    return attempt.state == "committed" and _freed(attempt) is True


def _exist(attempts: Sequence[Attempt]) -> list[Attempt]:
    """By number. Cancelled and overtaken ones never were: nobody's guards may change by them."""
    there = (each for each in attempts if each.state not in ("cancelled", "overtaken"))
    return sorted(there, key=lambda attempt: attempt.number)


def at_work(attempts: Sequence[Attempt], now: Micros) -> list[Attempt]:
    """Those at work: open, and not for longer than they said, or than a window."""
    return [
        attempt for attempt in _exist(attempts) if attempt.state == "open"
        and 0 <= now - attempt.started_at < _deadline(attempt) - attempt.started_at
    ]  # fmt: skip


def _ended(attempts: Sequence[Attempt], now: Micros) -> list[Attempt]:
    """Those that have a result. An open one past its deadline is `abandoned`, whether or not
    somebody has written that yet."""
    return [
        attempt if attempt.state != "open" else replace(attempt, state="failed", verdict=ABANDONED)
        for attempt in _exist(attempts)
        if attempt.state != "open" or (attempt.deadline is not None and attempt.deadline <= now)
    ]


def _deadline(attempt: Attempt) -> Micros:
    return attempt.started_at + WINDOW if attempt.deadline is None else attempt.deadline


def _other(model: str | None, wanted: str | None) -> bool:
    """Whether these are known to be two models."""
    return model is not None and wanted is not None and model != wanted


def _freed(attempt: Attempt) -> bool | None:
    if attempt.tokens_before is None or attempt.tokens_after is None:
        return None
    return freed_enough(attempt.tokens_before, attempt.tokens_after)


def _is_strike(attempt: Attempt) -> bool:
    if attempt.trigger != "soft":
        return False
    if attempt.state == "committed":
        return _freed(attempt) is False
    return attempt.state == "failed" and attempt.verdict in INEFFECTIVE


def _strikes(
    ended: Sequence[Attempt], readings: Sequence[Reading], model: str | None, threshold: int
) -> list[Attempt]:
    """The ineffective soft attempts that count against the next one for `model`: those after the
    last of an effective one, one for another model, a real reading below the threshold."""
    # A provider that reports nothing reports 0: no reading.
    cleared = max(
        (
            reading.after_attempt for reading in readings
            if 0 < reading.reported < threshold and not _other(reading.model, model)
        ),
        default=0,
    )  # fmt: skip
    found: list[Attempt] = []
    for attempt in ended:
        if effective(attempt) or _other(attempt.model, model):
            found.clear()
        elif attempt.number > cleared and _is_strike(attempt):
            found.append(attempt)
    return found


def _closed(strikes: Sequence[Attempt], now: Micros) -> _Wait | None:
    """The window after the last strike. When it has passed one probe may try; if that is
    ineffective, too, its own window begins."""
    if len(strikes) < STRIKES:
        return None
    return _window(
        _end(strikes[-1]), WINDOW, now, f"The last {len(strikes)} attempts freed too little."
    )


def _rest(ended: Sequence[Attempt], now: Micros) -> _Wait | None:
    """The rest of a summariser that failed: longer with each failure since its last success."""
    failed: list[Attempt] = []
    for attempt in ended:
        if _summary_failed(attempt):
            failed.append(attempt)
        elif attempt.state == "committed" and attempt.verdict == SUMMARY:
            failed.clear()
    if not failed:
        return None
    length = COOLDOWNS[min(len(failed), len(COOLDOWNS)) - 1]
    last = failed[-1]
    why = last.summary_error or "no answer before the deadline"
    return _window(_end(last), length, now, f"The summariser rests after a failure ({why}).")


def _summary_failed(attempt: Attempt) -> bool:
    stalled = attempt.verdict == ABANDONED and attempt.deadline is not None
    return attempt.summary_error is not None or (attempt.state == "failed" and stalled)


def _end(attempt: Attempt) -> Micros:
    """When it ended. An abandoned one at its deadline, not when somebody noticed: the answer must
    not depend on who looks first."""
    if attempt.verdict == ABANDONED and attempt.deadline is not None:
        return attempt.deadline
    return attempt.started_at if attempt.ended_at is None else attempt.ended_at


def _window(start: Micros, length: Micros, now: Micros, reason: str) -> _Wait | None:
    return _Wait(reason, start + length) if 0 <= now - start < length else None
