"""Words about a row that stand before its text and that no query can spell."""

from __future__ import annotations

import re

from clew.domain.text import clean
from clew.store.search.words import WORD_LIMIT

TOOL, CONVERSATION, PROFILE = "\ue001", "\ue002", "\ue003"
"""Marks of facets."""
UNREADABLE = "\ue004"
"""The word of a row whose words are not known: every query looks at those again."""
_FILLER = "\ue00f"
_SIGNS = re.compile(r"[\x00-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]")


def facet(kind: str, value: object) -> str:
    """A word for a fact about a row. Long or odd values may share one: a filter checks again."""
    return kind + _SIGNS.sub(_FILLER, clean(str(value)).casefold())[:WORD_LIMIT]
