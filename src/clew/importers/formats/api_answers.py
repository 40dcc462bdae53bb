"""Answers of OpenAI's APIs as they came over the wire: one JSON object, or a stream of events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from clew.domain.turns import Usage
from clew.importers.decode import decode
from clew.importers.fields import ident, listed, mapping, moment, text, whole
from clew.importers.pieces import usage_of


class Answer(NamedTuple):
    """What came back: messages (Chat Completions) or items (Responses)."""

    said: list[dict[str, Any]]
    id: str | None = None
    model: str | None = None
    usage: Usage | None = None
    at: int | None = None
    left_out: int = 0
    """Further choices, which are not read."""


def chat_answer(body: str) -> Answer:
    """An answer of Chat Completions. ValueError."""
    if not _is_stream(body):
        return _completion(mapping(decode(body)))
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    calls: dict[int, dict[str, Any]] = {}
    about: dict[str, Any] = {}
    for event in _events(body):
        about.update({k: v for k, v in event.items() if k != "choices" and v is not None})
        for choice in listed(event.get("choices")):
            if not whole(mapping(choice).get("index")):
                _add(message, calls, mapping(mapping(choice).get("delta")))
    if calls:
        message["tool_calls"] = [calls[at] for at in sorted(calls)]
    said = [message] if calls or message["content"] or len(message) > 2 else []
    return _described(about, said)


def responses_answer(body: str) -> Answer:
    """An answer of the Responses API. ValueError."""
    if not _is_stream(body):
        response = mapping(decode(body))
        return _described(response, _items(response))
    done: dict[int, dict[str, Any]] = {}
    words: dict[int, str] = {}
    response: dict[str, Any] = {}
    for event in _events(body):
        at = whole(event.get("output_index")) or 0
        match event.get("type"):
            case "response.output_item.done":
                done[at] = mapping(event.get("item"))
            case "response.output_text.delta":
                words[at] = words.get(at, "") + (text(event.get("delta")) or "")
            case _:
                response.update(mapping(event.get("response")))
    items = _items(response) or [done[at] for at in sorted(done)]
    items = items or [_message(words[at]) for at in sorted(words)]
    return _described(response, items)


def _completion(body: dict[str, Any]) -> Answer:
    choices = [mapping(choice) for choice in listed(body.get("choices"))]
    said = [message for choice in choices[:1] if (message := mapping(choice.get("message")))]
    answer = _described(body, said)
    return answer._replace(left_out=max(0, len(choices) - 1))


def _described(about: dict[str, Any], said: list[dict[str, Any]]) -> Answer:
    return Answer(
        said,
        ident(about.get("id")),
        text(about.get("model")),
        usage_of(about.get("usage")),
        moment(about.get("created", about.get("created_at"))),
    )


def _items(response: dict[str, Any]) -> list[dict[str, Any]]:
    return [mapping(item) for item in listed(response.get("output"))]


def _message(words: str) -> dict[str, Any]:
    piece = {"type": "output_text", "text": words}
    return {"type": "message", "role": "assistant", "content": [piece]}


def _add(message: dict[str, Any], calls: dict[int, dict[str, Any]], delta: dict[str, Any]) -> None:
    for name in ("content", "refusal", "reasoning_content", "reasoning"):
        if more := text(delta.get(name)):
            message[name] = (message.get(name) or "") + more
    for each in listed(delta.get("tool_calls")):
        piece = mapping(each)
        call = calls.setdefault(
            whole(piece.get("index")) or 0,
            {"id": None, "type": "function", "function": {"name": "", "arguments": ""}},
        )
        call["id"] = call["id"] or ident(piece.get("id"))
        for name, more in mapping(piece.get("function")).items():
            if name in call["function"] and isinstance(more, str):
                call["function"][name] += more


def _is_stream(body: str) -> bool:
    return body.lstrip()[:6].startswith(("data:", "event:", ":", "id:"))


def _events(body: str) -> Iterator[dict[str, Any]]:
    """The events of a stream of JSON objects; what is none is passed over."""
    for row in body.splitlines():
        if not row.startswith("data:"):
            continue
        try:
            yield mapping(decode(row[5:]))
        except ValueError:  # "[DONE]", or a recording that breaks off
            continue
