"""What every module of the store is given: codec, ids, clock and limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from clew.clock import Clock
from clew.config import Limits
from clew.domain.text import clean, exact
from clew.errors import InputError, TooLarge
from clew.ids import Ids
from clew.store.codec import Codec, json_text


class Kit(NamedTuple):
    """Made once per store."""

    codec: Codec
    ids: Ids
    clock: Clock
    limits: Limits

    def label(self, what: str, text: str | None) -> str | None:
        """A text for people (title, author, folder): cleaned, limited; None stays None."""
        if text is None:
            return None
        if len(text) > self.limits.label:
            raise TooLarge(what, len(text), self.limits.label)
        return clean(text)

    def remark(self, text: str | None) -> str | None:
        """Why something failed or ended: cleaned and cut short, since its end must not fail."""
        if text is None or len(text) <= self.limits.label:
            return None if text is None else clean(text)
        return clean(text[: self.limits.label - 1]) + "…"

    def key(self, what: str, text: str) -> str:
        """A text that is compared (key, id, source, profile): exact, not empty, limited."""
        if len(text) > self.limits.key:
            raise TooLarge(what, len(text), self.limits.key)
        return exact(what, text)

    def choice(self, what: str, value: str, known: Sequence[str]) -> str:
        """One of a few words."""
        if value not in known:
            raise InputError(f"{what} is {value!r}; give one of {', '.join(known)}")
        return value

    def json(self, what: str, value: object) -> str | None:
        """A small JSON value as ASCII text for a TEXT column."""
        text = json_text(value)
        if text is not None and len(text) > self.limits.meta:
            raise TooLarge(what, len(text), self.limits.meta)
        return text
