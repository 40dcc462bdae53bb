"""goose's sessions: a file of lines for each in older versions, all in one database since 2025."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clew.domain.conversations import Workspace
from clew.domain.turns import Usage
from clew.importers.decode import decode
from clew.importers.fields import ident, json_of, listed, mapping, meta, moment, number, text, whole
from clew.importers.foreign import Foreign, loose
from clew.importers.format import Format
from clew.importers.formats.goose_messages import Message, Telling, visibility
from clew.importers.probe import Probe
from clew.importers.records import ROOT, Chat, Damaged, Event, Skipped, Spent, Used
from clew.importers.source import Source
from clew.importers.tree import Node, placed

_SESSION = (
    "id",
    "name",
    "description",
    "user_set_name",
    "session_type",
    "working_dir",
    "created_at",
    "schedule_id",
    "provider_name",
    "model_config_json",
    "parent_session_id",
)
_OTHERS = ("thread_messages",)
"""Tables of messages that are not imported."""


def matches(probe: Probe) -> bool:
    """Tables of sessions and messages with columns that goose has, or a header line before
    messages."""
    if probe.tables:
        sessions, messages = probe.tables.get("sessions", ()), probe.tables.get("messages", ())
        return "working_dir" in sessions and "content_json" in messages
    if not probe.records:
        return False
    first = probe.records[0].keys()
    return "working_dir" in first and bool({"description", "message_count", "name"} & first)


def read(source: Source) -> Iterator[Event]:
    """A file of lines, or a database."""
    if not source.head(16).startswith(b"SQLite format 3\0"):
        yield from _Lines(source).events()
        return
    with source.database() as database:
        yield from _sessions(database)


# ---------------------------------------------------------------------- lines


class _Lines:
    """A session's file: its header, then its messages."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._beside: list[Event] = []
        """What else the lines say, until it is told."""

    def events(self) -> Iterator[Event]:
        header = self._header()
        chat = ident(header.get("id")) or self._source.stem
        yield Chat(
            id=chat,
            title=text(header.get("name")) or text(header.get("description")) or None,
            created_at=moment(header.get("created_at")),
            workspace=Workspace(cwd=text(header.get("working_dir")) or None),
            automation=bool(header.get("schedule_id")),
            meta=meta(schedule=text(header.get("schedule_id"))),
        )
        for event in Telling(chat, None).events(self._messages()):
            yield from self._told()
            yield event
        yield from self._told()

    def _told(self) -> list[Event]:
        beside, self._beside = self._beside, []
        return beside

    def _header(self) -> dict[str, Any]:
        try:
            first = next(self._source.lines(), None)
            return {} if first is None or isinstance(first, Damaged) else _object(first.data)
        except ValueError:
            return {}

    def _messages(self) -> Iterator[Message]:
        for line in self._source.lines():
            if isinstance(line, Damaged):
                self._beside.append(line)
                continue
            try:
                value = _object(line.data)
            except ValueError as error:
                self._beside.append(Damaged(f"line {line.number}", str(error)))
                continue
            if "role" in value:
                yield Message.of(value, line.data)
            elif "working_dir" not in value:
                self._beside.append(Skipped("unknown record"))


def _object(data: bytes) -> dict[str, Any]:
    return mapping(decode(data))


# ---------------------------------------------------------------------- database


def _sessions(database: Foreign) -> Iterator[Event]:
    """All sessions, those that began others first."""
    known = database.columns("sessions")
    picked = [name if name in known else "NULL" for name in _SESSION]
    sessions: dict[str, dict[str, str]] = {}
    sql = f"SELECT {', '.join(picked)} FROM sessions ORDER BY id"  # noqa: S608
    for row in database.rows(sql):
        values = zip(_SESSION, map(loose, row), strict=True)
        found = {name: value for name, value in values if value}
        if ident(found.get("id")) is None:
            yield Damaged("a session", "its id is empty or too long")
        else:
            sessions[found["id"]] = found
    parents = {id: Node(found.get("parent_session_id"), True) for id, found in sessions.items()}
    for place in placed(parents, None):
        yield from _session(database, sessions[place.id], place.parent)
    yield from _counted(database)


def _session(database: Foreign, found: dict[str, str], parent: str) -> Iterator[Event]:
    id = found["id"]
    model = text(mapping(json_of(found.get("model_config_json"))).get("model_name")) or None
    kind = found.get("session_type", "user")
    yield Chat(
        id=id,
        title=found.get("name") or found.get("description"),
        title_origin="user" if found.get("user_set_name") == "1" else "llm",
        created_at=moment(found.get("created_at")),
        workspace=Workspace(cwd=found.get("working_dir")),
        model=model,
        origin=None if parent == ROOT else parent,
        automation=kind == "scheduled" or "schedule_id" in found,
        meta=meta(
            kind=kind, provider=found.get("provider_name"), schedule=found.get("schedule_id")
        ),
    )
    damaged: list[Event] = []
    for event in Telling(id, model).events(_messages(database, id, damaged)):
        yield from damaged
        damaged.clear()
        yield event
    yield from damaged
    yield from _used(database, id)


def _messages(database: Foreign, session: str, damaged: list[Event]) -> Iterator[Message]:
    """In the order in which they were written; a compaction writes them all again."""
    known = database.columns("messages")
    id, about = (name if name in known else "NULL" for name in ("message_id", "metadata_json"))
    sql = (
        f"SELECT id, {id}, role, content_json, CAST(created_timestamp AS INTEGER), {about} "  # noqa: S608
        "FROM messages WHERE session_id = ? ORDER BY id"
    )
    for number_, message_id, role, given, at, metadata in database.rows(sql, session):
        try:
            value = decode(loose(given) or "[]")
        except ValueError as error:
            damaged.append(Damaged(f"message {number_}", str(error)))
            continue
        for_person, for_model = visibility(mapping(json_of(loose(metadata))))
        yield Message(
            id=ident(loose(message_id)) or f"#{number_}",
            role=loose(role) or "",
            content=listed(value),
            at=moment(at),
            for_person=for_person,
            for_model=for_model,
        )


def _used(database: Foreign, session: str) -> Iterator[Event]:
    """Calls of models, of versions that write them down."""
    if not database.columns("usage_ledger"):
        return
    sql = (
        "SELECT id, CAST(created_timestamp AS INTEGER), model, input_tokens, "
        "output_tokens, cache_read_tokens, CAST(cost AS REAL) FROM usage_ledger "
        "WHERE session_id = ? ORDER BY id"
    )
    for id, at, model, given, output, cached, cost in database.rows(sql, session):
        usage = Usage(input=whole(given) or 0, output=whole(output) or 0, cached=whole(cached) or 0)
        if usage != Usage():
            spent = Spent(model=loose(model) or "unknown", usage=usage, cost=number(cost))
            yield Used(chat=session, group=f"ledger{id}", spent=spent, at=moment(at))


def _counted(database: Foreign) -> Iterator[Event]:
    for table in _OTHERS:
        if database.columns(table):
            sql = f"SELECT count(*) FROM {table}"  # noqa: S608
            if count := next(database.rows(sql))[0]:
                yield Skipped(table, count)


FORMAT = Format(
    name="goose",
    label="goose",
    matches=matches,
    read=read,
    growth="branch",
    places=(
        ".local/share/goose/sessions/sessions.db",
        ".local/share/goose/sessions/*.jsonl",
        "Library/Application Support/Block.goose/sessions/sessions.db",
    ),
)
