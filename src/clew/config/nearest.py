"""The name that somebody may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one; None when none is."""
    by_letters = {each.lower().replace("-", "_"): each for each in known}
    difflib: Any = import_module("difflib")  # only who mistypes needs it
    found: list[str] = difflib.get_close_matches(name.lower().replace("-", "_"), by_letters, 1, 0.6)
    return by_letters[found[0]] if found else None


def meant(name: str, known: Iterable[str]) -> str:
    """For the end of an error: the nearest name, or all."""
    known = sorted(known)
    near = nearest(name, known)
    return f"did you mean {near}?" if near else f"known are {', '.join(known)}"
