"""Sessions of the OpenAI Agents SDK in SQLite: a conversation for each session, an item of the
Responses API in each row.

A row's id is not enough: a new database begins again at 1. So a record's id is the row's and a hash
of what it says. Rows that were taken out (`pop_item`) leave a gap; what comes after it follows the
row before it: a branch there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from clew.domain.messages import Role
from clew.importers.decode import decode
from clew.importers.fields import ident, moment
from clew.importers.foreign import Foreign
from clew.importers.format import Format
from clew.importers.formats.responses_items import about, all_said, kind_of
from clew.importers.probe import Probe
from clew.importers.records import ROOT, Chat, Damaged, Event, Record, Skipped
from clew.importers.source import Source

_SESSIONS = "SELECT session_id, created_at FROM agent_sessions ORDER BY created_at, session_id"
_MESSAGES = (
    "SELECT id, message_data, created_at FROM agent_messages WHERE session_id IS ? ORDER BY id"
)
_LOST = (
    "SELECT count(*) FROM agent_messages AS m WHERE NOT EXISTS"
    " (SELECT 1 FROM agent_sessions AS s WHERE s.session_id = m.session_id)"
)


class _Row(NamedTuple):
    number: object
    data: object
    at: object


def matches(probe: Probe) -> bool:
    """A database with the tables of the SDK."""
    return {"agent_sessions", "agent_messages"} <= probe.tables.keys()


def read(source: Source) -> Iterator[Event]:
    """All sessions of a database."""
    with source.database() as database:
        for name, created in database.rows(_SESSIONS):
            if (id := ident(name)) is not None:
                yield from _session(database, source, id, created)
            else:
                yield Damaged("agent_sessions", "a session without an id")
        lost = next(database.rows(_LOST), (0,))[0]
        if isinstance(lost, int) and lost > 0:
            yield Skipped("agent_messages of no session", lost)


def _session(database: Foreign, source: Source, id: str, created: object) -> Iterator[Event]:
    chat = f"{source.id}#{id}"
    yield Chat(id=chat, created_at=moment(created), meta={"session_id": id[:200]})
    session = _Session(chat)
    for row in database.rows(_MESSAGES, id):
        yield from session.row(_Row(*row))


class _Session:
    def __init__(self, chat: str) -> None:
        self._chat = chat
        self._last = ROOT
        self._run: str | None = None

    def row(self, row: _Row) -> Iterator[Event]:
        """What a row says."""
        data = row.data.encode(errors="replace") if isinstance(row.data, str) else row.data
        try:
            item = decode(data) if isinstance(data, bytes) else None
        except ValueError as error:
            yield Damaged(f"agent_messages row {row.number}", str(error))
            return
        if not isinstance(item, dict) or not isinstance(data, bytes):
            yield Damaged(f"agent_messages row {row.number}", "no JSON object")
            return
        yield from self._item(cast(dict[str, Any], item), row, data)

    def _item(self, item: dict[str, Any], row: _Row, data: bytes) -> Iterator[Event]:
        messages = all_said(item)
        if not messages:
            yield Skipped(kind_of(item)[:100] or "item of no type")
        id = f"{row.number}:{hashlib.blake2b(data, digest_size=8).hexdigest()}"
        for message in messages:
            name = id if message is messages[0] else f"{id}/result"
            self._run = (self._run or name) if message.role is Role.ASSISTANT else None
            before, self._last = self._last, name
            yield Record(
                chat=self._chat, role=message.role, parts=message.parts, author=message.author,
                id=name, parent=before, api_group=self._run, created_at=moment(row.at),
                meta=about(item),
            )  # fmt: skip


FORMAT = Format(
    name="openai-agents",
    label="OpenAI Agents SDK",
    matches=matches,
    read=read,
    growth="cut",
)
