"""What a compaction may act on: messages with their sizes, and the places where they may be parted.
Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from clew.compaction.stubs import same_text, stub_text, superseded, worth
from clew.context.measure import FRAME, Measure, bytes_of
from clew.domain.compactions import Ref, Stub
from clew.domain.messages import Message, Role
from clew.domain.parts import ToolCall, answered_ids, call_ids


class Material:
    """Messages that neither a head nor an epoch has taken, in their order.

    `whole`, `short`: what each takes as it is, and with its outputs short: its tokens, or its share
    of the bytes where that is more. `rate`: tokens that a byte stands for, so that both budgets are
    used up at once. `ends`: counts k such that the first k may be parted from the rest.
    """

    def __init__(self, messages: Sequence[Message], measure: Measure, rate: float) -> None:
        self.messages, self._measure, self._rate = messages, measure, rate
        self.ends = _ends(messages)
        self.ordered = all(a.place < b.place for a, b in pairwise(messages))
        """Whether a run of their numbers names no other message."""
        self.whole = [self._size(message) for message in messages]
        self.short = list(self.whole)
        self.stubs: dict[int, Stub] = {}
        """By the place in this list."""
        self._shorten_outputs()

    def _shorten_outputs(self) -> None:
        calls: dict[str, ToolCall] = {}
        again = superseded(self.messages)
        for at, message in enumerate(self.messages):
            if message.role is Role.ASSISTANT:
                calls |= {part.id: part for part in message.parts if isinstance(part, ToolCall)}
            elif message.role is Role.TOOL:
                if (newest := again.get(message.seq)) is not None:
                    self._shorten(at, same_text(message, newest, calls))
                elif worth(message, calls):
                    self._shorten(at, stub_text(message, calls))

    def _shorten(self, at: int, text: str) -> None:
        message = self.messages[at]
        self.stubs[at] = Stub(message.place, text)
        results = max(1, len(answered_ids(message.parts)))
        self.short[at] = results * (self._measure.text(text) + FRAME) + FRAME

    def _size(self, message: Message) -> int:
        return max(self._measure.message(message), int(bytes_of(message.parts) * self._rate))

    def border(self, most: int) -> int:
        """The highest end that is at most this."""
        return max((end for end in self.ends if end <= most), default=0)

    def border_for(self, sizes: Sequence[int], room: int) -> int:
        """The lowest end behind which `sizes` (of the first so many messages) fit the room."""
        behind, best, at = 0, self.border(len(sizes)), len(sizes)
        for end in reversed([end for end in self.ends if end <= len(sizes)]):
            while at > end:
                at -= 1
                behind += sizes[at]
            if behind > room:
                break
            best = end
        return best

    def enough(self, most: int, room: int) -> int:
        """The lowest end, at most this, such that everything fits when the outputs before it are
        short; 0 when that is not enough."""
        size, at = sum(self.whole), 0
        for end in self.ends:
            if end > most:
                break
            while at < end:
                size += self.short[at] - self.whole[at]
                at += 1
            if at and size <= room:
                return at
        return 0

    def items(self, start: int, end: int) -> tuple[Ref | Stub, ...]:
        """The messages start..end as items of a body, outputs short, runs of whole ones as one. A
        run ends where numbers are left out: what an epoch stands for may lie between them."""
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

    def shortens(self, cover: int, have: set[int]) -> bool:
        """Whether one of the first `cover` outputs would become short that is not among these."""
        return any(
            at < cover and stub.seq not in have and self.short[at] < self.whole[at]
            for at, stub in self.stubs.items()
        )


def coverable(messages: Sequence[Message], turn: int | None) -> int:
    """How many of these messages a compaction may cover: none of the open turn, no call that wants
    its result, and no step whose results the model has not seen yet."""
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
    """No call is parted from its result, no message of an API from its other records, no number
    from a lower one; and none ends with a call that has no result, which the store takes for one in
    flight."""
    until, wanted = _bonds(messages)
    ends, blocked, highest, wanting = [0], -1, 0, False
    lowest = _lowest_behind(messages)
    for at, message in enumerate(messages):
        blocked = max(blocked, until[at])
        highest = max(highest, message.place)
        if not answered_ids(message.parts):
            wanting = wanted[at] > 0
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
    """For each count the lowest place among the messages behind so many."""
    lowest = [1 << 62]
    for message in reversed(messages):
        lowest.append(min(lowest[-1], message.place))
    lowest.reverse()
    return lowest
