"""Cuts: records that hide a range of the log. Rows are never touched."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class Cut(Struct, frozen=True, kw_only=True):
    """Hides from_seq..to_seq (the head at that time) until undone."""

    number: int
    from_seq: int
    to_seq: int
    by: str | None
    at: int
    undone_at: int | None = None

    @property
    def in_force(self) -> bool:
        return self.undone_at is None


def hidden(cuts: Sequence[Cut], seq: int) -> bool:
    """Whether a cut in force hides this seq."""
    return any(cut.in_force and cut.from_seq <= seq <= cut.to_seq for cut in cuts)


def in_force_at(cuts: Sequence[Cut], covers_to: int) -> tuple[int, ...]:
    """Numbers of the cuts in force that hide something at or below `covers_to`, ascending."""
    return tuple(sorted(c.number for c in cuts if c.in_force and c.from_seq <= covers_to))


def visible_ranges(cuts: Sequence[Cut], first: int, last: int) -> list[tuple[int, int]]:
    """The parts of first..last that no cut in force hides, ascending, as closed ranges."""
    ranges: list[tuple[int, int]] = []
    position = first
    for cut in sorted((c for c in cuts if c.in_force), key=lambda c: c.from_seq):
        if cut.to_seq < position or cut.from_seq > last:
            continue
        if cut.from_seq > position:
            ranges.append((position, cut.from_seq - 1))
        position = cut.to_seq + 1
    if position <= last:
        ranges.append((position, last))
    return ranges


class CutOutcome(Struct, frozen=True):
    """What a cut did: its number, and the inbox messages it withdrew."""

    number: int
    from_seq: int
    to_seq: int
    withdrawn: tuple[int, ...]
    interrupted_turn: int | None
    head: int
    view: int
