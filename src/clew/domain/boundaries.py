"""Boundaries: places where what stands for a conversation is replaced, and who is told of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from msgspec import Struct

from clew.errors import InputError

BoundaryKind = Literal["compaction", "undo", "reset"]


class Boundary(Struct, frozen=True, kw_only=True):
    """One event, as a subscriber gets it; of one event all get the same.

    Each field is required, so none can be made that does not say where it comes from. Delivery is
    at least once: (conversation, number) names the event, and numbers of one conversation only
    grow, so a subscriber that keeps the last number it has seen knows a repetition.
    """

    profile: str
    conversation: str
    """Whose it is: of a reset the new conversation."""
    number: int
    """The conversation's view right after it; 0 for a reset."""
    kind: BoundaryKind
    generation: int
    """Of the compaction that was committed or undone; 0 for a reset."""
    reason: str
    """Of a compaction its trigger (soft, hard, user), of an undo "undo", of a reset its reason."""
    platform: str
    """The conversation's source (cli, telegram, api)."""
    from_id: str
    """What it was called before: the conversation's id, the id of its newest segment, or, of a
    reset, the id of the old conversation."""
    to_id: str
    """What it is called since; the same unless it was rotated or reset."""
    at: int

    def __post_init__(self) -> None:
        if not self.platform:
            raise InputError("a boundary needs a platform: the source of its conversation")


class PendingBoundary(Struct, frozen=True, kw_only=True):
    """A boundary that a subscriber was not told yet."""

    boundary: Boundary
    attempts: int
    """Deliveries that were begun."""
    next_at: int | None
    """When it comes due (microseconds); 0: at once. None: it waits for one of its conversation that
    is before it."""
    error: str | None
    """What the last delivery failed with."""


class Subscriber(Struct, frozen=True, kw_only=True):
    """Who is told of every boundary in a profile since `created_at`."""

    name: str
    created_at: int
    pending: int
    """Boundaries that it was not told yet."""


class DeliveryReport(Struct, frozen=True, kw_only=True):
    """What one call of `deliver` did."""

    told: int
    failed: tuple[PendingBoundary, ...]
    """What the handler raised on; each comes due again later."""


BoundaryHandler = Callable[[Boundary], object]
"""What a subscriber does with a boundary. Returning is success, whatever is returned."""
AsyncBoundaryHandler = Callable[[Boundary], Awaitable[object]]
"""The same for `clew.aio`: awaited."""
