"""Whether a right to run, a conversation's or a job's, is free for another to take.

A right is decided inside every write made under it, by the fence; expiry only decides whether
somebody else may take it. The fence only grows. Invariant: I-04.
"""

from __future__ import annotations

from clew.store.holders import is_dead

DEFAULT_TTL = 60_000_000
"""Microseconds a holder may be silent before another may take over."""


def is_free(
    holder: str | None, held_at: int | None, ttl: int | None, now: int, shared: bool = False
) -> bool:
    """Free when released, when its time is over, or when its holder is dead.

    A sign of life from the future counts for as long as one from the past: a server's clock may be
    set back, or that of the standby which took over may be behind. Further ahead than `ttl` the
    clock has jumped, and nobody waits for that. `shared`: by several machines."""
    if holder is None or held_at is None or ttl is None:
        return True
    return abs(now - held_at) >= ttl or is_dead(holder, one_machine=not shared)
