"""OpenCode's sessions: its storage folder, or the database that replaced it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clew.domain.compactions import Inline
from clew.domain.conversations import Workspace
from clew.domain.messages import Role
from clew.domain.parts import Text
from clew.importers.fields import flag, ident, mapping, meta, moment, text
from clew.importers.format import Format
from clew.importers.formats.opencode_parts import Read, spent
from clew.importers.formats.opencode_store import Folder, Message, Rows
from clew.importers.probe import Probe
from clew.importers.records import (
    ROOT,
    Chat,
    Compacted,
    Damaged,
    Event,
    Kept,
    Record,
    Rewound,
    Skipped,
    Used,
)
from clew.importers.source import Source
from clew.importers.tree import Node, placed

_TABLES = frozenset(("session", "message", "part"))
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
_UNTITLED = ("New session - ", "Child session - ")
_ASKED = Text("What did we do so far?")
"""What OpenCode tells the model before a summary; it keeps no message of it."""


def matches(probe: Probe) -> bool:
    """The folder `storage`, or a database with a table of parts."""
    return probe.entries >= _TABLES or probe.tables.keys() >= _TABLES


def read(source: Source) -> Iterator[Event]:
    """One session at a time."""
    if source.is_folder:
        yield from _sessions(Folder(source))
        return
    with source.database() as database:
        yield from _sessions(Rows(database))


def _sessions(store: Folder | Rows) -> Iterator[Event]:
    """All sessions, those that began others first."""
    sessions: dict[str, dict[str, Any]] = {}
    for session in store.sessions():
        if isinstance(session, Damaged):
            yield session
        elif (id := ident(session.get("id"))) is None:
            yield Damaged("a session", "it has no id")
        else:
            sessions[id] = session
    nodes = {id: Node(ident(each.get("parentID")), True) for id, each in sessions.items()}
    calls: dict[str, str] = {}
    for place in placed(nodes, None):
        origin = None if place.parent == ROOT else place.parent
        telling = _Session(place.id, sessions[place.id], origin, calls)
        yield from telling.events(store)
    for kind, count in store.others().items():
        if count:
            yield Skipped(kind, count)


class _Session:
    """Tells a session. `calls` are the calls that began sessions, of all sessions before."""

    def __init__(
        self, id: str, info: dict[str, Any], origin: str | None, calls: dict[str, str]
    ) -> None:
        self._id, self._info, self._origin, self._calls = id, info, origin, calls
        self._told: dict[str, tuple[str, str]] = {}
        """First and last record of each message that has any."""
        self._order: list[str] = []
        self._newest: str | None = None
        self._compactions: dict[str, dict[str, Any]] = {}
        """Compactions that were asked for, by the messages that ask."""

    def events(self, store: Folder | Rows) -> Iterator[Event]:
        yield self._begun()
        for message in store.messages(self._id):
            if isinstance(message, Damaged):
                yield message
            else:
                yield from self._message(message)
        if self._compactions:
            yield Skipped("part compaction", len(self._compactions))
        yield from self._reverted()

    def _begun(self) -> Chat:
        info = self._info
        title = text(info.get("title")) or ""
        return Chat(
            id=self._id,
            title=None if title.startswith(_UNTITLED) else title or None,
            created_at=moment(mapping(info.get("time")).get("created")),
            workspace=Workspace(cwd=text(info.get("directory")) or None),
            origin=self._origin,
            call=self._calls.get(self._id),
            meta=meta(version=text(info.get("version")), slug=text(info.get("slug"))),
        )

    def _message(self, message: Message) -> Iterator[Event]:
        info = message.info
        id, role = ident(info.get("id")), _ROLES.get(text(info.get("role")) or "")
        if id is None or role is None:
            yield Skipped("message without id" if id is None else "message of another role")
            return
        self._order.append(id)
        model = text(info.get("modelID")) or text(mapping(info.get("model")).get("modelID"))
        found = Read(model).take(message.parts)
        self._calls.update(found.children)
        for kind, count in found.skipped.items():
            yield Skipped(kind, count)
        if found.compaction is not None:
            self._compactions[id] = found.compaction
        if flag(info.get("summary")) and role is Role.ASSISTANT:
            yield from self._compacted(id, info, found, model)
        else:
            yield from self._records(id, role, info, found, model)

    def _records(
        self, id: str, role: Role, info: dict[str, Any], found: Read, model: str | None
    ) -> Iterator[Event]:
        """The message, and after it what the tools that it called gave."""
        error = text(mapping(info.get("error")).get("name"))
        if not (found.parts or found.results):
            if found.compaction is None:
                yield Skipped(error or "message without parts")
            return
        about = meta(
            provider=text(info.get("providerID")),
            agent=text(info.get("agent")),
            error=error,
            finish=text(info.get("finish")),
            synthetic=found.synthetic,
        )
        times = mapping(info.get("time"))
        path = mapping(info.get("path"))
        answer = role is Role.ASSISTANT
        yield Record(
            chat=self._id,
            id=id,
            role=role,
            parts=tuple(found.parts),
            created_at=moment(times.get("created")),
            spent=spent(info, found.steps, model) if answer else None,
            workspace=_workspace(path) if path else None,
            model=model if answer else None,
            meta=about,
        )
        last = id
        if found.results:
            last = f"{id}/result"
            yield Record(
                chat=self._id,
                id=last,
                role=Role.TOOL,
                parts=tuple(found.results),
                created_at=moment(times.get("completed")) or moment(times.get("created")),
            )
        self._told[id] = (id, last)
        self._newest = last

    def _compacted(
        self, id: str, info: dict[str, Any], found: Read, model: str | None
    ) -> Iterator[Event]:
        """A summary. One that failed covers nothing; one without a request is of a version that
        put the summary in place without asking."""
        asked = self._compactions.pop(ident(info.get("parentID")) or "", None)
        cost = spent(info, found.steps, model)
        at = moment(mapping(info.get("time")).get("created"))
        if cost is not None:
            yield Used(chat=self._id, group=id, spent=cost, at=at)
        if not found.parts or info.get("error"):
            yield Skipped("failed compaction")
            return
        body: list[Kept | Inline] = []
        if asked is not None:
            tail = self._told.get(ident(asked.get("tail_start_id")) or "")
            if tail is not None and self._newest is not None:
                body.append(Kept(tail[0], self._newest))
            body.append(Inline(role=Role.USER, parts=(_ASKED,)))
        body.append(Inline(role=Role.ASSISTANT, parts=tuple(found.parts)))
        yield Compacted(
            chat=self._id,
            id=id,
            after=self._newest,
            body=tuple(body),
            at=at,
            receipt=meta(
                auto=flag((asked or {}).get("auto")),
                overflow=flag((asked or {}).get("overflow")),
                model=model,
            ),
        )

    def _reverted(self) -> Iterator[Rewound]:
        """Messages that were taken back and may still be brought again: from one on, or those
        behind one of whose parts some were taken back."""
        revert = mapping(self._info.get("revert"))
        first = ident(revert.get("messageID"))
        if first is None or first not in self._order:
            return
        at = self._order.index(first) + (1 if revert.get("partID") else 0)
        gone = next((id for id in self._order[at:] if id in self._told), None)
        if gone is not None:
            yield Rewound(chat=self._id, first=self._told[gone][0])


def _workspace(path: dict[str, Any]) -> Workspace:
    """A root of "/" says that there is no repository."""
    root = text(path.get("root"))
    return Workspace(cwd=text(path.get("cwd")) or None, git_root=None if root == "/" else root)


FORMAT = Format(
    name="opencode",
    label="OpenCode",
    matches=matches,
    read=read,
    growth="branch",
    rewrites=True,
    places=(".local/share/opencode/storage", ".local/share/opencode/opencode.db"),
)
