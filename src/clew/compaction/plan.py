"""What a compaction would do: a value that can be printed, made from the context and a budget.

Tool outputs go first. Only when that frees too little, the oldest messages give way to an epoch of
the ledger. Everything happens in one rewrite, from high water down to low water, so that a
provider's cache breaks once. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from clew.compaction.ledger import epoch_of
from clew.compaction.material import Material, coverable
from clew.context.budget import Budget
from clew.context.measure import FRAME, Measure
from clew.context.requests import is_answer, live_requests
from clew.context.sections import Layout, borders, inlines
from clew.domain.compactions import Inline, Ref, Stub
from clew.domain.messages import Message, Role

if TYPE_CHECKING:
    from clew.store.reading import ContextInputs

HEAD = 0.02
"""Of the window: what the first messages may take to stay verbatim for ever."""
VERBATIM = 0.3
"""Of what is to be left beside the system prompt and the head: the newest messages, untouched."""
EPOCH = 0.15
"""The same, for the new epoch of the ledger."""
FOLDED = 0.25
"""The same, for what old epochs fold into."""
LEDGER = 0.6
"""The same, for all epochs together; beyond it the old ones fold into one."""
DENSITY = 0.35
"""An epoch takes at most this share of the messages that it stands for."""
LEAST = 120
"""Tokens that an epoch gets at least."""
FLOOR = 0.4
"""Of the room beside the system prompt: what is aimed at when that prompt is large."""


class Plan(Struct, frozen=True, kw_only=True):
    """What stands for the messages 1..covers_to. Counts are tokens of the model."""

    covers_to: int
    first: int
    """The first message that the new epoch takes, and the last; 0 when short outputs suffice."""
    last: int
    head: Ref | None
    """The first messages, verbatim."""
    earlier: tuple[Inline, ...]
    """What compactions wrote before, kept byte for byte unless `fold`."""
    fold: int
    """The most that those take as one epoch; 0 when they stay as they are."""
    room: int
    """The most that the new epoch takes."""
    requests: tuple[Ref, ...]
    """Requests that the epoch covers and that want an answer still: verbatim, behind it."""
    kept: tuple[Ref | Stub, ...]
    """Covered messages that stay, whole or short."""
    messages: int
    """How many messages the new epoch stands for."""
    target: int
    """What is aimed at."""

    @property
    def stubbed(self) -> int:
        return sum(1 for item in self.kept if isinstance(item, Stub))


class Nothing(Struct, frozen=True):
    """There is nothing to do, and why."""

    reason: str


class _Shares(NamedTuple):
    """How what is aimed at is shared out, in tokens: `share` is all but the system prompt, the
    tools and the head; `written` is what epochs take now."""

    share: int
    written: int
    target: int


def make_plan(
    inputs: ContextInputs, layout: Layout, budget: Budget, measure: Measure,
    target: int | None = None,
) -> Plan | Nothing:  # fmt: skip
    """A plan that brings the context down to `target` tokens (low water when None)."""
    floor = FLOOR if target is None else 0.0
    target = budget.low_tokens if target is None else target
    shown = _visible(inputs)
    head = _head(inputs, shown, budget, measure)
    reached = head.last if head is not None else borders(inputs)[0]
    material = Material(
        [message for message in shown if message.place > reached], measure,
        budget.room / budget.bytes,
    )  # fmt: skip
    beside = layout.system + sum(measure.message(m) for m in shown if m.place <= reached)
    share = max(target - beside, int((budget.room - beside) * floor))
    if share <= 0:
        return Nothing(f"system prompt, tools and the first messages alone take {beside:,} tokens")
    most = material.border(coverable(material.messages, inputs.conversation.turn))
    if most == 0:
        return Nothing("all that is there is the turn in flight, or too new to go")
    shares = _Shares(share, layout.section("ledger"), target)
    cover = material.enough(most, share - shares.written)
    if cover and material.shortens(cover, _stubbed(inputs)):
        return _plan(inputs, material, cover, head, shares)
    cover = min(most, material.border_for(material.whole, int(share * VERBATIM)))
    if cover == 0:
        return Nothing("all that is there is too new to go")
    return _with_epoch(inputs, material, cover, head, shares)


def _with_epoch(
    inputs: ContextInputs, material: Material, cover: int, head: Ref | None, shares: _Shares
) -> Plan | Nothing:
    """The oldest give way to an epoch, and what of the covered rest fits stays."""
    earlier = inlines(inputs)
    room = int(shares.share * EPOCH)
    full = bool(earlier) and shares.written + room > int(shares.share * LEDGER)
    fold = int(shares.share * FOLDED) if full else 0
    live = {message.seq for message in live_requests(_visible(inputs))}
    messages = material.messages
    taken_up = (  # by the epochs before, the new one, the tail, and requests that stay verbatim
        min(shares.written, fold) if fold else shares.written,
        room + 2 * FRAME,
        sum(material.whole[cover:]),
        sum(size for m, size in zip(messages[:cover], material.whole, strict=False)
            if m.seq in live),
    )  # fmt: skip
    left = max(0, shares.share - sum(taken_up))
    end = material.border_for(material.short[:cover], left) if material.ordered else cover
    end = end or next((end for end in material.ends if end), 0)
    reached = max((e.last for e in map(epoch_of, earlier) if e is not None), default=0)
    taken = [message for message in messages[:end] if message.place > reached]
    if not taken and not fold and not material.shortens(cover, _stubbed(inputs)):
        return Nothing("what is covered already is all that can be")
    room = min(room, max(LEAST, int(sum(material.whole[:end]) * DENSITY)))
    places = [message.place for message in taken]
    requests = tuple(Ref(m.place, m.place) for m in messages[:end] if m.seq in live)
    return replace(
        _plan(inputs, material, cover, head, shares, end), first=min(places, default=0),
        last=max(places, default=0), fold=fold, room=room, messages=len(taken), requests=requests,
    )  # fmt: skip


def _plan(
    inputs: ContextInputs, material: Material, cover: int, head: Ref | None, shares: _Shares,
    kept_from: int = 0,
) -> Plan:  # fmt: skip
    """A plan without an epoch of its own."""
    return Plan(
        covers_to=material.messages[cover - 1].place, first=0, last=0, head=head,
        earlier=tuple(inlines(inputs)), fold=0, room=0, requests=(),
        kept=material.items(kept_from, cover), messages=0, target=shares.target,
    )  # fmt: skip


def _visible(inputs: ContextInputs) -> list[Message]:
    return [*(m for _, named in inputs.covered for m in named), *inputs.messages]


def _stubbed(inputs: ContextInputs) -> set[int]:
    """Places of outputs that are short already."""
    return {item.seq for item, _ in inputs.covered if isinstance(item, Stub)}


def _head(
    inputs: ContextInputs, shown: Sequence[Message], budget: Budget, measure: Measure
) -> Ref | None:
    """The head that is there; before the first ledger, the first exchange with its answer, if that
    is short: a request alone would look like one to work on. Else what the system says first."""
    last, _ = borders(inputs)
    if last and inputs.compaction is not None:
        first = inputs.compaction.body[0]
        return first if isinstance(first, Ref) else None
    if inlines(inputs):
        return None
    live = {message.seq for message in live_requests(shown)}
    chosen: list[Message] = []
    tokens, last = 0, 0
    for message in shown:
        tokens += measure.message(message)
        if message.seq in live or message.replaces is not None:
            break
        if tokens > max(200, int(budget.window * HEAD)):
            break
        chosen.append(message)
        if message.role in (Role.SYSTEM, Role.DEVELOPER) and last == len(chosen) - 1:
            last = len(chosen)
        elif is_answer(message):
            last = len(chosen)
            break
    return Ref(chosen[0].place, chosen[last - 1].place) if last else None
