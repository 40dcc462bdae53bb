"""Text that a database column and a terminal can hold."""

from __future__ import annotations

import re

from clew.errors import InputError

_REFUSED = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "\ufffd"


def a_text(what: str, value: object) -> None:
    """Refuse what is no text."""
    if not isinstance(value, str):
        raise InputError(f"{what} is a {type(value).__name__}; pass a text (str)")


def clean(text: str) -> str:
    """Replace NUL and lone surrogates, which TEXT columns cannot hold on every engine.

    For labels only (titles, previews, names, search text); message content keeps them.
    """
    return text if text.isascii() and "\0" not in text else _REFUSED.sub(REPLACEMENT, text)


def cleaned(text: str | None) -> str | None:
    return None if text is None else clean(text)


def exact(what: str, text: str) -> str:
    """A key or name that is compared: it must be storable as it is, or two could become one."""
    a_text(what, text)
    if not text:
        raise InputError(f"{what} is empty; give a non-empty text")
    return storable(what, text)


def storable(what: str, text: str) -> str:
    """A text that every engine can keep, or look for."""
    if _REFUSED.search(text):
        raise InputError(f"{what} {text!r} holds NUL or a lone surrogate; encode it first")
    return text


def shorten(text: str, limit: int) -> str | None:
    """The first non-empty line-joined words of a text, at most `limit` characters; None if none."""
    words = " ".join(text[: limit * 2].split()) or " ".join(text[: limit * 50].split())
    if not words:
        return None
    return clean(words if len(words) <= limit else words[: limit - 1].rstrip() + "…")
