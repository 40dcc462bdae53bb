"""Routes: the address of a peer on a channel, and its key.

The key is a length-prefixed encoding of the fields, so two addresses can never share one, and
nothing has to guess where a field ends.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from clew.domain.messages import Appended
from clew.domain.text import exact
from clew.errors import InputError


class Received(Struct, frozen=True):
    """What became of a delivery. `again`: it had been received before, this is the first result."""

    conversation: str
    appended: Appended | None
    again: bool
    result: str | None = None


class ResetOutcome(Struct, frozen=True):
    """The new conversation, the one it follows, and how many waiting messages it carried over."""

    conversation: str
    previous: str | None
    carried: int


def route_key(fields: Mapping[str, str | int | None]) -> str:
    """The binding key of an address, e.g. {"chat": 42, "thread": 7} -> "4:chat2:426:thread1:7".

    Fields are ordered by name; a field that is None is absent.
    """
    pieces: list[str] = []
    for name in sorted(fields):
        value = fields[name]
        if value is None:
            continue
        for piece in (exact("route field name", name), exact(f"route field {name}", str(value))):
            pieces.append(f"{len(piece)}:{piece}")
    if not pieces:
        raise InputError("a route needs at least one field that is not None")
    return "".join(pieces)
