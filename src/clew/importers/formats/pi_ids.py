"""Ids of pi's entries, the same in every copy of a session, and in none of another.

The first version of the format had no ids; pi gives them to such a file when it opens it, and
writes it anew. There an entry is known by what it and those before it say, which does not change
then. In later versions an entry has an id that is unique in its file only, and a session that was
forked begins with a copy of the first entries: the first entry is made part of every id.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from clew.importers.fields import canonical, ident, mapping

CHAINED = 100_000
"""Entries of a file without ids that get one; what comes after is known to be new only by what it
says."""

_REWRITTEN = frozenset(("id", "parentId", "firstKeptEntryIndex", "firstKeptEntryId"))


class Ids:
    """Names entries as they come."""

    def __init__(self, header: dict[str, Any]) -> None:
        """A file that pi gave ids to still has the header of the first version."""
        old = not header or "version" not in header or "modelId" in header
        self._chain: bytes | None = b"pi" if old else None
        self._chained: list[bytes] = []
        self._given: dict[str, bytes] = {}
        self._previous: str | None = None
        self._root: bytes | None = None

    def name(self, entry: dict[str, Any]) -> str | None:
        """The id of the next entry; None when it cannot have one."""
        own = ident(entry.get("id"))
        if self._chain is not None and self._is_next(entry, own):
            return self._next(entry, own)
        self._chain = None
        if own is None:
            return None
        if self._root is None:
            self._root = canonical([own, entry.get("timestamp")])
        return _hashed(self._root, own)

    def named(self, own: object) -> str | None:
        """The id of an entry that another names."""
        id = ident(own)
        if id is None:
            return None
        if (found := self._given.get(id)) is not None:
            return _text(found)
        return None if self._root is None else _hashed(self._root, id)

    def at(self, index: object) -> str | None:
        """The id of an entry by its place in a file of the first version; the header is 0."""
        if isinstance(index, int) and 0 < index <= len(self._chained):
            return _text(self._chained[index - 1])
        return None

    def _is_next(self, entry: dict[str, Any], own: str | None) -> bool:
        """Whether an entry follows the one before it, as all do in the first version."""
        if len(self._chained) >= CHAINED:
            return False
        return own is None or ident(entry.get("parentId")) == self._previous

    def _next(self, entry: dict[str, Any], own: str | None) -> str:
        said = {name: value for name, value in entry.items() if name not in _REWRITTEN}
        message = mapping(said.get("message"))
        if message.get("role") == "hookMessage":
            said["message"] = {**message, "role": "custom"}
        self._chain = blake2b(canonical(said), digest_size=16, key=self._chain or b"pi").digest()
        self._chained.append(self._chain)
        if own is not None:
            self._given[own] = self._chain
            self._previous = own
        return _text(self._chain)


def _hashed(root: bytes, own: str) -> str:
    key = blake2b(root, digest_size=16).digest()
    return _text(blake2b(own.encode("utf-8", "replace"), digest_size=16, key=key).digest())


def _text(id: bytes) -> str:
    """In the form of a UUID, which is what is unique everywhere."""
    digits = id.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
