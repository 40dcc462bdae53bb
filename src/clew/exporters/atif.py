"""ATIF, the Agent Trajectory Interchange Format (Harbor), version 1.7."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from clew.context.entries import Entry
from clew.domain.chat import BlobReader
from clew.domain.conversations import ConversationInfo
from clew.domain.messages import Role
from clew.domain.parts import File, Image, Part, Reasoning, Text, ToolCall, ToolResult, Unknown
from clew.domain.turns import ModelCall
from clew.exporters.text import attachment, dumps, iso, json_list, raster_url, web_url
from clew.exporters.transcript import Transcript, call_of

VERSION = "ATIF-v1.7"
DEEPEST = 20
"""Sub-agents inside each other that are embedded."""
_IMAGES = frozenset(("image/jpeg", "image/png", "image/gif", "image/webp"))
_SOURCES = {Role.USER: "user", Role.ASSISTANT: "agent"}

Step = dict[str, Any]
Child = Callable[[str], Transcript]
"""A sub-agent's conversation by its id."""


def text(source: Transcript, child: Child | None = None) -> Iterator[str]:
    """The file. With `child` the sub-agents are embedded, and theirs in them."""
    delegates = _delegates(source, child, 1)
    around = _around(source, child, delegates, 1)
    head = {name: around.pop(name) for name in ("schema_version", "session_id")}
    return json_list(steps(source, delegates), head, "steps", around)


def trajectory(source: Transcript, child: Child | None = None, depth: int = 1) -> dict[str, Any]:
    """The whole as one value."""
    delegates = _delegates(source, child, depth)
    around = _around(source, child, delegates, depth)
    return {**around, "steps": list(steps(source, delegates))}


def _delegates(
    source: Transcript, child: Child | None, depth: int
) -> list[ConversationInfo]:  # fmt: skip
    if child is None or depth >= DEEPEST:
        return []
    return [info for info in source.children if info.kind == "delegate"]


def _around(
    source: Transcript, child: Child | None, delegates: Sequence[ConversationInfo], depth: int
) -> dict[str, Any]:
    """All but the steps."""
    fields = _head(source) | {"final_metrics": _totals(source.calls)}
    if child is not None and delegates:
        fields["subagent_trajectories"] = [
            trajectory(child(info.id), child, depth + 1) for info in delegates
        ]
    return fields


def steps(source: Transcript, delegates: Sequence[ConversationInfo] = ()) -> Iterator[Step]:
    """All steps, numbered."""
    for number, step in enumerate(_Steps(source, delegates).run(), 1):
        yield {"step_id": number, **step}


def _head(source: Transcript) -> dict[str, Any]:
    info = source.info
    agent: dict[str, Any] = {"name": info.source, "version": "unknown"}
    if info.model is not None:
        agent["model_name"] = info.model
    if source.toolset:
        agent["tool_definitions"] = source.toolset
    about = {"title": info.title, "kind": info.kind, "origin": info.origin, "base": info.base}
    return {
        "schema_version": VERSION, "session_id": info.id, "trajectory_id": info.id,
        "agent": agent, "extra": {"clew": {k: v for k, v in about.items() if v}},
    }  # fmt: skip


def _totals(calls: Sequence[ModelCall]) -> dict[str, Any]:
    costs = [call.cost for call in calls if call.cost is not None]
    totals: dict[str, Any] = {
        "total_prompt_tokens": sum(call.usage.input for call in calls),
        "total_completion_tokens": sum(call.usage.output for call in calls),
        "total_cached_tokens": sum(call.usage.cached for call in calls),
    }
    return totals | ({"total_cost_usd": sum(costs)} if costs else {})


class _Steps:
    """Makes steps of messages; a step waits until the results of its calls have come."""

    def __init__(self, source: Transcript, delegates: Sequence[ConversationInfo]) -> None:
        self._source, self._blob = source, source.blob
        self._calls = _Calls(source.calls)
        self._waiting: Step | None = None
        self._asked: set[str] = set()
        self._late: list[ConversationInfo] = []
        self._delegates: dict[str, list[ConversationInfo]] = {}
        for info in delegates:
            self._delegates.setdefault(call_of(info), []).append(info)

    def run(self) -> Iterator[Step]:
        if self._source.prompt is not None:
            yield {"source": "system", "message": self._source.prompt}
        for entry in self._source.entries():
            yield from self._entry(entry)
        yield from self._flush()
        rest = [info for listed in self._delegates.values() for info in listed]
        if rest:
            results = [{"subagent_trajectory_ref": list(map(_reference, rest))}]
            yield {
                "source": "system", "message": "Sub-agents of this conversation.",
                "observation": {"results": results},
            }  # fmt: skip

    def _entry(self, entry: Entry) -> Iterator[Step]:
        results = [part for part in entry.parts if isinstance(part, ToolResult)]
        mine = [result for result in results if result.call_id in self._asked]
        if mine and self._waiting is not None:
            for result in mine:
                self._asked.discard(result.call_id)
                self._observe(self._waiting, result)
        others = [result for result in results if result not in mine]
        rest = tuple(part for part in entry.parts if not isinstance(part, ToolResult))
        if others:
            yield from self._flush()
            step: Step = {"source": "system", "message": "", **_when(entry)}
            for result in others:
                self._observe(step, result)
            yield step
        if rest or not results:
            yield from self._flush()
            self._waiting = self._step(entry, rest)

    def _flush(self) -> Iterator[Step]:
        if self._waiting is not None:
            yield self._waiting
        self._waiting, self._asked = None, set()

    def _observe(self, step: Step, result: ToolResult) -> None:
        found: dict[str, Any] = {"source_call_id": result.call_id}
        if isinstance(result.content, str):
            found["content"] = result.content
        else:
            found["content"] = _content(result.content, self._blob)
        if result.is_error:
            found["extra"] = {"is_error": True}
        if listed := self._delegates.pop(result.call_id, None):
            found["subagent_trajectory_ref"] = list(map(_reference, listed))
        step.setdefault("observation", {"results": []})["results"].append(found)

    def _step(self, entry: Entry, parts: Sequence[Part]) -> Step:
        source = _SOURCES.get(entry.role, "system")
        calls = [part for part in parts if isinstance(part, ToolCall)]
        said = [part for part in parts if not isinstance(part, ToolCall | Reasoning)]
        step: Step = {"source": source, **_when(entry), "message": _content(said, self._blob)}
        if entry.author is not None:
            step["extra"] = {**step.get("extra", {}), "author": entry.author}
        if source != "agent":
            return step
        thinking = "\n".join(
            part.text for part in parts if isinstance(part, Reasoning) and part.text
        )
        if thinking:
            step["reasoning_content"] = thinking
        if calls:
            step["tool_calls"] = list(map(_tool_call, calls))
            self._asked = {call.id for call in calls}
        return step | self._calls.of(entry)


class _Calls:
    """Which model calls a step was: those of its api_group, or those that ended with it."""

    def __init__(self, calls: Sequence[ModelCall]) -> None:
        done = [call for call in calls if call.purpose == "turn" and call.state == "done"]
        self._groups: dict[str, list[ModelCall]] = {}
        self._rest: list[ModelCall] = []
        for call in done:
            group = call.api_group
            if group is None:
                self._rest.append(call)
            else:
                self._groups.setdefault(group, []).append(call)
        self._rest.sort(key=lambda call: (call.up_to_seq, call.number), reverse=True)

    def of(self, entry: Entry) -> Step:
        found = self._groups.pop(entry.api_group, []) if entry.api_group is not None else []
        first = entry.messages[0].seq if entry.messages else 0
        while self._rest and self._rest[-1].up_to_seq < first:
            found = [*found, self._rest.pop()]
        return _metrics(found) if found else {}


def _metrics(calls: Sequence[ModelCall]) -> Step:
    metrics: dict[str, Any] = {
        "prompt_tokens": sum(call.usage.input for call in calls),
        "completion_tokens": sum(call.usage.output for call in calls),
        "cached_tokens": sum(call.usage.cached for call in calls),
    }
    costs = [call.cost for call in calls if call.cost is not None]
    if costs:
        metrics["cost_usd"] = sum(costs)
    if thinking := sum(call.usage.reasoning for call in calls):
        metrics["extra"] = {"reasoning_tokens": thinking}
    return {"model_name": calls[-1].model, "metrics": metrics, "llm_call_count": len(calls)}


def _when(entry: Entry) -> Step:
    if not entry.messages:
        return {}
    return {
        "timestamp": iso(entry.messages[0].created_at),
        "extra": {"seqs": [message.seq for message in entry.messages]},
    }


def _tool_call(call: ToolCall) -> dict[str, Any]:
    """Arguments that are no JSON object stand in `extra` as they are."""
    found: dict[str, Any] = {"tool_call_id": call.id, "function_name": call.name, "arguments": {}}
    extra: dict[str, Any] = {} if call.kind == "function" else {"kind": call.kind}
    try:
        value: object = json.loads(call.arguments) if call.arguments else {}
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        found["arguments"] = cast(dict[str, Any], value)
    else:
        extra["arguments"] = call.arguments
    return found | ({"extra": extra} if extra else {})


def _content(parts: Sequence[Part], blob: BlobReader) -> str | list[dict[str, Any]]:
    """A text, or pieces where there are images."""
    pieces = [_piece(part, blob) for part in parts]
    if all(piece["type"] == "text" for piece in pieces):
        return "\n".join(piece["text"] for piece in pieces)
    return pieces


def _piece(part: Part, blob: BlobReader) -> dict[str, Any]:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Image() if part.media_type in _IMAGES:
            path = part.url if web_url(part.url) else raster_url(part, blob)
            if path is not None:
                source = {"media_type": part.media_type, "path": path}
                return {"type": "image", "source": source}
            return {"type": "text", "text": f"[{attachment(part)}]"}
        case Image() | File():
            return {"type": "text", "text": f"[{attachment(part)}]"}
        case Unknown(value=value):
            return {"type": "text", "text": dumps(value)}
        case _:
            return {"type": "text", "text": ""}


def _reference(info: ConversationInfo) -> dict[str, Any]:
    return {"trajectory_id": info.id, "session_id": info.id}
