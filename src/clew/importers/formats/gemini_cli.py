"""Gemini CLI's sessions: one JSON document, or the lines that replaced it; and saved histories.

A session file is a log of a list of messages: a message that is written again under its id takes
the place of the earlier one, `$rewindTo` takes messages back, and `$set` with `messages` puts
another list in place of all (compression, or tool outputs shortened for the model).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

from clew.domain.compactions import Inline
from clew.domain.messages import Role
from clew.domain.turns import Usage
from clew.errors import TooLarge
from clew.importers.decode import decode
from clew.importers.fields import (
    canonical,
    ident,
    listed,
    mapping,
    meta,
    moment,
    text,
    whole,
)
from clew.importers.format import Format
from clew.importers.formats.gemini_content import Content
from clew.importers.probe import HEAD, Probe
from clew.importers.records import (
    Chat,
    Compacted,
    Damaged,
    Event,
    Kept,
    Record,
    Rewound,
    Skipped,
    Spent,
)
from clew.importers.source import DOCUMENT, Source

T = TypeVar("T")
_ASIDE = ("info", "error", "warning")
"""Types of records that the tool said to the person; they are no part of the conversation."""
_NO_ID = "\0"
"""First character of the key of a message without id."""


def matches(probe: Probe) -> bool:
    """A header with the session's id and the hash of its project, or turns of Gemini's API."""
    first = probe.records[0].keys() if probe.records else frozenset[str]()
    session = {"sessionId", "projectHash"}
    return (
        session <= probe.keys
        or session <= first
        or {"role", "parts"} <= probe.item_keys
        or {"history", "authType"} <= probe.keys
    )


def read(source: Source) -> Iterator[Event]:
    """The whole session is held: what a record says is known when the file has ended."""
    if source.size > DOCUMENT:
        raise TooLarge(f"{source.id} (bytes)", source.size, DOCUMENT)
    session = _Session()
    if _in_lines(source.head(HEAD).lstrip()):
        yield from _lines(source, session)
    else:
        yield from _document(source, session)
    yield from _Telling(source, session).events()


def _in_lines(start: bytes) -> bool:
    """A document for people to read has no brace at the begin of its second or a later line."""
    if start[:1] != b"{":
        return False
    if b"\n{" in start:
        return True
    try:
        decode(start.partition(b"\n")[0])
    except ValueError:
        return False
    return True


def _lines(source: Source, session: _Session) -> Iterator[Damaged]:
    for line in source.lines():
        if isinstance(line, Damaged):
            yield line
            continue
        try:
            session.take(mapping(decode(line.data)))
        except ValueError as error:
            yield Damaged(f"line {line.number}", str(error))


def _document(source: Source, session: _Session) -> Iterator[Damaged]:
    try:
        value = decode(source.document())
    except ValueError as error:
        yield Damaged("the file", str(error))
        return
    if turns := listed(value):
        session.take({"history": turns})
    else:
        session.take({"sessionId": None, "projectHash": None, **mapping(value)})


class _Rewind(NamedTuple):
    ids: tuple[str, ...]


class _Checkpoint(NamedTuple):
    """Another list in place of the messages: ids of known ones, and new messages."""

    number: int
    removed: tuple[str, ...]
    items: tuple[str | dict[str, Any], ...]


class _Session:
    """What the lines of a file make. Entries of `order` are messages by their keys, in the order
    in which they first came, and what happened between them."""

    def __init__(self) -> None:
        self.header: dict[str, Any] = {}
        self.messages: dict[str, dict[str, Any]] = {}
        self.order: list[str | _Rewind | _Checkpoint] = []
        self.unknown = 0
        self._alive: dict[str, None] = {}
        self._checkpoints = 0

    def take(self, record: dict[str, Any]) -> None:
        """One line."""
        if isinstance(target := record.get("$rewindTo"), str):
            self._rewind(target)
        elif isinstance(record.get("$set"), dict):
            self._update(mapping(record["$set"]))
        elif isinstance(record.get("history"), list):
            for turn in listed(record["history"]):
                self._add(mapping(turn))
        elif "sessionId" in record and "projectHash" in record:
            self.header.update({k: v for k, v in record.items() if k != "messages" and v})
            for message in listed(record.get("messages")):
                self._add(mapping(message))
        elif "id" in record or "type" in record or "role" in record:
            self._add(record)
        else:
            self.unknown += 1

    def _add(self, message: dict[str, Any]) -> None:
        key = ident(message.get("id")) or f"{_NO_ID}{len(self.order)}"
        if key not in self.messages:
            self.order.append(key)
        self.messages[key] = message
        if not _is_aside(message):
            self._alive[key] = None

    def _rewind(self, target: str) -> None:
        """As the tool does, all when there is no such message."""
        gone: list[str] = []
        for key in reversed(self._alive):
            gone.append(key)
            if key == target:
                break
        self._take_back(gone[::-1])

    def _take_back(self, gone: list[str]) -> None:
        if gone:
            self._alive = _without(self._alive, gone)
            self.order.append(_Rewind(tuple(gone)))

    def _update(self, fields: dict[str, Any]) -> None:
        self.header.update({k: v for k, v in fields.items() if k != "messages" and v})
        if isinstance(fields.get("messages"), list):
            self._checkpoint([mapping(each) for each in listed(fields["messages"])])

    def _checkpoint(self, given: list[dict[str, Any]]) -> None:
        """Messages that are known keep what they said: here they may be shortened. What is left
        out at the end was taken back; what is left out before stands in what is new."""
        items = [id if (id := ident(m.get("id"))) in self.messages else m for m in given if m]
        named = {item for item in items if isinstance(item, str)}
        alive = list(self._alive)
        gone = [key for key in alive if key not in named]
        if gone and gone != alive[-len(gone) :]:
            self._checkpoints += 1
            self.order.append(_Checkpoint(self._checkpoints, tuple(gone), tuple(items)))
            self._alive = _without(self._alive, gone)
            for item in items:
                if isinstance(item, dict) and (id := ident(item.get("id"))):
                    self._alive[id] = None
                    self.messages[id] = item
            return
        self._take_back(gone)
        for item in items:
            if isinstance(item, dict):
                self._add(item)


def _without(kept: dict[str, T], gone: list[str]) -> dict[str, T]:
    """The rest. A dictionary keeps the room of what is taken out of it and is passed over at that
    pace: after much has gone it is made anew."""
    for key in gone:
        kept.pop(key, None)
    return dict(kept.items()) if len(gone) > len(kept) else kept


def _is_aside(message: dict[str, Any]) -> bool:
    return message.get("type") in _ASIDE


class _Telling:
    """Tells a session as events."""

    def __init__(self, source: Source, session: _Session) -> None:
        self._session = session
        self._header = session.header
        self._chat = ident(session.header.get("sessionId")) or source.id
        self._content = Content()
        self._source = source
        self._told: dict[str, tuple[str, str]] = {}
        """First and last record of each message that is one."""
        self._last: dict[str, str] = {}
        """The last record of each message that is one and was not taken back."""
        self._after: str | None = None
        """Where the next record goes, when that is not behind the newest one."""

    def events(self) -> Iterator[Event]:
        if not (self._session.order or self._header):
            return
        yield self._begun()
        for entry in self._session.order:
            match entry:
                case str(key):
                    yield from self._message(key, self._session.messages[key])
                case _Rewind(ids):
                    yield from self._rewound(ids)
                case _Checkpoint():
                    yield from self._compacted(entry)
        if self._session.unknown:
            yield Skipped("unknown record", self._session.unknown)

    def _begun(self) -> Chat:
        header = self._header
        is_agent = header.get("kind") == "subagent"
        folder = self._source.path.parent.name
        return Chat(
            id=self._chat,
            title=text(header.get("summary")) or None,
            created_at=moment(header.get("startTime")),
            origin=folder if is_agent and folder not in ("", "chats", self._chat) else None,
            meta=meta(
                project_hash=text(header.get("projectHash")),
                kind=text(header.get("kind")),
                directories=header.get("directories"),
            ),
        )

    def _message(self, key: str, message: dict[str, Any]) -> Iterator[Event]:
        if _is_aside(message):
            yield Skipped(str(message["type"]))
            return
        role = _role(message)
        if role is None:
            yield Skipped(f"type {text(message.get('type'))}"[:80])
            return
        parts, results = self._content.of(message, key.removeprefix(_NO_ID))
        if not (parts or results):
            yield Skipped("empty message")
            return
        id = None if key.startswith(_NO_ID) else key
        content = b"" if id else canonical(message)
        at = moment(message.get("timestamp"))
        first = last = id
        if parts:
            yield Record(
                chat=self._chat,
                id=id,
                parent=self._after,
                content=content,
                role=role,
                parts=parts,
                created_at=at,
                spent=_spent(message) if role is Role.ASSISTANT else None,
                model=text(message.get("model")) if role is Role.ASSISTANT else None,
            )
        if results:
            last = f"{id}/result" if id and parts else id
            yield Record(
                chat=self._chat,
                id=last,
                parent=None if parts else self._after,
                content=content,
                role=Role.TOOL,
                parts=results,
                created_at=at,
            )
        self._after = None
        if first is not None and last is not None:
            self._told[key] = (first, last)
            self._last[key] = last

    def _rewound(self, ids: tuple[str, ...]) -> Iterator[Rewound]:
        gone = [id for id in ids if id in self._last]
        if gone:
            self._last = _without(self._last, gone)
            self._after = next(reversed(self._last.values()), None)
            yield Rewound(chat=self._chat, first=self._told[gone[0]][0])

    def _compacted(self, entry: _Checkpoint) -> Iterator[Event]:
        body: list[Kept | Inline] = []
        for item in entry.items:
            if isinstance(item, str):
                if item in self._told:
                    body.append(Kept(*self._told[item]))
                continue
            parts, results = self._content.of(item, f"checkpoint{entry.number}")
            role = Role.TOOL if results and not parts else _role(item) or Role.USER
            if parts or results:
                body.append(Inline(role=role, parts=(*parts, *results)))
        yield Compacted(
            chat=self._chat,
            id=f"checkpoint{entry.number}",
            after=next(reversed(self._last.values()), None),
            body=tuple(body),
            receipt={"removed": len(entry.removed)},
        )


def _role(message: dict[str, Any]) -> Role | None:
    match message.get("type", message.get("role")):
        case "user":
            return Role.USER
        case "gemini" | "model" | "assistant":
            return Role.ASSISTANT
        case "system":
            return Role.SYSTEM
        case _:
            return None


def _spent(message: dict[str, Any]) -> Spent | None:
    """Gemini counts cached tokens in its input, and thoughts and tools' prompts apart."""
    tokens = mapping(message.get("tokens"))
    thoughts = whole(tokens.get("thoughts")) or 0
    usage = Usage(
        input=(whole(tokens.get("input")) or 0) + (whole(tokens.get("tool")) or 0),
        output=(whole(tokens.get("output")) or 0) + thoughts,
        cached=whole(tokens.get("cached")) or 0,
        reasoning=thoughts,
    )
    if usage == Usage():
        return None
    return Spent(model=text(message.get("model")) or "unknown", usage=usage)


FORMAT = Format(
    name="gemini-cli",
    label="Gemini CLI",
    matches=matches,
    read=read,
    growth="branch",
    rewrites=True,
    places=(
        ".gemini/tmp/*/chats/session-*.json",
        ".gemini/tmp/*/chats/session-*.jsonl",
        ".gemini/tmp/*/chats/*/*.jsonl",
    ),
)
