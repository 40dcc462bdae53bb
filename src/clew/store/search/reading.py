"""Reads the text of stored rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from clew.domain.parts import Parts, Text, ToolCall, ToolResult, searchable
from clew.errors import Corrupt
from clew.store.search.words import fold

Decode = Callable[[bytes], Parts]
"""Turns stored parts into values; raises Corrupt when they are damaged."""

_REMEMBERED = 1024
_SMALL = 2048
"""Stored bytes up to which a text is remembered."""


def text_of(parts: Parts) -> str:
    """All text of a message that a search finds."""
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    return "\n".join(searchable(parts))


def tools_of(parts: Parts) -> set[str]:
    """Names of the tools that a message calls or answers for."""
    return {part.name for part in parts if isinstance(part, (ToolCall, ToolResult)) and part.name}


class Reader:
    """Decodes rows. Damaged ones are None: they must not stop the rest.

    Rows behind the mark are looked at by query after query until they are indexed, so the folded
    texts of the last ones are remembered, by what is stored: an erased row is not taken for what
    it was. Thread safe.
    """

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._remembered = lru_cache(_REMEMBERED)(self._folded)

    def parts(self, data: bytes) -> Parts | None:
        """The parts of a row."""
        try:
            return self._decode(data)
        except Corrupt:
            return None

    def folded(self, data: bytes) -> str | None:
        """The folded text of a row."""
        try:
            return self._remembered(data) if len(data) <= _SMALL else self._folded(data)
        except Corrupt:  # not remembered: it may be readable next time
            return None

    def _folded(self, data: bytes) -> str:
        return fold(text_of(self._decode(data)))
