"""What to do about a model call that failed: pure policy, by the class of the error.

Waiting grows exponentially with full jitter: when a server comes back, its callers do not all call
in the same second. A server that says how long to wait is believed, up to a minute; one that wants
more is left for the next model at once, since a person is waiting.
"""

from __future__ import annotations

from msgspec import Struct

from clew.providers.errors import Overflow, ProviderError, TryAgain

FIRST = 1.0
"""Seconds that the second try waits for at most; each later one for at most twice as long."""
LONGEST = 30.0
"""Seconds that any try waits for at most, unless the server asks for more."""
PATIENCE = 60.0
"""Seconds that a server may ask for."""
SPREAD = 0.1
"""Of what a server asks for, waited in addition at most: others were told the same."""


class Again(Struct, frozen=True):
    """Ask the same model again after so many seconds."""

    seconds: float


class Fallback(Struct, frozen=True):
    """Ask the next model of the list, at once."""


class Compact(Struct, frozen=True):
    """Make the context smaller, and ask the same model again."""


class GiveUp(Struct, frozen=True):
    """Nothing is left to try: the turn has failed."""


Step = Again | Fallback | Compact | GiveUp


def wait(error: ProviderError, tried: int, jitter: float, *, tries: int = 5) -> float | None:
    """Seconds until the next try of the same model; None when there is none.

    `tried`: calls that were made of it, this one included; `tries`: of how many (0: without end);
    `jitter`: a random number from 0 to 1.
    """
    if not isinstance(error, TryAgain) or 0 < tries <= tried:
        return None
    asked = error.retry_after
    if asked is None or asked < 0:
        return jitter * min(LONGEST, FIRST * 2.0 ** min(tried - 1, 10))
    return None if asked > PATIENCE else asked * (1 + SPREAD * jitter)


def next_step(
    error: ProviderError, *, tried: int, tries: int, jitter: float, more: bool,
    compacted: bool = False,
) -> Step:  # fmt: skip
    """What helps. `more`: whether the fallback list has another model; `compacted`: whether this
    request was made smaller already, which is tried once.

    What the request itself is to blame for (BadRequest) would fail with other models, too, but may
    be about one that takes no images or no such settings, so the next one is asked.
    """
    if isinstance(error, Overflow) and not compacted:
        return Compact()
    seconds = wait(error, tried, jitter, tries=tries)
    if seconds is not None:
        return Again(seconds)
    return Fallback() if more else GiveUp()
