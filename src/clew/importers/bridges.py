"""Records that are no messages, bridged: what follows one of them follows what it followed.

Bounded, so that a file of any size costs the same: a record follows one that was written shortly
before, or a message.
"""

from __future__ import annotations

from itertools import islice

REMEMBERED, MORE = 20_000, 5_000
"""Ids that are held, and up to so many more: those are forgotten together, since the way to the
oldest leads past all that were deleted before it."""


class Recent(dict[str, str | None]):
    """A dictionary that forgets its oldest entries."""

    def put(self, key: str, value: str | None) -> None:
        self[key] = value
        if len(self) > REMEMBERED + MORE:
            for oldest in list(islice(self, MORE)):
                del self[oldest]


class Bridges:
    """From records that are no messages to the messages that stand for them."""

    def __init__(self) -> None:
        self._ends = Recent()

    def bridge(self, id: str | None, to: str | None) -> None:
        """`id` is no message: what follows it follows `to`; None when there is nothing before."""
        if id:
            self._ends.put(id, None if to == id else to)

    def kept(self, id: str | None) -> str | None:
        """The message that stands for a record."""
        return self._ends.get(id, id) if id else None

    def is_message(self, id: str | None) -> None:
        """A record that was bridged came again as a message."""
        if id is not None and id in self._ends:
            del self._ends[id]
