"""Reading messages back exactly: what a compaction shortened is still in the log.

An answer is bounded. What does not fit is named by `next`, so that everything can be read, a long
message in pieces. What a cut hides stays hidden.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from clew.clock import SECOND, Micros
from clew.compaction import refs
from clew.compaction.outputs import media
from clew.compaction.refs import Span
from clew.domain.messages import Message, Role
from clew.domain.parts import File, Image, Part, Reasoning, Text, ToolCall, ToolResult, Unknown
from clew.domain.values import escape_text
from clew.errors import InputError, NotFound

if TYPE_CHECKING:
    from clew.store.reader import ConversationReader

LIMIT = 20_000
"""Characters of an answer, by default."""
LEAST = 1_000
"""An answer of fewer would be all headings."""
_PAGE = 50
_HEADING = 120
"""Characters that a heading takes at most, with the blank line before it."""
_ENDING = 80
"""What the words about the rest take, beside its ref."""


class Piece(Struct, frozen=True):
    """`text` of the message `seq`, from the character `start` of `of` on."""

    seq: int
    role: Role
    created_at: Micros
    text: str
    start: int
    of: int


class Recalled(Struct, frozen=True):
    """What was read back.

    `text`: for a model, each piece under a heading, and what could not be shown. `next`: the ref
    of the rest; None at the end.
    """

    text: str
    pieces: tuple[Piece, ...]
    next: str | None = None


def recall(
    conv: ConversationReader, ref: int | str, *, limit: int = LIMIT, reasoning: bool = False
) -> Recalled:
    """The messages that `ref` names, word for word, in at most `limit` characters.

    12, "[@12]", "12-40", "12,15,20-22", "12+18000" (a message from a character on). Thinking is
    left out unless `reasoning`. What is not there, or was withdrawn, is said in the text. Raises
    InputError for a ref that cannot be read and for a limit under 1,000.
    """
    if limit < LEAST:
        raise InputError(f"limit is {limit}; an answer needs at least {LEAST} characters")
    spans = refs.parse(ref)
    page = _Page(limit - len(refs.written(spans)) - _ENDING)
    for number, span in enumerate(spans):
        rest = _read(conv, span, page, reasoning)
        if rest is not None:
            return page.done(refs.written([rest, *spans[number + 1 :]]))
    return page.done(None)


def message_text(message: Message, reasoning: bool = False) -> str:
    """All that a message says, each piece word for word; bytes of images and files are named."""
    said = (_part(part, reasoning) for part in message.parts)
    return "\n".join(text for text in said if text is not None)


def heading(seq: int, role: Role, at: Micros) -> str:
    """What stands above a message: its handle, who said it, and when (UTC)."""
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at / SECOND))
    return f"[@{seq}] {role}, {moment}"


class _Page:
    """An answer being filled."""

    def __init__(self, room: int) -> None:
        self._room = self._left = room
        self._texts: list[str] = []
        self._pieces: list[Piece] = []

    def say(self, text: str) -> bool:
        """Add a line; False when there is no room for it."""
        if len(text) + 2 > self._left:
            return False
        self._texts.append(text)
        self._left -= len(text) + 2
        return True

    def take(self, message: Message, text: str, start: int) -> int | None:
        """Add the text of a message from `start` on; gives the place from which it did not fit.

        One that an empty answer could hold is not cut.
        """
        room, rest = self._left - _HEADING, len(text) - start
        if room < 1 or room < rest <= self._room - _HEADING:
            return start
        end = min(len(text), start + room)
        part = text[start:end]
        piece = Piece(message.seq, message.role, message.created_at, part, start, len(text))
        self._pieces.append(piece)
        self._texts.append(f"{_heading(piece)}\n{part}")
        self._left -= len(part) + _HEADING
        return None if end == len(text) else end

    def done(self, following: str | None) -> Recalled:
        if following is not None:
            self._texts.append(f"[more: recall({following})]")
        return Recalled("\n\n".join(self._texts), tuple(self._pieces), following)


def _read(conv: ConversationReader, span: Span, page: _Page, reasoning: bool) -> Span | None:
    """Put a span on the page; gives what did not fit."""
    at = span.first
    for place, message in _shown(conv, span):
        if place > at and not page.say(_withdrawn(at, place - 1)):
            return Span(at, span.last)
        text = message_text(message, reasoning)
        start = min(span.start, len(text)) if place == span.first else 0
        rest = page.take(message, text, start)
        if rest is not None:
            return Span(place, span.last, rest)
        at = place + 1
    if at > span.last or (at > span.first and span.open):
        return None
    if span.first == span.last:
        return _read_one(conv, span, page, reasoning)
    return None if page.say(_nothing(conv, at, span.last)) else Span(at, span.last)


def _shown(conv: ConversationReader, span: Span) -> Iterator[tuple[int, Message]]:
    """The visible messages of a span, each with the place where it stands."""
    cursor: str | None = None
    while True:
        found = conv.log(limit=_PAGE, cursor=cursor, first=span.first, last=span.last)
        for message in found.items:
            yield _place(conv, message), message
        cursor = found.next
        if cursor is None:
            return


def _place(conv: ConversationReader, message: Message) -> int:
    """Its seq, or that of the first message of those that it replaces."""
    while message.replaces is not None:
        message = conv.message(message.replaces)
    return message.seq


def _read_one(conv: ConversationReader, span: Span, page: _Page, reasoning: bool) -> Span | None:
    """A message that does not stand at its own seq: withdrawn, replaced, or in another's place."""
    seq = span.first
    try:
        place = _place(conv, conv.message(seq))
    except NotFound:
        return None if page.say(_nothing(conv, seq, seq)) else span
    there = next((message for _, message in _shown(conv, Span(place, place))), None)
    if place != seq and there is not None and there.seq == seq:
        return _read(conv, Span(place, place, span.start), page, reasoning)
    by = f"; [@{there.seq}] stands in its place" if there is not None else ""
    return None if page.say(f"{_withdrawn(seq, seq)}{by}") else span


def _nothing(conv: ConversationReader, first: int, last: int) -> str:
    """What to say of seqs behind the newest visible message."""
    newest = conv.log(limit=1, order="newest").items
    known = f"the newest message is [@{_place(conv, newest[0])}]" if newest else "there is none"
    asked = f"message {first}" if first == last else f"messages {first}-{last}"
    return f"[no {asked}: {known}]"


def _withdrawn(first: int, last: int) -> str:
    if first == last:
        return f"[message {first} was withdrawn]"
    return f"[messages {first}-{last} were withdrawn]"


def _heading(piece: Piece) -> str:
    said = f"{heading(piece.seq, piece.role, piece.created_at)}, {piece.of:,} characters"
    if len(piece.text) == piece.of:
        return f"{said}:"
    return f"{said}, of which {piece.start:,} to {piece.start + len(piece.text):,}:"


def _part(part: Part, reasoning: bool) -> str | None:
    match part:
        case Text(text=text):
            return text
        case Reasoning(text=text):
            return f"(thinking) {text}" if reasoning and text else None
        case ToolCall():
            return f"(call {part.id}) {part.name} {part.arguments}"
        case ToolResult():
            name = f" of {part.name}" if part.name else ""
            error = ", an error" if part.is_error else ""
            return f"(result {part.call_id}{name}{error})\n{_content(part)}"
        case Image() | File():
            return f"({media(part)})"
        case Unknown(value=value):
            return escape_text(value)


def _content(result: ToolResult) -> str:
    if isinstance(result.content, str):
        return result.content
    return "\n".join(_part(part, True) or "" for part in result.content)
