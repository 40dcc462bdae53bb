"""Cursors of search pages: opaque to callers, bound to the query they came from.

Newest first: the id below which the next page begins, which appended rows do not shift.
By relevance: the ids of the remaining hits, ranked once, as scores move with every indexed row.
A cursor grants nothing: the filters and the profile are applied to the rows it names.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b

import msgspec
from msgspec import Struct, structs

from clew.domain.search import SearchQuery
from clew.errors import InvalidCursor

_VERSION = 1
_LONGEST = 4096


class Position(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where the next page begins. `below` = 0 and no `ids`: at the start."""

    version: int = _VERSION
    query: bytes = b""
    below: int = 0
    ids: tuple[int, ...] = ()


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Position).decode


def digest(profile: str | None, query: SearchQuery) -> bytes:
    """Names the query; limit and cursor may differ from page to page."""
    # repr, because it escapes the lone surrogates that a query text may hold.
    fields = repr((profile, structs.replace(query, limit=1, cursor=None)))
    return blake2b(fields.encode(), digest_size=8).digest()


def write(name: bytes, below: int = 0, ids: tuple[int, ...] = ()) -> str:
    """The cursor of a position in the query of this digest."""
    return urlsafe_b64encode(_encode(Position(_VERSION, name, below, ids))).decode().rstrip("=")


def read(name: bytes, cursor: str | None) -> Position:
    """The position a cursor means. Raises InvalidCursor if this query did not give it."""
    if cursor is None:
        return Position()
    try:
        if len(cursor) > _LONGEST or not cursor.isascii():
            raise InvalidCursor(cursor[:100])
        found = _decode(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, msgspec.MsgspecError) as error:
        raise InvalidCursor(cursor) from error
    ids_fit = all(0 < i < 1 << 63 for i in found.ids)
    if found.version != _VERSION or found.query != name or not ids_fit:
        raise InvalidCursor(cursor)
    if not 0 <= found.below < 1 << 63 or (found.below > 0) == bool(found.ids):
        raise InvalidCursor(cursor)
    return found
