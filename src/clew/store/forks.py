"""Tells open stores, in the child of a fork, that they belong to the parent."""

from __future__ import annotations

import os
import weakref
from typing import Protocol

INHERITED = (
    "this store was opened by the parent of a forked process and belongs to it; "
    "open it again in the child"
)


class Forkable(Protocol):
    """Something that a forked child inherits and must not use."""

    def forked(self) -> None:
        """Become unusable without touching what is shared with the parent. Runs in the child,
        where the other threads are gone and their locks may be held for ever."""
        ...


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()


def watch(inherited: Forkable) -> None:
    """Call `inherited.forked()` in the child of every fork from now on."""
    _watched.add(inherited)


def _tell_all() -> None:
    for inherited in list(_watched):
        inherited.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_tell_all)
