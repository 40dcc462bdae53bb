"""An answer as the bytes of one of the two APIs, whole or as events of a stream. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from provider_server.answers import Answer, Call, pieces

Json = dict[str, Any]
Usage = tuple[int, int, int]
"""Tokens: input, of it cached, output."""
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def sse(data: Json | str, event: str | None = None) -> bytes:
    """One event of a stream."""
    text = data if isinstance(data, str) else json.dumps(data)
    head = "" if event is None else f"event: {event}\n"
    return f"{head}data: {text}\n\n".encode()


# ---------------------------------------------------------------------- Chat Completions


def chat_usage(answer: Answer, usage: Usage) -> Json:
    sent, cached, got = usage
    cost = {} if answer.cost is None else {"cost": answer.cost}
    return answer.usage or {
        "prompt_tokens": sent,
        "completion_tokens": got,
        "total_tokens": sent + got,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": len(answer.reasoning) // 4},
        **cost,
    }


def chat_whole(answer: Answer, model: str, id: str, usage: Usage) -> Json:
    message: Json = {"role": "assistant", "content": answer.text or None}
    if answer.reasoning:
        message[answer.reasoning_field] = answer.reasoning
    if answer.refusal is not None:
        message["refusal"] = answer.refusal
    if answer.calls:
        message["tool_calls"] = [_chat_call(each) for each in answer.calls]
    choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
    return {
        "id": id, "object": "chat.completion", "created": 1, "model": model,
        "choices": [choice], "usage": chat_usage(answer, usage),
    }  # fmt: skip


def _chat_call(each: Call) -> Json:
    named = {} if each.id is None else {"id": each.id}
    body = {"name": each.name, "arguments": each.arguments}
    return {**named, "type": "function", "function": body, **each.extra}


def chat_deltas(answer: Answer) -> Iterator[Json]:
    """What comes piece by piece."""
    yield {"role": "assistant", "content": ""}
    for piece in pieces(answer.reasoning, answer.piece):
        yield {answer.reasoning_field: piece}
    for piece in pieces(answer.text, answer.piece):
        yield {"content": piece}
    for piece in pieces(answer.refusal or "", answer.piece):
        yield {"refusal": piece}
    for index, each in enumerate(answer.calls):
        first = _chat_call(each)
        first["function"] = {"name": each.name, "arguments": ""}
        yield {"tool_calls": [{"index": index, **first}]}
        for piece in pieces(each.arguments, answer.piece):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def chat_events(answer: Answer, model: str, id: str, usage: Usage, told: bool) -> list[bytes]:
    """The stream without its end; `told`: the client asked for the usage."""

    def chunk(choices: list[Json], **more: Any) -> bytes:
        return sse(
            {
                "id": id,
                "object": "chat.completion.chunk",
                "created": 1,
                "model": model,
                "choices": choices,
                **more,
            }
        )

    made = [
        chunk([{"index": 0, "delta": delta, "finish_reason": None}])
        for delta in chat_deltas(answer)
    ]
    if answer.fault not in ("no-finish", "done-only"):
        made.append(chunk([{"index": 0, "delta": {}, "finish_reason": answer.finish_reason}]))
        if told and answer.fault != "cut-done":
            made.append(chunk([], usage=chat_usage(answer, usage)))
    return made if answer.fault in ("no-finish", "cut-done") else [*made, sse("[DONE]")]


# ---------------------------------------------------------------------- Responses


def response_usage(answer: Answer, usage: Usage) -> Json:
    sent, cached, got = usage
    return answer.usage or {
        "input_tokens": sent,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": got,
        "output_tokens_details": {"reasoning_tokens": len(answer.reasoning) // 4},
        "total_tokens": sent + got,
    }


def output_items(answer: Answer, id: str) -> list[Json]:
    items: list[Json] = []
    if answer.reasoning or answer.encrypted:
        summary = [{"type": "summary_text", "text": answer.reasoning}] if answer.reasoning else []
        item: Json = {"type": "reasoning", "id": f"rs_{id}", "summary": summary}
        if answer.encrypted is not None:
            item["encrypted_content"] = answer.encrypted
        items.append(item)
    content: list[Json] = []
    if answer.text:
        content.append({"type": "output_text", "text": answer.text, "annotations": []})
    if answer.refusal is not None:
        content.append({"type": "refusal", "refusal": answer.refusal})
    if content:
        items.append(
            {
                "type": "message",
                "id": f"msg_{id}",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        )
    for at, each in enumerate(answer.calls):
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{id}_{at}",
                "call_id": each.id,
                "name": each.name,
                "arguments": each.arguments,
                "status": "completed",
                **each.extra,
            }
        )
    return items


def response_whole(answer: Answer, model: str, id: str, usage: Usage) -> Json:
    reason = _INCOMPLETE.get(answer.finish or "")
    return {
        "id": id, "object": "response", "created_at": 1, "model": model,
        "status": "completed" if reason is None else "incomplete",
        "incomplete_details": None if reason is None else {"reason": reason},
        "error": None, "instructions": None, "metadata": {}, "output": output_items(answer, id),
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        "usage": response_usage(answer, usage),
    }  # fmt: skip


def response_events(answer: Answer, model: str, id: str, usage: Usage) -> list[bytes]:
    """The stream, its end included."""
    made: list[Json] = []
    whole = response_whole(answer, model, id, usage)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    made.append({"type": "response.created", "response": begun})
    for at, item in enumerate(whole["output"]):
        made += _item_events(item, at, answer.piece)
    if answer.fault not in ("no-finish", "done-only"):
        kind = "response.completed" if whole["status"] == "completed" else "response.incomplete"
        made.append({"type": kind, "response": whole})
    return [sse({"sequence_number": n, **e}, e["type"]) for n, e in enumerate(made)]


def _item_events(item: Json, at: int, size: int) -> Iterator[Json]:
    place = {"output_index": at, "item_id": item["id"]}
    match item["type"]:
        case "reasoning":
            begun = {**item, "summary": []}
            said = [("reasoning_summary_text", p["text"], {"summary_index": 0})
                    for p in item["summary"]]  # fmt: skip
        case "message":
            begun = {**item, "content": [], "status": "in_progress"}
            said = [
                (p["type"], p.get("text") or p.get("refusal"), _more(p["type"], n))
                for n, p in enumerate(item["content"])
            ]
        case _:
            begun = {**item, "arguments": "", "status": "in_progress"}
            said = [("function_call_arguments", item["arguments"], {})]
    yield {"type": "response.output_item.added", "output_index": at, "item": begun}
    for kind, text, more in said:
        for piece in pieces(text, size):
            yield {"type": f"response.{kind}.delta", "delta": piece, **place, **more}
        if kind == "function_call_arguments":
            yield {"type": f"response.{kind}.done", "arguments": text, "name": item["name"],
                   **place}  # fmt: skip
        else:
            word = "refusal" if kind == "refusal" else "text"
            yield {"type": f"response.{kind}.done", word: text, **place, **more}
    yield {"type": "response.output_item.done", "output_index": at, "item": item}


def _more(kind: str, at: int) -> Json:
    return {"content_index": at, **({} if kind == "refusal" else {"logprobs": []})}
