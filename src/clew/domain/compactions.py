"""Compactions and attempts: records that say what stands for messages 1..covers_to.

Nothing is marked retired or brought back. Which compaction is in effect is a function of the
records and of the cuts in force.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from clew.domain.cuts import Cut, in_force_at
from clew.domain.messages import Role
from clew.domain.parts import Parts

AttemptState = Literal["open", "committed", "cancelled", "overtaken", "failed"]
Trigger = Literal["soft", "hard", "user"]


class Ref(Struct, tag="ref", frozen=True):
    """The messages first..last stand here verbatim."""

    first: int
    last: int


class Stub(Struct, tag="stub", frozen=True):
    """The message `seq` stands here shortened to `text`."""

    seq: int
    text: str


class Inline(Struct, tag="inline", frozen=True, omit_defaults=True):
    """Content made by the compaction itself (a summary, a ledger)."""

    role: Role
    parts: Parts
    meta: dict[str, Any] | None = None


BodyItem = Ref | Stub | Inline


class Compaction(Struct, frozen=True, kw_only=True):
    """What stands for the visible messages 1..covers_to, as ordered items."""

    generation: int
    attempt: int | None
    covers_to: int
    body: tuple[BodyItem, ...]
    cuts: tuple[int, ...]
    kind: Literal["ours", "foreign"]
    tokens_before: int | None
    tokens_after: int | None
    created_at: int
    undone_at: int | None = None
    undone_tokens: int | None = None
    """Size of the context right after the undo, if the one who undid it said."""
    receipt: dict[str, Any] | None = None


class Proposal(Struct, frozen=True, kw_only=True):
    """What an engine asks to commit. Both counts come from the same estimator."""

    covers_to: int
    body: tuple[BodyItem, ...]
    tokens_before: int
    tokens_after: int
    receipt: dict[str, Any] | None = None


class Attempt(Struct, frozen=True, kw_only=True):
    """One try at a compaction."""

    number: int
    view: int
    base_generation: int
    state: AttemptState
    trigger: Trigger
    started_at: int
    model: str | None = None
    verdict: str | None = None
    summary_error: str | None = None
    deadline: int | None = None
    ended_at: int | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    rivals: tuple[int, ...] = ()
    """Numbers of the other attempts that were open when this one was opened, lowest first. Only
    what `open_attempt` returns has them: they are no part of the record."""


def in_effect(compactions: Sequence[Compaction], cuts: Sequence[Cut]) -> Compaction | None:
    """The newest record, not undone, whose cuts are those in force at or below its cover now.

    None: the log itself is the context.
    """
    for record in sorted(compactions, key=lambda c: -c.generation):
        if record.undone_at is None and record.cuts == in_force_at(cuts, record.covers_to):
            return record
    return None
