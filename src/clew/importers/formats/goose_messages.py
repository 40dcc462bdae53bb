"""goose's messages in their order, and its compactions.

A compaction keeps the old messages, no longer visible to the model, and puts behind them what
only the model sees: a summary in the user's name, an assistant's note on how to go on, and often a
fresh copy of what the person said last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import Any, NamedTuple

from clew.domain.compactions import Inline
from clew.domain.messages import Role
from clew.domain.parts import Parts, Text
from clew.importers.fields import ident, mapping, moment, text
from clew.importers.formats.goose_content import content
from clew.importers.records import Compacted, Event, Kept, Record, Skipped

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
_NOTE = "The previous message"
"""How the note behind a summary begins, in all versions."""


class Message(NamedTuple):
    """A message as goose has it."""

    id: str | None
    role: str
    content: Any
    at: int | None
    for_person: bool
    for_model: bool
    line: bytes = b""
    """Of a message without id: its bytes in the source."""

    @classmethod
    def of(cls, value: dict[str, Any], line: bytes) -> Message:
        """A JSON object of a file of lines."""
        return cls(
            id=ident(value.get("id")),
            role=text(value.get("role")) or "",
            content=value.get("content"),
            at=moment(value.get("created")),
            line=line,
            for_person=_shown(value.get("metadata"), "userVisible"),
            for_model=_shown(value.get("metadata"), "agentVisible"),
        )


def _shown(about: object, to: str) -> bool:
    return mapping(about).get(to) is not False


def visibility(about: dict[str, Any]) -> tuple[bool, bool]:
    """Whether the person and the model see a message, of its metadata."""
    return _shown(about, "userVisible"), _shown(about, "agentVisible")


class Telling:
    """Tells the messages of one session as events."""

    def __init__(self, chat: str, model: str | None) -> None:
        self._chat, self._model = chat, model
        self._names: dict[str, str] = {}
        self._newest: str | None = None
        self._told = 0
        self._covered = 0
        """Messages told before the last compaction."""
        self._for_model = 0
        """Messages told so far that the model sees."""
        self._asked: tuple[str | None, Parts] | None = None
        """Id and content of what the person said last."""
        self._pending: Compacted | None = None

    def events(self, messages: Iterable[Message]) -> Iterator[Event]:
        for message, following in pairwise(chain(messages, (None,))):
            if message is not None:
                yield from self._one(message, following)
        yield from self._flushed()

    def _one(self, message: Message, following: Message | None) -> Iterator[Event]:
        said = content(message.content, self._model, self._names)
        role = _ROLES.get(message.role)
        if role is None:
            yield Skipped(f"role {message.role}"[:80])
            return
        if self._pending is not None and (item := self._joins(message, role, said.parts)):
            body = (*self._pending.body, item)
            self._pending = _with(self._pending, body)
            if isinstance(item, Kept) or item.role is Role.USER:
                yield Skipped("copy behind a compaction")
                yield from self._flushed()
            return
        yield from self._flushed()
        if not message.for_person and self._is_summary(message, following):
            self._begin(message, said.parts)
            return
        for kind, count in said.skipped.items():
            yield Skipped(kind, count)
        if not message.for_person and (message.for_model or role is Role.ASSISTANT):
            yield Skipped("message for the model only")
        elif not (said.parts or said.results):
            yield Skipped("empty message")
        else:
            yield from self._records(message, role, said.parts, said.results)

    def _is_summary(self, message: Message, following: Message | None) -> bool:
        if message.role != "user" or not self._told:
            return False
        if following is not None and following.role == "assistant" and not following.for_person:
            noted = content(following.content, None, {}).parts
            if noted and isinstance(noted[0], Text) and noted[0].text.startswith(_NOTE):
                return True
        return message.for_model and not self._for_model and self._told > self._covered

    def _begin(self, message: Message, parts: Parts) -> None:
        self._covered = self._told
        self._pending = Compacted(
            chat=self._chat,
            id=message.id or f"compaction{self._told}",
            after=self._newest,
            body=(Inline(role=Role.USER, parts=parts),),
            at=message.at,
        )

    def _joins(self, message: Message, role: Role, parts: Parts) -> Kept | Inline | None:
        """What of a compaction a message is, that stands behind its summary."""
        if not message.for_person and role is Role.ASSISTANT:
            return Inline(role=role, parts=parts)
        if role is Role.USER and self._asked is not None and self._asked[1] == parts:
            id = self._asked[0]
            return Inline(role=role, parts=parts) if id is None else Kept(id, id)
        return None

    def _flushed(self) -> Iterator[Event]:
        if self._pending is not None:
            yield self._pending
            self._pending = None

    def _records(
        self, message: Message, role: Role, parts: Parts, results: Parts
    ) -> Iterator[Record]:
        """Results of tools first, and what else a message of theirs holds as one of its own."""
        ids = [message.id, f"{message.id}/rest" if message.id and results else message.id]
        for id, by, held in zip(ids, (Role.TOOL, role), (results, parts), strict=True):
            if held:
                self._newest = id
                yield Record(
                    chat=self._chat,
                    id=id,
                    content=b"" if id else message.line,
                    role=by,
                    parts=held,
                    created_at=message.at,
                    model=self._model if by is Role.ASSISTANT else None,
                )
        self._told += 1
        self._for_model += message.for_model
        if role is Role.USER and parts and not results:
            self._asked = (message.id, parts)


def _with(compacted: Compacted, body: tuple[Kept | Inline, ...]) -> Compacted:
    return Compacted(
        chat=compacted.chat, id=compacted.id, after=compacted.after, body=body, at=compacted.at
    )
