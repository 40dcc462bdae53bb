"""Answers of the Responses API, whole or as events, as parts. What is kept of an item is what the
renderings of the context send back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clew.domain.parts import Part, Reasoning, Text, ToolCall, Unknown
from clew.domain.turns import Usage
from clew.providers.api import CallDelta, ReasoningDelta, Reply, Stop, StreamEvent, TextDelta
from clew.providers.openai_fields import Json, count_of, number_of, object_of, objects_of, text_of

LAST = ("response.completed", "response.incomplete", "response.failed")
_TEXT = ("response.output_text.delta", "response.refusal.delta")
_THOUGHT = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_ARGUMENTS = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")
_CALLS = {"function_call": ("function", "arguments"), "custom_tool_call": ("custom", "input")}
_INCOMPLETE: Mapping[object, Stop] = {
    "max_output_tokens": "length", "content_filter": "content_filter",
}  # fmt: skip


class Events:
    """The pieces of a stream, as they come. `last` is the response that it ended with; `items`
    those that were done, for servers whose last event does not repeat them."""

    def __init__(self) -> None:
        self.last: Json | None = None
        self.items: list[Json] = []
        self.error: Json | None = None
        self._calls: dict[object, int] = {}
        self._ids: set[str] = set()

    def add(self, event: Json) -> Iterator[StreamEvent]:
        """Take an event."""
        kind = event.get("type")
        if kind in _TEXT:
            yield TextDelta(text_of(event.get("delta")))
        elif kind in _THOUGHT:
            yield ReasoningDelta(text_of(event.get("delta")))
        elif kind in _ARGUMENTS:
            at = self._calls.get(event.get("output_index"))
            if at is not None:
                yield CallDelta(at, arguments=text_of(event.get("delta")))
        elif kind == "response.output_item.added":
            yield from self._begun(event)
        elif kind == "response.output_item.done":
            self.items.append(object_of(event.get("item")))
        elif kind in LAST:
            self.last = object_of(event.get("response"))
        elif kind == "error":
            self.error = object_of(event.get("error")) or event

    def _begun(self, event: Json) -> Iterator[StreamEvent]:
        item = object_of(event.get("item"))
        if item.get("type") in _CALLS:
            at = self._calls[event.get("output_index")] = len(self._calls)
            id = call_id(item, at, self._ids)
            self._ids.add(id)
            yield CallDelta(at, id, text_of(item.get("name")))

    def response(self) -> Json:
        """The response with its items."""
        last = self.last or {}
        return last if last.get("output") else {**last, "output": self.items}


def reply_of(response: Json, model: str) -> Reply:
    """The reply of a whole response. `model`: as it was asked for, whose thinking this is."""
    parts: list[Part] = []
    calls: set[str] = set()
    for item in objects_of(response.get("output")):
        parts += _parts(item, model, calls)
    return Reply(
        parts=tuple(parts), stop=_stop(response, parts), usage=usage_of(response),
        model=text_of(response.get("model")) or None, id=text_of(response.get("id")) or None,
        cost=number_of(object_of(response.get("usage")).get("cost")),
    )  # fmt: skip


def _parts(item: Json, model: str, calls: set[str]) -> Iterator[Part]:
    kind = item.get("type")
    if kind == "reasoning":
        pieces = objects_of(item.get("summary")) or objects_of(item.get("content"))
        text = "\n\n".join(text_of(piece.get("text")) for piece in pieces)
        data = text_of(item.get("encrypted_content")) or None
        if text or data is not None:
            yield Reasoning(text, model=model, data=data, id=text_of(item.get("id")) or None)
    elif kind == "message":
        for piece in objects_of(item.get("content")):
            if text := text_of(piece.get("text")) or text_of(piece.get("refusal")):
                yield Text(text)
    elif kind in _CALLS:
        what, word = _CALLS[kind]
        id = call_id(item, len(calls), calls)
        calls.add(id)
        yield ToolCall(id, text_of(item.get("name")), text_of(item.get(word)), what)
    elif isinstance(kind, str):
        yield Unknown(item)


def call_id(item: Json, at: int, taken: set[str]) -> str:
    """The id of a call, or one of our own where it has none or another has it."""
    id = text_of(item.get("call_id"))
    return id if id and id not in taken else f"call_{at}_{text_of(item.get('id')) or 'item'}"


def _stop(response: Json, parts: list[Part]) -> Stop:
    if response.get("status") == "incomplete":
        return _INCOMPLETE.get(object_of(response.get("incomplete_details")).get("reason"), "other")
    pieces = [p for i in objects_of(response.get("output")) for p in objects_of(i.get("content"))]
    if any(piece.get("type") == "refusal" for piece in pieces):
        return "refusal"
    return "tool_calls" if any(isinstance(part, ToolCall) for part in parts) else "stop"


def usage_of(response: Json) -> Usage:
    """Tokens as the server counts them."""
    usage = object_of(response.get("usage"))
    sent, told = count_of(usage.get("input_tokens")), object_of(usage.get("input_tokens_details"))
    thought = object_of(usage.get("output_tokens_details"))
    return Usage(
        input=sent, output=count_of(usage.get("output_tokens")),
        cached=min(sent, count_of(told.get("cached_tokens"))),
        reasoning=count_of(thought.get("reasoning_tokens")),
    )  # fmt: skip
