"""pi, the coding agent: one file of JSON lines for each session, a tree since its version 2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from clew.domain.compactions import Inline
from clew.domain.conversations import Workspace
from clew.domain.messages import Role
from clew.domain.parts import Parts, Text
from clew.importers.bridges import Bridges
from clew.importers.decode import decode
from clew.importers.fields import ident, mapping, meta, moment, small, text, whole
from clew.importers.format import Format
from clew.importers.formats.pi_content import facts, said, spent
from clew.importers.formats.pi_ids import Ids
from clew.importers.probe import Probe
from clew.importers.records import (
    ROOT,
    Chat,
    Compacted,
    Damaged,
    Event,
    Kept,
    Record,
    Skipped,
    Titled,
)
from clew.importers.source import Piece, Source

Entry = dict[str, Any]

_ROLES = frozenset(("user", "assistant", "toolResult"))
_KINDS = 200
_KIND = 60


def matches(probe: Probe) -> bool:
    """Whether there is the header of a session, or a message in pi's envelope."""
    return any(_is_header(record) or _is_message(record) for record in probe.records)


def _is_header(record: Entry) -> bool:
    return record.get("type") == "session" and {"id", "timestamp", "cwd"} <= record.keys()


def _is_message(record: Entry) -> bool:
    role = text(mapping(record.get("message")).get("role"))
    return record.get("type") == "message" and "timestamp" in record and role in _ROLES


def read(source: Source) -> Iterator[Event]:
    """All a session file says."""
    return _Reader(source).run()


class _Reader:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._chat = ""
        self._ids = Ids({})
        self._bridges = Bridges()
        self._first: str | None = None
        self._newest: str | None = None
        self._provider: object = None
        self._skipped: dict[str, int] = {}

    def run(self) -> Iterator[Event]:
        for piece in self._source.lines():
            if isinstance(piece, Damaged):
                yield piece
                continue
            entry = _entry(piece)
            if isinstance(entry, Damaged):
                yield entry
            elif not self._chat:
                yield from self._begin(entry, piece.data)
            else:
                yield from self._continue(entry, piece.data)
        yield from (Skipped(kind, count) for kind, count in self._skipped.items())

    def _skip(self, kind: str) -> None:
        known = kind in self._skipped or len(self._skipped) < _KINDS
        kind = kind if known else "other"
        self._skipped[kind] = self._skipped.get(kind, 0) + 1

    def _begin(self, entry: Entry, data: bytes) -> Iterator[Event]:
        """The conversation, of the header that comes first (or of a file that lost it)."""
        header = entry if entry.get("type") == "session" else {}
        self._chat = ident(header.get("id")) or self._source.id
        self._ids = Ids(header)
        self._provider = header.get("provider")
        forked = text(header.get("parentSession")) or text(header.get("branchedFrom"))
        yield Chat(
            id=self._chat,
            created_at=moment(header.get("timestamp")),
            workspace=Workspace(cwd=text(header.get("cwd"))),
            model=ident(header.get("modelId")),
            meta=meta(
                version=whole(header.get("version")),
                provider=text(self._provider),
                thinkingLevel=text(header.get("thinkingLevel")),
                parentSession=forked.replace("\\", "/").rpartition("/")[2] if forked else None,
            ),
        )
        if not header:
            yield from self._continue(entry, data)

    def _continue(self, entry: Entry, data: bytes) -> Iterator[Event]:
        kind = entry.get("type")
        if kind == "session":
            self._skip("session")
            return
        id = self._ids.name(entry)
        message = mapping(entry.get("message"))
        match kind:
            case "message" if message:
                yield from self._message(entry, message, id, data)
            case "custom_message":
                fields = {**entry, "role": "custom"}
                yield from self._message(entry, fields, id, data)
            case "branch_summary" if summary := text(entry.get("summary")):
                parts = (Text(f"Summary of the branch that was left here:\n\n{summary}"),)
                about = {"branchSummary": True, "fromId": entry.get("fromId")}
                yield self._record(entry, id, data, Role.USER, parts, about)
            case "compaction" if id is not None and self._first is not None:
                yield self._compacted(entry, id)
            case "session_info" if title := text(entry.get("name")):
                self._pass(entry, id)
                yield Titled(chat=self._chat, title=title, origin="user")
            case _:
                self._skip(str(kind)[:_KIND] if isinstance(kind, str) else "no type")
                self._pass(entry, id)

    def _pass(self, entry: Entry, id: str | None) -> None:
        """An entry that is no message: what follows it follows what it followed."""
        self._bridges.bridge(id, self._bridges.kept(self._ids.named(entry.get("parentId"))))

    def _message(
        self, entry: Entry, message: Entry, id: str | None, data: bytes
    ) -> Iterator[Event]:
        found = said(message)
        if found is None:
            role = message.get("role")
            self._skip(f"message/{role}"[:_KIND] if isinstance(role, str) else "message")
            self._pass(entry, id)
            return
        if message.get("details") is not None:
            self._skip("details")
        about = facts(message)
        if (provider := message.get("provider")) and provider != self._provider:
            self._provider = about["provider"] = provider
        yield self._record(entry, id, data, *found, about)

    def _record(
        self, entry: Entry, id: str | None, data: bytes, role: Role, parts: Parts, about: Entry
    ) -> Record:
        message = mapping(entry.get("message"))
        parent = self._parent(entry)
        self._first = self._first or id or ROOT
        self._newest = id
        self._bridges.is_message(id)
        of_model = role is Role.ASSISTANT
        return Record(
            chat=self._chat,
            id=id,
            parent=None if parent == id else parent,
            role=role,
            parts=parts,
            content=b"" if id else data,
            created_at=moment(entry.get("timestamp")) or moment(message.get("timestamp")),
            spent=spent(message) if of_model else None,
            model=ident(message.get("model")) if of_model else None,
            meta=small(about),
        )

    def _parent(self, entry: Entry) -> str | None:
        """The message that an entry follows: in the first version the one before it; one that
        follows none begins anew."""
        if "parentId" not in entry or self._first is None:
            return None
        named = self._ids.named(entry["parentId"])
        if named is None and entry["parentId"] is not None:
            return None
        return self._bridges.kept(named) or ROOT

    def _compacted(self, entry: Entry, id: str) -> Compacted:
        """The summary, and what was kept behind it, from one entry to the end."""
        last = self._newest
        if "parentId" in entry:
            last = self._bridges.kept(self._ids.named(entry["parentId"]))
        first = self._ids.named(entry.get("firstKeptEntryId"))
        first = first or self._ids.at(entry.get("firstKeptEntryIndex"))
        self._bridges.bridge(id, last)
        summary = text(entry.get("summary"))
        body: list[Inline | Kept] = [Inline(Role.USER, (Text(summary),))] if summary else []
        begin = self._bridges.kept(first) or self._first
        if first is not None and last and begin:
            body.append(Kept(begin, last))
        return Compacted(
            chat=self._chat,
            id=id,
            after=last,
            body=tuple(body),
            tokens_before=whole(entry.get("tokensBefore")),
            at=moment(entry.get("timestamp")),
            receipt=small({"details": entry.get("details"), "fromHook": entry.get("fromHook")}),
        )


def _entry(piece: Piece) -> Entry | Damaged:
    try:
        value = decode(piece.data)
    except ValueError as error:
        return Damaged(f"line {piece.number}", str(error))
    if not isinstance(value, dict):
        return Damaged(f"line {piece.number}", "not an object")
    return cast(Entry, value)


FORMAT = Format(
    name="pi",
    label="pi",
    matches=matches,
    read=read,
    growth="cut",
    universal=True,
    follows=True,
    places=(".pi/agent/sessions/**/*.jsonl",),
)
