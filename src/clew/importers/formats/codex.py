"""Codex rollouts: `~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`.

A line of the history (`response_item`) is one message. Lines have no ids, so a record's id is its
place (see clew.importers.chain): of what the line says, not of when it was written, so that a
forked thread's copies of the first lines have the ids of the originals.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clew.domain.conversations import Workspace
from clew.domain.messages import Role
from clew.domain.parts import Parts, ToolCall, ToolResult
from clew.domain.turns import Usage
from clew.importers.chain import Place
from clew.importers.fields import (
    arguments,
    compact,
    ident,
    mapping,
    meta,
    moment,
    text,
    whole,
)
from clew.importers.format import Format
from clew.importers.formats.codex_past import Past, is_context
from clew.importers.formats.codex_rows import KINDS, OLD_HEAD, Row, is_document, placed, rows
from clew.importers.formats.codex_session import Session
from clew.importers.formats.responses_items import Said, about, answered, kind_of, said
from clew.importers.probe import Probe
from clew.importers.records import (
    ROOT,
    Compacted,
    Damaged,
    Event,
    Record,
    Rewound,
    Skipped,
    Spent,
    Titled,
    Used,
)
from clew.importers.source import Source

_BARE = frozenset(("timestamp", "role", "content", "model", "type"))


def matches(probe: Probe) -> bool:
    """A rollout, the bare items of its first versions, or the session files before them."""
    for record in probe.records[:5]:
        if text(record.get("type")) in KINDS and isinstance(record.get("payload"), dict):
            return True
    if not probe.records:
        return is_document(probe.head)
    first = probe.records[0]
    if first.keys() >= OLD_HEAD and not first.keys() & {"type", "payload", "messages"}:
        return True
    bare = {"timestamp", "role", "content"} <= first.keys() <= _BARE
    return bare or is_document(probe.head)


def read(source: Source) -> Iterator[Event]:
    """A rollout as a stream."""
    thread = _Thread(Session(source))
    for row, place in placed(rows(source)):
        if isinstance(row, Damaged):
            yield row
        else:
            yield from thread.row(row, place)
    yield from thread.session.opened()


class _Thread:
    """What is known at a line of a rollout."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._past = Past()
        self._workspace = Workspace()
        self._model: str | None = None
        self._last: str | None = None
        """The newest record."""
        self._run: str | None = None
        """The first record of the answer that is being read."""
        self._unpaid: str | None = None
        """The first record of the newest answer whose usage was not yet told."""
        self._names: dict[str, int] = {}
        self._totals: dict[str, Any] = {}
        self._asked: dict[str, str] = {}

    def row(self, row: Row, place: Place) -> Iterator[Event]:
        """What a line says."""
        match row.kind:
            case "session_meta":
                yield from self.session.head(row.payload, row.timestamp)
                self._workspace = self.session.workspace
            case "turn_context":
                yield from self._turn(row.payload)
            case "response_item":
                yield from self._item(row, place)
            case "event_msg":
                yield from self._event(row, place)
            case "compacted":
                yield from self._compacted(row, place)
            case "tool_call" | "tool_result":
                yield from self._old_tool(row, place)
            case kind:
                yield Skipped(kind[:100])

    # ------------------------------------------------------------------ messages

    def _item(self, row: Row, place: Place) -> Iterator[Event]:
        message = said(row.payload, self._model)
        if message is None:
            yield Skipped(f"response_item/{kind_of(row.payload)[:100] or 'item of no type'}")
            return
        yield from self.session.opened()
        known = about(row.payload) or {}
        if message.role is Role.USER and is_context(message):
            known["context"] = True
        before = self._last
        yield self._record(row, place.id, message, known)
        self._past.add(place.id, before, row.payload, message)
        if (result := answered(row.payload)) is not None:
            yield self._record(row, f"{place.id}/result", Said(Role.TOOL, (result,)), {})

    def _record(self, row: Row, id: str, message: Said, known: dict[str, Any]) -> Record:
        if message.role is Role.ASSISTANT:
            self._run = self._run or id
            self._unpaid = self._run
        else:
            self._run = None
        before, self._last = self.session.after(self._last), id
        return Record(
            chat=self.session.id, role=message.role, parts=message.parts, id=id, parent=before,
            created_at=moment(row.timestamp) or moment(row.payload.get("timestamp")),
            author=message.author, api_group=self._run, workspace=self._workspace,
            model=text(row.payload.get("model")) or self._model,
            meta=meta(**known),
        )  # fmt: skip

    def _old_tool(self, row: Row, place: Place) -> Iterator[Event]:
        """Calls of the first versions have no ids: a result answers the newest call of its name."""
        yield from self.session.opened()
        name = ident(mapping(row.payload.get("function")).get("name")) or ""
        name = name or ident(row.payload.get("name")) or ""
        parts: Parts
        if row.kind == "tool_call":
            self._asked[name] = place.id
            parts = (ToolCall(place.id, name, arguments(row.payload.get("arguments"))),)
            yield self._record(row, place.id, Said(Role.ASSISTANT, parts), {})
            return
        result = row.payload.get("result", row.payload.get("output"))
        words = result if isinstance(result, str) else compact(result)
        parts = (ToolResult(self._asked.pop(name, ""), words, name or None),)
        yield self._record(row, place.id, Said(Role.TOOL, parts), {})

    # ------------------------------------------------------------------ what else there is

    def _turn(self, payload: dict[str, Any]) -> Iterator[Event]:
        given = mapping(payload.get("turn_context")) or payload
        self._model = text(given.get("model")) or self._model
        cwd = text(given.get("cwd"))
        self._workspace = self.session.at(cwd)
        yield from self.session.model_is(self._model)

    def _event(self, row: Row, place: Place) -> Iterator[Event]:
        payload, kind = row.payload, text(row.payload.get("type")) or "no type"
        if kind == "token_count":
            yield from self._usage(row, place)
            return
        if kind == "thread_name_updated" and (name := text(payload.get("thread_name"))):
            yield from self.session.opened()
            yield Titled(chat=self.session.id, title=name, origin="user")
            return
        if kind == "thread_rolled_back":
            turn = self._past.take_back(whole(payload.get("num_turns")) or 0)
            if turn is not None:
                self._run, self._last = None, turn.before or ROOT
                yield Rewound(chat=self.session.id, first=turn.first)
                return
        yield Skipped(f"event_msg/{kind[:100]}")

    def _usage(self, row: Row, place: Place) -> Iterator[Event]:
        """The same counts are told again whenever limits change; then the totals stay the same. An
        answer does not go on behind them."""
        self._run = None
        info = mapping(row.payload.get("info"))
        totals = mapping(info.get("total_token_usage"))
        last = mapping(info.get("last_token_usage"))
        counts = _usage_of(last) if last else _grown(_usage_of(totals), _usage_of(self._totals))
        if (totals and totals == self._totals) or counts == Usage():
            yield Skipped("event_msg/token_count")
            return
        self._totals = totals
        yield from self.session.opened()
        group = self._unpaid or self._name(place, "usage")
        self._unpaid = None
        if self.session.is_copied:
            yield Skipped("event_msg/token_count")
            return
        spent = Spent(model=self._model or "unknown", usage=counts)
        yield Used(chat=self.session.id, group=group, spent=spent, at=moment(row.timestamp))

    def _compacted(self, row: Row, place: Place) -> Iterator[Event]:
        yield from self.session.opened()
        body, skipped = self._past.body(row.payload, self._model)
        self._run = None
        names = ("window_id", "previous_window_id", "first_window_id", "window_number")
        yield Compacted(
            chat=self.session.id,
            id=self._name(place, "compacted"),
            after=self._last or None,
            body=body,
            at=moment(row.timestamp),
            receipt=meta(**{name: row.payload.get(name) for name in names}),
        )
        yield from skipped

    def _name(self, place: Place, what: str) -> str:
        """A name for what stands after a record: of several the second has a number."""
        name = f"{place.id}/{what}"
        count = self._names.get(name, 0)
        self._names = {name: count + 1}
        return f"{name}{count + 1}" if count else name


def _usage_of(counts: dict[str, Any]) -> Usage:
    """Codex counts cached tokens in the input and thinking in the output, as we do."""
    return Usage(
        input=whole(counts.get("input_tokens")) or 0,
        output=whole(counts.get("output_tokens")) or 0,
        cached=whole(counts.get("cached_input_tokens")) or 0,
        reasoning=whole(counts.get("reasoning_output_tokens")) or 0,
    )


def _grown(now: Usage, before: Usage) -> Usage:
    """What a call cost, of the totals before and after it."""
    return Usage(
        input=max(0, now.input - before.input),
        output=max(0, now.output - before.output),
        cached=max(0, now.cached - before.cached),
        reasoning=max(0, now.reasoning - before.reasoning),
    )


FORMAT = Format(
    name="codex",
    label="Codex",
    matches=matches,
    read=read,
    growth="cut",
    follows=True,
    places=(".codex/sessions/**/rollout-*.jsonl", ".codex/archived_sessions/rollout-*.jsonl"),
)
