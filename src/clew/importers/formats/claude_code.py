"""Claude Code: one file of JSON lines for each session, and one for each of its sub-agents."""

from __future__ import annotations

from collections.abc import Iterator

from clew.domain.conversations import TitleOrigin, Workspace
from clew.domain.messages import Role
from clew.domain.parts import Parts, ToolResult
from clew.importers.bridges import Recent
from clew.importers.fields import ID, meta, moment, small, text
from clew.importers.format import Format
from clew.importers.formats.claude_code_blocks import (
    agent_of,
    kind_of,
    model_of,
    parts_of,
    queued_of,
    retracted,
    role_of,
    spent_of,
)
from clew.importers.formats.claude_code_chats import Lineage, Place, Places, Sides
from clew.importers.formats.claude_code_compactions import BOUNDARY, compacted, is_boundary
from clew.importers.formats.claude_code_files import agent_id, session_of, spawned
from clew.importers.formats.claude_code_lines import Entry, Line, entries
from clew.importers.probe import Probe
from clew.importers.records import (
    Chat,
    Damaged,
    Event,
    Record,
    Rewound,
    Skipped,
    Titled,
)
from clew.importers.source import Source

_TITLES = 1000
_KINDS = 200
_SPEAKING = ("user", "assistant")
_OTHERS = frozenset(
    ("summary", "system", "custom-title", "ai-title", "queue-operation", "file-history-snapshot")
)


def matches(probe: Probe) -> bool:
    """Whether records have the envelope of Claude Code; of a first line that is longer than what
    was looked at, its first keys tell."""
    if any(_is_record(record) for record in probe.records):
        return True
    return not probe.records and {"parentUuid", "isSidechain"} <= probe.keys


def _is_record(record: dict[str, object]) -> bool:
    kind = text(record.get("type"))
    if kind in _SPEAKING:
        return "message" in record and "parentUuid" in record and "sessionId" in record
    if kind == "attachment":
        return "parentUuid" in record and "sessionId" in record
    return kind in _OTHERS and not record.keys().isdisjoint(
        ("leafUuid", "sessionId", "isSnapshotUpdate")
    )


def read(source: Source) -> Iterator[Event]:
    """All a session file says."""
    return _Reader(source).run()


class _Reader:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._session = session_of(source)
        self._agent = agent_id(source)
        self._main = ""
        self._lineage = Lineage()
        self._sides = Sides()
        self._places = Places()
        self._seen = Recent()
        self._boundary: Line | None = None
        self._leaves: dict[str, str] = {}
        self._titles: list[tuple[str, TitleOrigin]] = []
        self._skipped: dict[str, int] = {}

    def run(self) -> Iterator[Event]:
        for piece in self._source.lines():
            if isinstance(piece, Damaged):
                yield piece
                continue
            for entry in entries(piece):
                if isinstance(entry, Damaged):
                    yield entry
                elif entry.line.type in _SPEAKING:
                    yield from self._speaking(entry)
                else:
                    yield from self._other(entry)
        yield from self._end()

    def _end(self) -> Iterator[Event]:
        """What is still open: its other half may come when the file grows."""
        if self._boundary is not None:
            self._skip(BOUNDARY)
        self._skip("summary", len(self._leaves))
        for _, origin in self._titles:
            self._skip("custom-title" if origin == "user" else "ai-title")
        yield from (Skipped(kind, count) for kind, count in self._skipped.items())

    def _skip(self, kind: str, count: int = 1) -> None:
        if count and (kind in self._skipped or len(self._skipped) < _KINDS):
            self._skipped[kind] = self._skipped.get(kind, 0) + count
        elif count:
            self._skipped["other"] = self._skipped.get("other", 0) + count

    # ------------------------------------------------------------------ messages

    def _speaking(self, entry: Entry) -> Iterator[Event]:
        line = entry.line
        if line.message is None or line.message.content is None:
            self._lineage.bridge(line.uuid, self._lineage.parent(line))
            yield Damaged(f"line {entry.number}", f"a record of type {line.type} with no message")
            return
        parts = parts_of(entry)
        if line.is_compact_summary:
            yield from self._summarised(line, parts)
        else:
            yield from self._said(entry, role_of(line, parts), parts)

    def _said(self, entry: Entry, role: Role, parts: Parts) -> Iterator[Event]:
        line = entry.line
        place, parent = self._place(line)
        yield from self._opened(place, line, parts)
        if self._boundary is not None and self._is_side(self._boundary) is place.is_side:
            yield from self._compacted(place, self._boundary, ())
        if role is Role.ASSISTANT:
            self._sides.called(parts)
        rest = parts
        if role is Role.TOOL and len(parts) > 1:
            parts = tuple(part for part in rest if type(part) is ToolResult)
            rest = tuple(part for part in rest if type(part) is not ToolResult)
        record = self._record(entry, place, parent, role, parts)
        yield record
        if rest is not parts and rest:
            yield self._also_said(place, record, rest)
        if line.uuid and not place.is_side:
            self._seen.put(line.uuid, None)
            if line.uuid in self._leaves:
                yield Titled(chat=self._main, title=self._leaves.pop(line.uuid))

    def _record(
        self, entry: Entry, place: Place, parent: str | None, role: Role, parts: Parts
    ) -> Record:
        line = entry.line
        message = line.message
        uuid = line.uuid if line.uuid and len(line.uuid) <= ID else None
        place.newest = uuid
        self._lineage.is_message(uuid)
        place.count += 1
        model = None
        if role is Role.ASSISTANT:
            model = model_of(line)
        elif bytes(memoryview(line.tool_use_result)[:1]) in (b"{", b"["):
            self._skip("toolUseResult")
        return Record(
            chat=place.chat,
            id=uuid,
            parent=parent,
            role=role,
            parts=parts,
            content=b"" if uuid else entry.data,
            created_at=moment(line.timestamp),
            api_group=message.id if message and role is Role.ASSISTANT else None,
            spent=spent_of(line) if role is Role.ASSISTANT else None,
            workspace=place.moved(line),
            model=model,
            meta=self._facts(line, place, role),
        )

    def _facts(self, line: Line, place: Place, role: Role) -> dict[str, object] | None:
        """What else is kept of a record."""
        facts: dict[str, object] = {}
        if line.request_id and line.request_id != place.request:
            place.request = facts["requestId"] = line.request_id
        if line.version and line.version != place.version:
            place.version = facts["version"] = line.version
        if line.is_meta:
            facts["isMeta"] = True
        if line.is_api_error_message:
            facts["isApiErrorMessage"] = True
        if line.type == "attachment":
            facts["attachment"] = "queued_command"
        if role is Role.TOOL and (agent := agent_of(line)):
            facts["agentId"] = agent
        return small(facts) if facts else None

    def _also_said(self, place: Place, record: Record, parts: Parts) -> Record:
        """What a record of tool results says besides: a message of the user that follows them."""
        more = None
        if record.id is not None:
            more = f"{record.id}/text"
            self._lineage.bridge(record.id, more)
            place.newest = more
        return Record(
            chat=place.chat,
            id=more,
            parent=record.id,
            role=Role.USER,
            parts=parts,
            content=record.content + b"/text",
            created_at=record.created_at,
        )

    # ------------------------------------------------------------------ conversations

    def _place(self, line: Line) -> tuple[Place, str | None]:
        """The conversation of a record, and the message that it follows there."""
        parent = self._lineage.parent(line)
        self._begin(line)
        if not self._is_side(line):
            return self._places.main(self._main), None if self._sides.has(parent) else parent
        chat = self._sides.chat(self._session or self._main, line, parent)
        return self._places.side(chat), parent

    def _is_side(self, line: Line) -> bool:
        """Whether a record is of a sub-agent whose conversation stands in the session's file."""
        return line.is_sidechain is True and self._agent is None

    def _begin(self, line: Line) -> None:
        if self._main:
            return
        self._session = self._session or line.session_id
        if self._agent is not None and self._session:
            self._main = f"{self._session}:agent:{self._agent}"
        else:
            self._main = self._session or self._source.id

    def _opened(self, place: Place, line: Line, parts: Parts) -> Iterator[Event]:
        """The conversation, when this is its first record; that which called it comes before."""
        if place.is_open:
            return
        place.is_open = True
        if not place.is_side:
            yield self._own(line)
            for title, origin in self._titles:
                yield Titled(chat=self._main, title=title, origin=origin)
            self._titles.clear()
            return
        yield from self._opened(self._places.main(self._main), line, ())
        yield Chat(
            id=place.chat,
            created_at=moment(line.timestamp),
            origin=self._main,
            call=self._sides.call_of(parts),
            meta=meta(agentId=line.agent_id),
        )

    def _own(self, line: Line) -> Chat:
        """The conversation that the file is."""
        where = Workspace(cwd=line.cwd or None, git_branch=line.git_branch or None)
        about = {"version": line.version, "entrypoint": line.entrypoint}
        at = moment(line.timestamp)
        if self._agent is None:
            return Chat(id=self._main, created_at=at, workspace=where, meta=small(about))
        found = spawned(self._source, self._session, self._agent)
        about |= {"agentId": self._agent, "agentType": found.kind}
        return Chat(
            id=self._main,
            title=found.about,
            created_at=at,
            workspace=where,
            origin=f"{self._session}:agent:{found.above}" if found.above else self._session,
            call=found.call,
            meta=small(about),
        )

    # ------------------------------------------------------------------ compactions

    def _summarised(self, line: Line, parts: Parts) -> Iterator[Event]:
        """A summary, with the boundary before it if there is one."""
        place, parent = self._place(line)
        yield from self._opened(place, line, parts)
        boundary = self._boundary or line
        yield from self._compacted(place, boundary, parts)
        after = self._lineage.kept(boundary.uuid) if boundary is not line else parent
        self._lineage.bridge(line.uuid, after)

    def _compacted(self, place: Place, boundary: Line, summary: Parts) -> Iterator[Event]:
        """The compaction itself. One before which nothing was said compacts nothing."""
        self._boundary = None
        found = compacted(place.chat, boundary, summary, self._lineage) if place.count else None
        if found is None:
            self._skip(BOUNDARY)
        else:
            yield found

    # ------------------------------------------------------------------ other records

    def _other(self, entry: Entry) -> Iterator[Event]:
        line = entry.line
        match line.type:
            case "summary" if line.summary and line.leaf_uuid:
                yield from self._summary(line.leaf_uuid, line.summary)
            case "custom-title" if line.custom_title:
                yield from self._titled(line.custom_title, "user")
            case "ai-title" if line.ai_title:
                yield from self._titled(line.ai_title, "llm")
            case "attachment" if parts := queued_of(entry):
                yield from self._said(entry, Role.USER, parts)
            case _:
                self._lineage.bridge(line.uuid, self._lineage.parent(line))
                yield from self._system(entry)

    def _system(self, entry: Entry) -> Iterator[Event]:
        line = entry.line
        if is_boundary(line):
            if self._boundary is not None:
                self._skip(BOUNDARY)
            self._boundary = line
            return
        taken = retracted(line)
        if taken and (place := self._places.ending_with(taken[-1])) is not None:
            place.newest = None
            yield Rewound(chat=place.chat, first=taken[0])
            return
        self._skip(kind_of(entry))

    def _summary(self, leaf: str, title: str) -> Iterator[Event]:
        """A title of the conversation that ends with `leaf`, which may be that of another file."""
        if leaf in self._seen:
            yield Titled(chat=self._main, title=title)
        elif len(self._leaves) < _TITLES:
            self._leaves[leaf] = title
        else:
            self._skip("summary")

    def _titled(self, title: str, origin: TitleOrigin) -> Iterator[Event]:
        if self._main:
            yield Titled(chat=self._main, title=title, origin=origin)
        elif len(self._titles) < _TITLES:
            self._titles.append((title, origin))


FORMAT = Format(
    name="claude-code",
    label="Claude Code",
    matches=matches,
    read=read,
    growth="cut",
    universal=True,
    follows=True,
    places=(".claude/projects/**/*.jsonl",),
)
