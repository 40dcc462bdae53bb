"""What every module of the store is given: codec, ids, clock and limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from clew.clock import Clock, SystemClock
from clew.config import Limits
from clew.domain.text import a_text, clean, exact
from clew.errors import InputError, TooLarge
from clew.ids import Ids
from clew.store.codec import Codec, json_text


class Kit(NamedTuple):
    """Made once per store."""

    codec: Codec
    ids: Ids
    clock: Clock
    limits: Limits

    def store_time(self, clock: int | None) -> int:
        """Now, for what expires: by the store's own `clock` where it has one, because hosts that
        share it have each their own. A clock that was passed in rules that, too."""
        return clock if clock and isinstance(self.clock, SystemClock) else self.clock.now()

    def label(self, what: str, text: str | None) -> str | None:
        """A text for people (title, author, folder): cleaned, limited; None stays None."""
        if text is None:
            return None
        a_text(what, text)
        if len(text) > self.limits.label:
            raise TooLarge(what, len(text), self.limits.label)
        return clean(text)

    def remark(self, text: str | None) -> str | None:
        """Why something failed or ended: cleaned and cut short, since its end must not fail."""
        if text is None:
            return None
        a_text("the reason", text)
        if len(text) <= self.limits.label:
            return clean(text)
        return clean(text[: self.limits.label - 1]) + "…"

    def key(self, what: str, text: str) -> str:
        """A text that is compared (key, id, source, profile): exact, not empty, limited."""
        a_text(what, text)
        if len(text) > self.limits.key:
            raise TooLarge(what, len(text), self.limits.key)
        return exact(what, text)

    def choice(self, what: str, value: str, known: Sequence[str]) -> str:
        """One of a few words."""
        if not isinstance(value, str) or value not in known:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"{what} is {value!r}; give one of {', '.join(known)}")
        return value

    def json(self, what: str, value: object, limit: int | None = None) -> str | None:
        """A JSON value as ASCII text for a TEXT column: a small one, unless `limit` says more."""
        text = json_text(value, what)
        limit = self.limits.meta if limit is None else limit
        if text is not None and len(text) > limit:
            raise TooLarge(what, len(text), limit)
        return text
