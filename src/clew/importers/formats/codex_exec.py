"""What `codex exec --json` prints: events of a thread, kept in a file by whoever ran it.

The prompt is not in it. Items have ids that begin anew with every run, so a record's id is its
place (see clew.importers.chain).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from clew.domain.messages import Role
from clew.domain.parts import Parts, Reasoning, Text, ToolCall, ToolResult
from clew.domain.turns import Usage
from clew.importers.chain import Place
from clew.importers.fields import canonical, compact, ident, mapping, meta, text, whole
from clew.importers.format import Format
from clew.importers.objects import objects
from clew.importers.pieces import result_content
from clew.importers.probe import Probe
from clew.importers.records import Chat, Damaged, Event, Record, Skipped, Spent, Used
from clew.importers.source import Source

_EVENTS = frozenset((
    "thread.started", "turn.started", "turn.completed", "turn.failed", "item.started",
    "item.updated", "item.completed",
))  # fmt: skip
_FAILED = ("failed", "declined")


def matches(probe: Probe) -> bool:
    """Lines of events of a thread."""
    return any(text(record.get("type")) in _EVENTS for record in probe.records[:5])


def read(source: Source) -> Iterator[Event]:
    """The events as a stream."""
    stream = _Stream(source.id)
    for line in objects(source.lines()):
        if isinstance(line, Damaged):
            yield line
        else:
            yield from stream.event(line.value)


class _Stream:
    def __init__(self, id: str) -> None:
        self._chat = id
        self._is_open = False
        self._place = Place()
        self._last: str | None = None
        self._run: str | None = None
        self._turns = 0

    def event(self, event: dict[str, Any]) -> Iterator[Event]:
        match event.get("type"):
            case "thread.started":
                self._chat = ident(event.get("thread_id")) or self._chat
                self._is_open = False
                yield from self._opened()
            case "turn.started":
                self._run = None
            case "turn.completed":
                yield from self._spent(mapping(event.get("usage")))
            case "item.completed":
                yield from self._item(mapping(event.get("item")))
            case kind:
                yield Skipped((text(kind) or "line of no type")[:100])

    def _opened(self) -> Iterator[Event]:
        if not self._is_open:
            self._is_open = True
            yield Chat(id=self._chat, automation=True)

    def _spent(self, usage: dict[str, Any]) -> Iterator[Event]:
        """What a turn cost, all its model calls together."""
        yield from self._opened()
        self._turns += 1
        counts = Usage(
            input=whole(usage.get("input_tokens")) or 0,
            output=whole(usage.get("output_tokens")) or 0,
            cached=whole(usage.get("cached_input_tokens")) or 0,
            reasoning=whole(usage.get("reasoning_output_tokens")) or 0,
        )
        group = f"{self._place.id}/turn{self._turns}"
        yield Used(chat=self._chat, group=group, spent=Spent(model="unknown", usage=counts))

    def _item(self, item: dict[str, Any]) -> Iterator[Event]:
        kind = text(item.get("type")) or "item of no type"
        place = self._place.next(canonical(item))
        parts, results = _parts(item, kind, place.id)
        if not parts:
            yield Skipped(f"item.completed/{kind[:100]}")
            return
        yield from self._opened()
        self._place = place
        self._run = self._run or place.id
        about = meta(item=ident(item.get("id")))
        yield self._record(place.id, Role.ASSISTANT, parts, about)
        if results:
            self._run = None
            yield self._record(f"{place.id}/result", Role.TOOL, results, None)

    def _record(self, id: str, role: Role, parts: Parts, about: dict[str, Any] | None) -> Record:
        before, self._last = self._last, id
        return Record(
            chat=self._chat, role=role, parts=parts, id=id, parent=before, api_group=self._run,
            meta=about,
        )  # fmt: skip


def _parts(item: dict[str, Any], kind: str, call: str) -> tuple[Parts, Parts]:
    """What the model said, and what a tool answered. `call` is the id of a call; the source gives
    one to the item only."""
    words = text(item.get("text")) or ""
    match kind:
        case "agent_message":
            return (Text(words),), ()
        case "reasoning":
            return (Reasoning(words),), ()
        case "command_execution":
            return _call(call, "shell", {"command": item.get("command")},
                         text(item.get("aggregated_output")) or "",
                         item.get("status") in _FAILED)  # fmt: skip
        case "file_change":
            return _call(call, "apply_patch", item.get("changes"), text(item.get("status")) or "",
                         item.get("status") in _FAILED)  # fmt: skip
        case "mcp_tool_call":
            name = f"{text(item.get('server')) or ''}.{text(item.get('tool')) or ''}"
            error = mapping(item.get("error"))
            answer = error.get("message") if error else mapping(item.get("result")).get("content")
            return _call(call, name, item.get("arguments"), answer, bool(error))
        case "collab_tool_call":
            names = ("prompt", "receiver_thread_ids")
            asked = {name: item[name] for name in names if name in item}
            return _call(call, text(item.get("tool")) or kind, asked, item.get("agents_states"))
        case "web_search" | "todo_list":
            names = ("query", "action") if kind == "web_search" else ("items",)
            asked = {name: item[name] for name in names if name in item}
            return _call(call, kind, asked, "")
        case _:
            return (), ()


def _call(
    id: str, name: str, asked: object, answer: object, is_error: bool = False
) -> tuple[Parts, Parts]:
    is_json = isinstance(answer, dict | int | float)
    content = compact(cast(object, answer)) if is_json else result_content(answer)
    return (ToolCall(id, name, compact(asked)),), (ToolResult(id, content, is_error=is_error),)


FORMAT = Format(
    name="codex-exec",
    label="Codex (exec --json)",
    matches=matches,
    read=read,
    growth="cut",
    follows=True,
)
