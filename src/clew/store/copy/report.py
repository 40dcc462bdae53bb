"""What a copy tells while it runs and when it is done."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from clew.store.verify import Problem

Progress = Callable[[str, int, int], None]
"""Called with (what is being done, done, of); what it raises ends the copy, to be gone on with."""


class CopyReport(Struct, frozen=True):
    """What a copy did, and what the destination holds now."""

    source: str
    dest: str
    """Both as people are shown them: without passwords."""
    moved: bool
    """Whether the source was sealed: from now on the destination is the store."""
    conversations: int
    messages: int
    copied: int
    """Messages that this run brought over."""
    rows: dict[str, int]
    """Rows by table, equal on both sides."""
    pause: float
    """Seconds in which the source took no writes."""
    seconds: float
    problems: tuple[Problem, ...]
    """Invariants that do not hold in the copy, nor in the source that it equals."""
