"""The receipt of a compaction: what it kept, shortened and left out, for a person to read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from msgspec import Struct

from clew.compaction.check import Check
from clew.compaction.draft import Draft
from clew.compaction.ledger import epoch_of
from clew.context.sections import NAMES, Layout
from clew.domain.compactions import Trigger
from clew.domain.values import json_text, json_value

VERSION = 1
"""Of the form; the field `clew` tells a receipt of ours from another tool's."""


class Summary(Struct, frozen=True, omit_defaults=True):
    """What a model had to do with it."""

    model: str
    state: str
    """used, rejected (the check refused what it wrote) or failed."""
    error: str | None = None


class Receipt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Stored with the compaction. Counts of tokens are those of the model it was made for."""

    trigger: str
    covered: tuple[int, int]
    """The first and the last message that the new epoch stands for; (0, 0): none."""
    covers_to: int
    messages: int
    """How many the epoch stands for."""
    kept: int
    """Covered messages that stay verbatim."""
    stubbed: int
    """Tool outputs that became short."""
    rows: dict[str, int] = {}
    """Rows of the new epoch by kind."""
    left_out: int = 0
    """Rows that had no room; recall and search find what they say."""
    replaced: int = 0
    """Rows that a later value replaced."""
    epoch: int = 0
    folded: tuple[int, ...] = ()
    """Epochs that became one."""
    tokens: dict[str, int]
    """before, after, target, and those after by section."""
    prefix: dict[str, int]
    """Of the context after, how many `tokens` stand at its beginning as they stood before."""
    checks: tuple[Check, ...] = ()
    summary: Summary | None = None
    notices: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As it is stored, and comes back from there."""
        return {"clew": VERSION, **json_value(json_text(msgspec.to_builtins(self), "receipt"))}


def receipt_of(
    draft: Draft, before: Layout, trigger: Trigger, checks: tuple[Check, ...],
    summary: Summary | None, notices: tuple[str, ...],
) -> Receipt:  # fmt: skip
    """The receipt of a draft."""
    plan, epoch, after = draft.plan, draft.epoch, draft.layout
    tokens = {"before": before.tokens, "after": after.tokens, "target": plan.target}
    tokens |= {name: after.section(name) for name in NAMES}
    return Receipt(
        trigger=trigger, covered=(plan.first, plan.last), covers_to=plan.covers_to,
        messages=plan.messages,
        kept=sum(1 for item in after.items if item.section == "kept") - plan.stubbed,
        stubbed=plan.stubbed,
        rows=dict(sorted(Counter(row.kind for row in epoch.rows).items())) if epoch else {},
        left_out=epoch.left_out if epoch else 0, replaced=epoch.replaced if epoch else 0,
        epoch=epoch.number if epoch else 0, folded=_folded(draft), tokens=tokens,
        prefix={"tokens": shared_prefix(before, after), "of": after.tokens}, checks=checks,
        summary=summary, notices=notices,
    )  # fmt: skip


def _folded(draft: Draft) -> tuple[int, ...]:
    if not draft.plan.fold:
        return ()
    return tuple(e.number for e in map(epoch_of, draft.plan.earlier) if e is not None)


def shared_prefix(before: Layout, after: Layout) -> int:
    """Tokens at the beginning of a context that are those of the one before it."""
    tokens = after.system if after.system == before.system else 0
    for old, new in zip(before.items, after.items, strict=False):
        if (old.entry.role, old.entry.parts) != (new.entry.role, new.entry.parts):
            break
        tokens += new.tokens
    return tokens


def receipt_from(value: dict[str, Any] | None) -> Receipt | None:
    """A receipt of ours as it was stored; None of another tool's."""
    if not value or value.get("clew") != VERSION:
        return None
    try:
        return msgspec.convert(value, Receipt)
    except msgspec.ValidationError:
        return None
