"""Going through the messages of a conversation that have no ids: each gets the id of its place.

A place depends on what is said, not on how: an answer as the API gave it and the same as a client
sends it back are one. Thinking is no step, since clients leave it out when they send.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from clew.domain.messages import Role
from clew.domain.parts import Part, Reasoning, Text, ToolCall, ToolResult, plain_text
from clew.importers.chain import Place
from clew.importers.fields import canonical
from clew.importers.formats.responses_items import Said
from clew.importers.records import Record


class Walk:
    """A way through one conversation."""

    def __init__(self, chat: str, place: Place | None = None, last: str | None = None) -> None:
        self.chat = chat
        self.place = place or Place()
        self.last = last
        self._thoughts = 0
        self._run: str | None = None

    def begin_answer(self) -> None:
        """What follows is another answer than what came before."""
        self._run = None

    def step(self, message: Said, **more: Any) -> Record:
        """The record of the next message. Messages of the assistant that follow each other are
        taken as one API message."""
        id = self._id(message)
        self._run = (self._run or id) if message.role is Role.ASSISTANT else None
        before, self.last = self.last, id
        return Record(
            chat=self.chat, role=message.role, parts=message.parts, author=message.author, id=id,
            parent=before, api_group=self._run, **more,
        )  # fmt: skip

    def _id(self, message: Said) -> str:
        if _is_thought(message):
            self._thoughts += 1
            return f"{self.place.id}/thought{self._thoughts}"
        self._thoughts = 0
        self.place = self.place.next(_said(message))
        return self.place.id


def places(messages: list[Said]) -> list[Place]:
    """The places of a whole conversation."""
    walk = Walk("")
    found: list[Place] = []
    for message in messages:
        walk.step(message)
        found.append(walk.place)
    return found


def _is_thought(message: Said) -> bool:
    return bool(message.parts) and all(isinstance(part, Reasoning) for part in message.parts)


def _said(message: Said) -> bytes:
    parts = [said for part in message.parts if (said := _part(part)) is not None]
    return canonical([message.role, message.author, parts])


def _part(part: Part) -> Any:
    match part:
        case Reasoning():
            return None
        case Text(text=text):
            return text
        case ToolCall():
            return [part.id, part.name, part.arguments]
        case ToolResult(content=content):
            words = content if isinstance(content, str) else plain_text(content)
            others = () if isinstance(content, str) else content
            return [part.call_id, words, [_part(each) for each in others if _is_other(each)]]
        case _:
            return cast(object, msgspec.to_builtins(part))


def _is_other(part: Part) -> bool:
    return not isinstance(part, Text)
