"""The Responses API as people keep it: a list of items, a request or response, lines of items, and
recordings of the API.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from clew.importers.decode import loose_keys
from clew.importers.fields import listed, mapping, moment, text
from clew.importers.format import Format
from clew.importers.formats.api_requests import asked_responses
from clew.importers.formats.har import api_of, read_har
from clew.importers.formats.responses_items import TYPES, about, all_said, has_items, kind_of
from clew.importers.formats.steps import Walk
from clew.importers.objects import Object, document, objects
from clew.importers.pieces import usage_of
from clew.importers.probe import Probe
from clew.importers.records import Chat, Damaged, Event, Skipped, Spent, Used
from clew.importers.source import Source

_ITEM = frozenset((
    "type", "role", "content", "id", "status", "phase", "call_id", "name", "arguments", "output",
    "summary", "encrypted_content", "action", "input", "namespace", "queries", "results", "code",
    "container_id", "outputs", "result", "server_label", "tools", "error", "operation",
    "approval_request_id", "approve", "execution", "created_by", "agent",
    "acknowledged_safety_checks", "pending_safety_checks", "revised_prompt", "background",
    "output_format", "quality", "size",
))  # fmt: skip
_OBJECT = frozenset((
    "id", "object", "created_at", "completed_at", "status", "background", "error", "input",
    "output", "incomplete_details", "instructions", "max_output_tokens", "max_tool_calls", "model",
    "parallel_tool_calls", "previous_response_id", "conversation", "prompt", "prompt_cache_key",
    "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "stream",
    "stream_options", "include", "temperature", "text", "tool_choice", "tools", "top_logprobs",
    "top_p", "truncation", "usage", "user", "metadata", "billing", "context_management",
    "presence_penalty", "frequency_penalty", "output_text", "moderation",
))  # fmt: skip
_HEAD = 64 * 1024


def matches(probe: Probe) -> bool:
    """Items, a request or a response, or a recording of them."""
    if probe.head.lstrip()[:1] == b"[":
        return bool(probe.item_keys) and probe.item_keys <= _ITEM and has_items(probe.head)
    if probe.keys == frozenset(("log",)):
        return api_of(probe) == "responses"
    if _is_line(probe):
        return True
    named = {"model", "object", "previous_response_id"} & probe.keys or has_items(probe.head)
    return bool(named and {"input", "output"} & probe.keys and probe.keys <= _OBJECT)


def _is_line(probe: Probe) -> bool:
    """Whether every line is an item."""
    found = bool(probe.records) and probe.keys <= _ITEM and has_items(probe.head)
    return found and kind_of(probe.records[0]) in TYPES and probe.records[0].keys() == probe.keys


def read(source: Source) -> Iterator[Event]:
    """All conversations of a file."""
    head = source.head(_HEAD).lstrip()
    if head[:1] == b"[":
        yield from _items(Walk(source.id), objects(source.items(), "item"))
        return
    keys = loose_keys(head)
    if keys == frozenset(("log",)):
        yield from read_har(source)
        return
    if keys <= _ITEM and "type" in keys:
        yield from _items(Walk(source.id), objects(source.lines()))
        return
    value = document(source)
    if isinstance(value, Damaged):
        yield value
    else:
        yield from _object(source.id, value)


def _object(chat: str, value: dict[str, Any]) -> Iterator[Event]:
    """A request, or a response with or without its input."""
    asked = asked_responses(value)
    output = [mapping(item) for item in listed(value.get("output"))]
    at = moment(value.get("created_at"))
    yield Chat(
        id=chat, created_at=at, model=asked.model, prompt=asked.prompt, tools=asked.tools,
        meta=None if asked.previous is None else {"previous_response_id": asked.previous},
    )  # fmt: skip
    walk = Walk(chat)
    yield from _walked(walk, _numbered(asked.items), asked.model, at)
    walk.begin_answer()
    yield from _walked(walk, _numbered(output), asked.model, at)
    if (usage := usage_of(value.get("usage"))) is not None:
        spent = Spent(model=asked.model or "unknown", usage=usage)
        yield Used(chat=chat, group=text(value.get("id")) or "response", spent=spent, at=at)


def _numbered(items: list[dict[str, Any]]) -> Iterator[Object]:
    return (Object(at, item) for at, item in enumerate(items, 1))


def _items(walk: Walk, items: Iterable[Object | Damaged]) -> Iterator[Event]:
    yield Chat(id=walk.chat)
    yield from _walked(walk, items, None, None)


def _walked(
    walk: Walk, items: Iterable[Object | Damaged], model: str | None, at: int | None
) -> Iterator[Event]:
    for item in items:
        if isinstance(item, Damaged):
            yield item
            continue
        messages = all_said(item.value, model)
        for message in messages:
            yield walk.step(message, created_at=at, model=model, meta=about(item.value))
        if not messages:
            yield Skipped(kind_of(item.value)[:100] or "item of no type")


FORMAT = Format(
    name="openai-responses",
    label="Responses API",
    matches=matches,
    read=read,
)
