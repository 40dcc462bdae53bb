"""What a compaction would do: a value that can be printed, made from the context and a budget.

Tool outputs go first. Only when that frees too little, the oldest messages give way to an epoch of
the ledger. Everything happens in one rewrite, from high water down to low water, so that a
provider's cache breaks once. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from clew.compaction.ledger import epoch_of
from clew.compaction.stubs import same_text, stub_text, superseded, worth
from clew.context.budget import Budget
from clew.context.measure import FRAME, Measure, bytes_of
from clew.context.requests import is_answer, live_requests
from clew.context.sections import Layout, borders, inlines
from clew.domain.compactions import Inline, Ref, Stub
from clew.domain.messages import Message, Role
from clew.domain.parts import ToolCall, answered_ids, call_ids

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
    before: int
    """Tokens of the context now."""
    target: int
    """What is aimed at."""

    @property
    def stubbed(self) -> int:
        return sum(1 for item in self.kept if isinstance(item, Stub))


class Nothing(Struct, frozen=True):
    """There is nothing to do, and why."""

    reason: str


def make_plan(
    inputs: ContextInputs, layout: Layout, budget: Budget, measure: Measure,
    target: int | None = None,
) -> Plan | Nothing:  # fmt: skip
    """A plan that brings the context down to `target` tokens (low water when None)."""
    floor = FLOOR if target is None else 0.0
    target = budget.low_tokens if target is None else target
    material = _material(inputs)
    head = _head(inputs, material, budget, measure)
    if head is not None:
        material = [message for message in material if message.place > head.last]
    sizes = _Sizes(material, measure, budget.room / budget.bytes)
    beside = layout.system + sum(i.tokens for i in layout.items if i.section == "head")
    if head is not None and not layout.section("head"):
        beside += sizes.of(_between(_visible(inputs), head))
    share = max(target - beside, int((budget.room - beside) * floor))
    if share <= 0:
        return Nothing(f"system prompt, tools and the first messages alone take {beside:,} tokens")
    ends = _ends(material)
    most = _last_border(ends, _limit(inputs, material))
    if most == 0:
        return Nothing("all that is there is the turn in flight, or too new to go")
    earlier = tuple(inlines(inputs))
    written = sum(i.tokens for i in layout.items if i.section == "ledger")
    cover = _enough(ends, sizes, most, share - written)
    if cover and _new_stubs(inputs, sizes, cover):
        return Plan(
            covers_to=material[cover - 1].place, first=0, last=0, head=head, earlier=earlier,
            fold=0, room=0, requests=(), kept=sizes.items(0, cover), messages=0,
            before=layout.tokens, target=target,
        )  # fmt: skip
    cover = min(most, _border_for(ends, sizes.whole, int(share * VERBATIM)))
    if cover == 0:
        return Nothing("all that is there is too new to go")
    tail = sum(sizes.whole[cover:])
    return _with_epoch(
        inputs, layout, sizes, ends, cover, _Shares(share, written, tail, target), head, earlier
    )


def _enough(ends: Sequence[int], sizes: _Sizes, most: int, share: int) -> int:
    """How many of the oldest messages must be shortened for everything to fit the share; 0 when
    that is not enough."""
    size, at = sum(sizes.whole), 0
    for end in ends:
        if end > most:
            break
        while at < end:
            size += sizes.short[at] - sizes.whole[at]
            at += 1
        if at and size <= share:
            return at
    return 0


class _Shares(NamedTuple):
    share: int
    written: int
    tail: int
    target: int


def _with_epoch(
    inputs: ContextInputs, layout: Layout, sizes: _Sizes, ends: list[int], cover: int,
    shares: _Shares, head: Ref | None, earlier: tuple[Inline, ...],
) -> Plan | Nothing:  # fmt: skip
    room = int(shares.share * EPOCH)
    full = bool(earlier) and shares.written + room > int(shares.share * LEDGER)
    fold = int(shares.share * FOLDED) if full else 0
    written = min(shares.written, fold) if fold else shares.written
    live = {message.seq for message in live_requests(_visible(inputs))}
    asked = sum(
        size for size, m in zip(sizes.whole[:cover], sizes.messages, strict=False) if m.seq in live
    )
    left = shares.share - written - room - 2 * FRAME - shares.tail - asked
    end = _border_for([e for e in ends if e <= cover], sizes.short[:cover], max(0, left))
    if not sizes.ordered:  # a run of numbers would name others, too
        end = cover
    if end == 0:
        end = next((e for e in ends if e > 0), 0)
    reached = max((e.last for e in map(epoch_of, earlier) if e is not None), default=0)
    taken = [message for message in sizes.messages[:end] if message.place > reached]
    if not taken and not fold and not _new_stubs(inputs, sizes, cover):
        return Nothing("what is covered already is all that can be")
    requests = tuple(Ref(m.place, m.place) for m in sizes.messages[:end] if m.seq in live)
    return Plan(
        covers_to=sizes.messages[cover - 1].place, first=taken[0].place if taken else 0,
        last=taken[-1].place if taken else 0, head=head, earlier=earlier, fold=fold,
        room=min(room, max(120, int(sizes.of(taken) * DENSITY))), requests=requests,
        kept=sizes.items(end, cover), messages=len(taken), before=layout.tokens,
        target=shares.target,
    )  # fmt: skip


def _visible(inputs: ContextInputs) -> list[Message]:
    return [*(m for _, named in inputs.covered for m in named), *inputs.messages]


def _material(inputs: ContextInputs) -> list[Message]:
    """What no epoch and no head has taken: covered messages that stay, and all above."""
    head, _ = borders(inputs)
    return [message for message in _visible(inputs) if message.place > head]


def _between(messages: Sequence[Message], span: Ref) -> list[Message]:
    return [message for message in messages if span.first <= message.place <= span.last]


def _head(
    inputs: ContextInputs, material: Sequence[Message], budget: Budget, measure: Measure
) -> Ref | None:
    """The head that is there; before the first ledger, the first exchange with its answer, if that
    is short: a request alone would look like one to work on. Else what the system says first."""
    last, _ = borders(inputs)
    if last and inputs.compaction is not None:
        first = inputs.compaction.body[0]
        return first if isinstance(first, Ref) else None
    if inlines(inputs):
        return None
    live = {message.seq for message in live_requests(material)}
    chosen: list[Message] = []
    tokens, last = 0, 0
    for message in material:
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


class _Sizes:
    """The material with what each message takes, whole and short: its tokens, or its share of the
    bytes where that is more. `rate`: tokens that a byte stands for, so that both budgets are used
    up at once."""

    def __init__(self, messages: Sequence[Message], measure: Measure, rate: float) -> None:
        self.messages, self._measure, self._rate = messages, measure, rate
        self.whole = [self._size(message) for message in messages]
        self.calls: dict[str, ToolCall] = {}
        self.stubs: dict[int, Stub] = {}
        self.short = list(self.whole)
        self.ordered = all(a.place < b.place for a, b in pairwise(messages))
        again = superseded(messages)
        for at, message in enumerate(messages):
            if message.role is Role.ASSISTANT:
                self.calls |= {p.id: p for p in message.parts if isinstance(p, ToolCall)}
            elif message.role is Role.TOOL:
                if (newest := again.get(message.seq)) is not None:
                    self._shorten(at, same_text(message, newest, self.calls))
                elif worth(message, self.calls):
                    self._shorten(at, stub_text(message, self.calls))

    def _shorten(self, at: int, text: str) -> None:
        message = self.messages[at]
        self.stubs[at] = Stub(message.place, text)
        results = max(1, len(answered_ids(message.parts)))
        self.short[at] = results * (self._measure.text(text) + FRAME) + FRAME

    def _size(self, message: Message) -> int:
        return max(self._measure.message(message), int(bytes_of(message.parts) * self._rate))

    def of(self, messages: Sequence[Message]) -> int:
        """Tokens of some messages."""
        return sum(self._measure.message(message) for message in messages)

    def items(self, start: int, end: int) -> tuple[Ref | Stub, ...]:
        """The messages start..end as items, tool outputs short, runs of whole ones as one. A run
        ends where numbers are left out: what an epoch stands for may lie between them."""
        found: list[Ref | Stub] = []
        for at in range(start, end):
            place = self.messages[at].place
            if (stub := self.stubs.get(at)) is not None:
                found.append(stub)
            elif found and isinstance(last := found[-1], Ref) and last.last + 1 == place:
                found[-1] = Ref(last.first, place)
            else:
                found.append(Ref(place, place))
        return tuple(found)


def _new_stubs(inputs: ContextInputs, sizes: _Sizes, cover: int) -> bool:
    """Whether an output would become short that is not yet."""
    have = {item.seq for item, _ in inputs.covered if isinstance(item, Stub)}
    return any(
        sizes.messages[at].place not in have and sizes.short[at] < sizes.whole[at]
        for at in sizes.stubs if at < cover
    )  # fmt: skip


def _limit(inputs: ContextInputs, messages: Sequence[Message]) -> int:
    """How many of these messages a compaction may cover: none of the turn in flight, no call that
    wants its result, and no step whose results the model has not seen yet."""
    turn = inputs.conversation.turn
    for at, message in enumerate(messages):
        if turn is not None and message.turn == turn:
            return at
    for at in range(len(messages) - 1, -1, -1):
        if call_ids(messages[at].parts):
            return at
        if not answered_ids(messages[at].parts):
            break
    return len(messages)


def _ends(messages: Sequence[Message]) -> list[int]:
    """Counts k such that the first k messages can be parted from the rest: no call from its
    result, no message of an API from its other records, no number from a lower one."""
    until, wanted = _bonds(messages)
    ends, blocked, highest, wanting = [0], -1, 0, False
    lowest = _lowest_behind(messages)
    for at, message in enumerate(messages):
        blocked = max(blocked, until[at])
        highest = max(highest, message.place)
        if not answered_ids(message.parts):
            wanting = wanted[at] > 0  # the store takes such a call for one in flight
        if blocked <= at and highest < lowest[at + 1] and not wanting:
            ends.append(at + 1)
    return ends


def _bonds(messages: Sequence[Message]) -> tuple[list[int], list[int]]:
    """For each message the place in this list of the last one that belongs to it (the results of
    its calls, the other records of its API message), and how many of its calls have no result. A
    result belongs to the newest call of its id that has none: ids come again."""
    until = [-1] * len(messages)
    wanted = [0] * len(messages)
    calls: dict[str, list[int]] = {}
    groups: dict[str, int] = {}
    for at, message in enumerate(messages):
        for call in call_ids(message.parts):
            calls.setdefault(call, []).append(at)
            wanted[at] += 1
        for call in answered_ids(message.parts):
            if places := calls.get(call):
                maker = places.pop()
                wanted[maker] -= 1
                until[maker] = max(until[maker], at)
        if message.api_group is not None:
            first = groups.setdefault(message.api_group, at)
            until[first] = max(until[first], at)
    return until, wanted


def _lowest_behind(messages: Sequence[Message]) -> list[int]:
    lowest = [1 << 62]
    for message in reversed(messages):
        lowest.append(min(lowest[-1], message.place))
    lowest.reverse()
    return lowest


def _last_border(ends: Sequence[int], most: int) -> int:
    return max((end for end in ends if end <= most), default=0)


def _border_for(ends: Sequence[int], sizes: Sequence[int], room: int) -> int:
    """The lowest border behind which everything fits the room."""
    behind, best, at = 0, ends[-1], len(sizes)
    for end in reversed(ends):
        while at > end:
            at -= 1
            behind += sizes[at]
        if behind > room:
            break
        best = end
    return best
