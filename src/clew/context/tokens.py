"""Counting tokens, in one fixed unit: those of o200k. What another model counts is scaled later.

Images are not counted here: what they cost depends on the model.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol, cast

import quicktok  # pyright: ignore[reportMissingTypeStubs]

from clew.domain.parts import Parts, searchable

WHOLE = 1 << 20
"""Characters of text that are counted exactly; of a longer one the rest is estimated."""


class _Encoding(Protocol):
    """What is used of quicktok, which has no types."""

    def count(self, text: str, /) -> int: ...


@cache
def _encoding() -> _Encoding:
    return cast(_Encoding, quicktok.get_encoding("o200k_base"))  # pyright: ignore[reportUnknownMemberType]


def count_text(text: str) -> int:
    """Tokens of a text. What looks like a special token counts as the text that it is."""
    if len(text) > WHOLE:
        head = count_text(text[:WHOLE])
        return head * len(text) // WHOLE
    try:
        return _encoding().count(text)
    except TypeError:  # lone surrogates
        return _encoding().count(text.encode("utf-8", "replace").decode())


def count_parts(parts: Parts) -> int:
    """Tokens of what a message says: text, thinking, calls and results."""
    total = 0
    for text in searchable(parts):
        total += count_text(text)
    return total
