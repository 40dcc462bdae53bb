"""What of a context is shortened in the rendering, where nothing stored can be.

A compaction covers nothing of a turn in flight, so a long one, or one huge output, must fit by
other means. Three things are done, in this order, and only as far as they are needed:

1. A tool output that alone takes more than a quarter of the room is shown by its two ends.
2. The outputs of the turn in flight become short, and their images handles, from the oldest on.
3. Its steps (a call and its results) give way to one digest before the live request.

All are functions of the log's beginning: 2 and 3 walk the messages as they came and act when the
room is used up, down to half of it. So the view of a growing turn changes seldom, and between two
changes a request begins with all of the one before it, which is what a provider's cache holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from clew.context.entries import Entry
from clew.context.measure import Measure
from clew.context.requests import live_requests
from clew.context.sections import Item, sized
from clew.domain.messages import Message, Role
from clew.domain.parts import File, Image, Part, Parts, Text, ToolResult, result_text

LARGEST, NEWEST = 0.25, 0.5
"""Of the room: what one tool output may take, and one that the model has not seen yet."""
SHORT = 600
"""Characters that stay of an output of the turn in flight."""
STEPS = 32
"""In so many parts of the room it is made for a notice."""
REST = 0.5
"""Down to this much of what the turn in flight may take."""

Digest = Callable[[Sequence[Message], int], str]
"""What stands for steps that are left out: their messages, and the tokens it may take."""


class Room(NamedTuple):
    """What there is for the items."""

    tokens: int
    bytes: int

    def holds(self, tokens: int, size: int) -> bool:
        return tokens <= self.tokens and size <= self.bytes

    def beside(self, notice: Item | None) -> Room:
        """What is left beside a notice. In steps: the view of a growing turn must not change with
        each of its words."""
        if notice is None:
            return self
        return Room(
            self.tokens - _in_steps(notice.tokens, self.tokens // STEPS),
            self.bytes - _in_steps(notice.bytes, self.bytes // STEPS),
        )

    def part(self, share: float) -> Room:
        return Room(int(self.tokens * share), int(self.bytes * share))


def _in_steps(size: int, step: int) -> int:
    """The size, or the next multiple of a step above it."""
    return size if step < 1 else -(-size // step) * step


def handle(messages: Sequence[Message]) -> str:
    """How a person or an agent gets at messages that are not shown whole."""
    first, last = messages[0].seq, messages[-1].seq
    return f"recall({first})" if first == last else f"recall({first}-{last})"


def plain_digest(messages: Sequence[Message], room: int) -> str:
    """The least that can be said of left out steps."""
    first, last = messages[0].seq, messages[-1].seq
    return (
        f"[Messages {first} to {last}, earlier steps of the work on the request below, are left "
        f"out here; {handle(messages)} reads them.]"
    )


def without_giants(items: Sequence[Item], room: Room, measure: Measure) -> list[Item]:
    """The items, each tool output that is too large for the room shown by its two ends."""
    unseen = _unseen(items)
    found: list[Item] = []
    for at, item in enumerate(items):
        share = LARGEST if at < unseen else max(LARGEST, NEWEST / (len(items) - unseen))
        most = max(200, int(room.tokens * share))
        found.append(_cut_down(item, most, measure) if _is_giant(item, most) else item)
    return found


def _unseen(items: Sequence[Item]) -> int:
    """Where the results at the end begin, which no answer follows yet."""
    at = len(items)
    while at and items[at - 1].entry.role is Role.TOOL:
        at -= 1
    return at


def _is_giant(item: Item, most: int) -> bool:
    return item.entry.role is Role.TOOL and item.tokens > most


def _cut_down(item: Item, most: int, measure: Measure) -> Item:
    """Halve what is shown until it fits; the text's own density decides how much that is."""
    characters = 4 * most
    while True:
        smaller = _shortened(item, characters, measure)
        if smaller.tokens <= most or characters <= SHORT:
            return smaller
        characters //= 2


def _shortened(item: Item, characters: int, measure: Measure) -> Item:
    """The item with every result of at most so many characters, and images as handles."""
    entry = item.entry
    read = handle(entry.messages) if entry.messages else "recall"
    parts = tuple(_short_part(part, characters, read) for part in entry.parts)
    return sized(entry._replace(parts=parts), item.section, measure)


def _short_part(part: Part, characters: int, read: str) -> Part:
    if not isinstance(part, ToolResult):
        return part
    text = result_text(part)
    characters = characters if part.shown is None else min(characters, part.shown)
    if isinstance(part.content, tuple):
        text = "\n".join([text, *(_image_handle(piece, read) for piece in part.content)]).strip()
    return ToolResult(part.call_id, both_ends(text, characters, read), part.name, part.is_error)


def _image_handle(piece: Part, read: str) -> str:
    match piece:
        case Image():
            size = f" {piece.width}x{piece.height}" if piece.width and piece.height else ""
            return f"[{piece.media_type}{size}, not shown here; {read}]"
        case File():
            return f"[file {piece.name or piece.media_type}, not shown here; {read}]"
        case _:
            return ""


def both_ends(text: str, characters: int, read: str) -> str:
    """The beginning and the end of a text, and how to read what lies between."""
    if len(text) <= characters:
        return text
    note = f"\n[... {len(text):,} characters in all; {read} reads them ...]\n"
    left = max(0, characters - len(note))
    head = left * 2 // 3
    return text[:head] + note + (text[len(text) - (left - head) :] if left > head else "")


def fitted(
    items: Sequence[Item], room: Room, turn: int | None, measure: Measure, digest: Digest
) -> list[Item]:
    """The items with the turn in flight shortened as far as the room asks for it.

    They may still be too many: what lies before the turn in flight is a compaction's to shorten.
    """
    at = _live_at(items, turn)
    before, live = list(items[:at]), items[at:]
    fixed = Room(sum(item.tokens for item in before), sum(item.bytes for item in before))
    walk = _Walk(room, fixed, measure, digest)
    for item in live:
        walk.take(item)
    return before + walk.shown()


def _live_at(items: Sequence[Item], turn: int | None) -> int:
    """Where the turn in flight begins: at its first message, or at the oldest request that nobody
    has answered."""
    shown = (item for item in items if item.section in ("kept", "tail"))
    messages = [message for item in shown for message in item.entry.messages]
    if turn is not None:
        live = [message for message in messages if message.turn == turn][:1]
    else:
        live = live_requests(messages)
    if not live:
        return len(items)
    first = live[0].seq
    return next(
        (at for at, item in enumerate(items) if first in {m.seq for m in item.entry.messages}),
        len(items),
    )


class _Walk:
    """The turn in flight, message by message: what of it is shown at each point."""

    def __init__(self, room: Room, fixed: Room, measure: Measure, digest: Digest) -> None:
        self._room, self._measure, self._digest = room, measure, digest
        self._items: list[Item] = []
        self._gone: list[Message] = []
        self._note: Item | None = None
        self._fixed, self._tokens, self._bytes = fixed, fixed.tokens, fixed.bytes
        rest = Room(room.tokens - fixed.tokens, room.bytes - fixed.bytes).part(REST)
        self._goal = Room(fixed.tokens + rest.tokens, fixed.bytes + rest.bytes)

    def take(self, item: Item) -> None:
        self._items.append(item)
        self._add(item, 1)
        if not self._room.holds(self._tokens, self._bytes):
            self._stub()
        if not self._room.holds(self._tokens, self._bytes):
            self._elide()

    def shown(self) -> list[Item]:
        """The digest of what is left out stands before the live request: nothing that a
        compaction or this made comes after the words of a person."""
        return [*([self._note] if self._note else []), *self._items]

    def _add(self, item: Item, sign: int) -> None:
        self._tokens += sign * item.tokens
        self._bytes += sign * item.bytes

    def _swap(self, at: int, smaller: Item) -> None:
        self._add(self._items[at], -1)
        self._items[at] = smaller
        self._add(smaller, 1)

    def _stub(self) -> None:
        """Outputs become short from the oldest on; the newest last, if nothing else helps."""
        for at, item in enumerate(self._items):
            if self._goal.holds(self._tokens, self._bytes):
                return
            if item.entry.role is Role.TOOL:
                smaller = self._smaller(at, item)
                if smaller.tokens < item.tokens or smaller.bytes < item.bytes:
                    self._swap(at, smaller)

    def _smaller(self, at: int, item: Item) -> Item:
        """Of the newest as much as there is room for: the model has not seen it yet."""
        if at < len(self._items) - 1:
            return _shortened(item, SHORT, self._measure)
        left = self._room.tokens - (self._tokens - item.tokens)
        if item.tokens <= left and self._room.holds(self._tokens, self._bytes):
            return item
        return _cut_down(item, max(left, 0), self._measure)

    def _elide(self) -> None:
        """Steps go from the oldest on, calls and results together; words of a person stay, and so
        does the step that is being made."""
        steps = _steps(self._items)
        kept: list[Item] = []
        gone_any = False
        for n, step in enumerate(steps):
            removable = step[0].entry.role is not Role.USER and n < len(steps) - 1
            if removable and not self._goal.holds(self._tokens, self._bytes):
                gone_any = True
                for item in step:
                    self._add(item, -1)
                    self._gone.extend(item.entry.messages)
            else:
                kept.extend(step)
        if gone_any:
            self._items = kept
            self._renote()

    def _renote(self) -> None:
        if self._note is not None:
            self._add(self._note, -1)
        room = max(60, (self._goal.tokens - self._fixed.tokens) // 4)
        text = self._digest(self._gone, room)
        self._note = sized(Entry(Role.USER, (Text(text),)), "ledger", self._measure)
        self._add(self._note, 1)


def _steps(items: Sequence[Item]) -> list[list[Item]]:
    """A message of the assistant with the results behind it; any other message alone."""
    steps: list[list[Item]] = []
    for item in items:
        if item.entry.role is Role.TOOL and steps and steps[-1][0].entry.role is Role.ASSISTANT:
            steps[-1].append(item)
        else:
            steps.append([item])
    return steps


def largest(items: Sequence[Item]) -> Item | None:
    """The item that takes most tokens."""
    return max(items, key=lambda item: item.tokens, default=None)


def without_images(parts: Parts, read: str) -> Parts:
    """The parts, their images and files as handles."""
    return tuple(_without_images(part, read) for part in parts)


def _without_images(part: Part, read: str) -> Part:
    match part:
        case Image() | File():
            return Text(_image_handle(part, read))
        case ToolResult(content=tuple(pieces)):
            shown = tuple(
                Text(_image_handle(piece, read)) if isinstance(piece, Image | File) else piece
                for piece in pieces
            )
            return ToolResult(part.call_id, shown, part.name, part.is_error)
        case _:
            return part
