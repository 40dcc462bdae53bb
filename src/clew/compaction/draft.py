"""A plan carried out: the body of a compaction, and the context as it would be with it. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from clew.compaction.ledger import Close, Epoch, Operation, epoch_of, fold, inline_of, write_epoch
from clew.compaction.plan import Plan
from clew.context.measure import Measure
from clew.context.requests import live_requests
from clew.context.sections import Layout, lay_out
from clew.domain.compactions import BodyItem, Compaction, Inline, Ref, Stub
from clew.domain.messages import Message, Role
from clew.domain.parts import Text, plain_text

if TYPE_CHECKING:
    from clew.store.reading import ContextInputs

Count = Callable[[str], int]


class Words(NamedTuple):
    """What a model adds to the ledger; it changes no row."""

    narrative: str
    operations: tuple[Operation, ...] = ()


class Draft(NamedTuple):
    """A compaction that was not committed yet."""

    plan: Plan
    body: tuple[BodyItem, ...]
    epochs: tuple[Epoch, ...]
    """All that the body holds, the new one last (if the plan asks for one)."""
    taken: tuple[Message, ...]
    """What the new epoch stands for."""
    inputs: ContextInputs
    """The context as it would be."""
    layout: Layout
    wider: float
    """How many times the plan's room the ledger got."""
    words: Words | None = None

    @property
    def epoch(self) -> Epoch | None:
        """The new one."""
        return self.epochs[-1] if self.taken else None


def write(
    plan: Plan, inputs: ContextInputs, measure: Measure, words: Words | None = None,
    wider: float = 1.0, more: int = 0,
) -> Draft:  # fmt: skip
    """Write the ledger that a plan asks for, with so many times the room, and `more` tokens for
    what a model adds."""
    room = int(plan.room * wider) + more
    earlier, epochs = _earlier(plan, inputs, measure.text, wider)
    taken = tuple(_Shown(inputs).between(plan.first, plan.last)) if plan.first else ()
    written: list[Inline] = list(earlier)
    if taken:
        epoch = write_epoch(
            epochs, taken, number=max((e.number for e in epochs), default=0) + 1, room=room,
            count=measure.text, narrative=words.narrative if words else None,
            operations=(*_answered(inputs, taken), *(words.operations if words else ())),
        )  # fmt: skip
        epochs.append(epoch)
        written.append(inline_of(epoch))
    head: tuple[BodyItem, ...] = () if plan.head is None else (plan.head,)
    body = (*head, *written, *plan.requests, *plan.kept)
    after = projected(inputs, body, plan.covers_to)
    return Draft(plan, body, tuple(epochs), taken, after, lay_out(after, measure), wider, words)


def _answered(inputs: ContextInputs, taken: Sequence[Message]) -> list[Close]:
    """Requests that look open where the epoch ends, and were answered by what comes after it."""
    everything = [*(m for _, named in inputs.covered for m in named), *inputs.messages]
    live = {message.seq for message in live_requests(everything)}
    return [Close(m.seq) for m in live_requests(taken) if m.seq not in live]


def _earlier(
    plan: Plan, inputs: ContextInputs, count: Count, wider: float
) -> tuple[list[Inline], list[Epoch]]:
    """What was written before, as it is; or all of it as one epoch."""
    if not plan.fold:
        return list(plan.earlier), [e for e in map(epoch_of, plan.earlier) if e is not None]
    number = 1
    epochs: list[Epoch] = []
    for inline in plan.earlier:
        epoch = epoch_of(inline)
        if epoch is None:
            epoch = _of_another(inline, inputs, number, plan.fold, count)
        epochs.append(epoch)
        number = epoch.number
    folded = fold(epochs, number=number + 1, room=int(plan.fold * wider), count=count)
    return [inline_of(folded)], [folded]


def _of_another(
    inline: Inline, inputs: ContextInputs, number: int, room: int, count: Count
) -> Epoch:
    """Another tool's summary is read like something that the assistant said where it was made:
    before the first epoch, or else at the cover."""
    epochs = (epoch_of(item) for item, _ in inputs.covered)
    first = min((epoch.first for epoch in epochs if epoch is not None), default=0)
    cover = 1 if inputs.compaction is None else inputs.compaction.covers_to
    said = Message.of(
        seq=max(1, first - 1) if first else cover, uid="0" * 32, role=Role.ASSISTANT,
        parts=(Text(plain_text(inline.parts)),), created_at=0,
    )  # fmt: skip
    return write_epoch((), [said], number=number, room=room, count=count)


def projected(inputs: ContextInputs, body: Sequence[BodyItem], covers_to: int) -> ContextInputs:
    """The context inputs as they would be with this body in effect."""
    record = Compaction(
        generation=inputs.conversation.generation + 1, attempt=0, covers_to=covers_to,
        body=tuple(body), cuts=(), kind="ours", tokens_before=None, tokens_after=None,
        created_at=0,
    )  # fmt: skip
    shown = _Shown(inputs)
    covered = tuple((item, tuple(shown.named(item))) for item in body)
    above = tuple(message for message in inputs.messages if message.place > covers_to)
    return msgspec.structs.replace(inputs, compaction=record, covered=covered, messages=above)


class _Shown:
    """The visible messages that are at hand, by their places."""

    def __init__(self, inputs: ContextInputs) -> None:
        named = (message for _, messages in inputs.covered for message in messages)
        self._messages = sorted((*named, *inputs.messages), key=lambda message: message.place)
        self._places = [message.place for message in self._messages]

    def between(self, first: int, last: int) -> list[Message]:
        return self._messages[bisect_left(self._places, first) : bisect_right(self._places, last)]

    def named(self, item: BodyItem) -> list[Message]:
        match item:
            case Inline():
                return []
            case Stub(seq=seq):
                return self.between(seq, seq)
            case Ref(first=first, last=last):
                return self.between(first, last)
