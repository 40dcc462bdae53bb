"""What providers refuse in a request, as checks, and one that others wrote: tessera-transcript."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, cast

import tessera

Message = dict[str, Any]
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def sendable(value: object) -> None:
    """JSON, and UTF-8."""
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def told_by_others(messages: Sequence[Message], shape: str) -> None:
    """No finding of an inspector that is not ours. It reads only plain text in a Chat Completions
    message, so pieces of text are given to it as one."""
    plain = [_plain(m) for m in messages] if shape == "openai" else list(messages)
    report = tessera.inspect(plain, adapter=shape)
    assert not report.findings, [str(finding) for finding in report.findings]


def _plain(message: Message) -> Message:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    pieces = cast(list[Message], content)
    return {**message, "content": "".join(p.get("text") or p.get("refusal") or "" for p in pieces)}


# ---------------------------------------------------------------------- Chat Completions


def check_chat(messages: Sequence[Message], alternate: bool = False) -> None:
    sendable(messages)
    told_by_others(messages, "openai")
    ids = [call["id"] for m in messages for call in m.get("tool_calls") or ()]
    assert len(ids) == len(set(ids))
    assert all(len(id) <= 40 and _ID.fullmatch(id) for id in ids)
    waiting: list[str] = []
    for message in messages:
        role = message["role"]
        assert role in ("system", "developer", "user", "assistant", "tool")
        if role == "tool":
            waiting.remove(message["tool_call_id"])
        else:
            assert not waiting
        for call in message.get("tool_calls") or ():
            waiting.append(call["id"])
            assert _ID.fullmatch(call[call["type"]]["name"])
        content = message.get("content")
        assert isinstance(content, str) or content or message.get("tool_calls")
        if role != "user" and isinstance(content, list):
            assert {piece["type"] for piece in content} <= {"text", "refusal"}
    assert not waiting
    if alternate:
        _alternates(messages)


def _alternates(messages: Sequence[Message]) -> None:
    """As the templates of open models want it: they do not count the steps with tools."""
    said = [m["role"] for m in messages]
    assert not {"system", "developer"} & set(said[1:])
    said = said[1:] if said[:1] in (["system"], ["developer"]) else said
    assert said[:1] in ([], ["user"])
    assert not [a for a, b in pairwise(said) if a == b != "tool"]
    counted = [
        m for m in messages if m["role"] in ("user", "assistant") and not m.get("tool_calls")
    ]
    turns = [m["role"] for m in counted]
    assert turns == (["user", "assistant"] * len(turns))[: len(turns)]


def chat_texts(messages: Sequence[Message]) -> Iterator[str]:
    """What users say, in its order."""
    for message in messages:
        if message["role"] == "user":
            yield from _texts(message["content"])


# ---------------------------------------------------------------------- Responses


def check_responses(items: Sequence[Message]) -> None:
    sendable(items)
    open_calls: dict[str, str] = {}
    called: set[str] = set()
    ids: list[str] = []
    for at, item in enumerate(items):
        kind = item["type"]
        ids += [item["id"]] if "id" in item else []
        if kind.endswith("_output"):
            made = open_calls.pop(item["call_id"])
            assert kind == f"{made}_output"
            assert item.get("output") != []
        elif "call_id" in item:
            assert item["call_id"] not in called
            assert len(item["call_id"]) <= 64
            called.add(item["call_id"])
            open_calls[item["call_id"]] = kind
        elif kind == "reasoning":
            assert item["encrypted_content"]
            after = items[at + 1]
            assert not after["type"].endswith("_output")
            assert after.get("role", "assistant") == "assistant"
        elif kind == "message":
            assert item["content"]
            assert item["role"] == "assistant" or not open_calls
    assert not open_calls
    assert len(ids) == len(set(ids))


def response_texts(items: Sequence[Message]) -> Iterator[str]:
    """What users say, in its order."""
    for item in items:
        if item.get("role") == "user":
            yield from _texts(item["content"])


# ---------------------------------------------------------------------- Anthropic Messages


def check_anthropic(messages: Sequence[Message]) -> None:
    sendable(messages)
    told_by_others(messages, "anthropic")
    roles = [m["role"] for m in messages]
    assert roles == (["user", "assistant"] * len(roles))[: len(roles)]
    wanted: list[str] = []
    seen: set[str] = set()
    for message in messages:
        blocks = message["content"]
        assert blocks
        answers = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        assert answers == [b.get("tool_use_id") for b in blocks[: len(answers)]]
        assert sorted(answers) == sorted(wanted)
        wanted = [b["id"] for b in blocks if b["type"] == "tool_use"]
        assert not seen & set(wanted)
        seen |= set(wanted)
        for block in blocks:
            _check_block(block, message["role"])
        if message["role"] == "assistant":
            last = blocks[-1]
            assert last["type"] in ("text", "tool_use")
            assert last.get("text", "x") == last.get("text", "x").rstrip()
    assert not wanted


_BLOCKS = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
    "tool_result": {"text", "image", "document"},
}


def _check_block(block: Message, where: str) -> None:
    assert block["type"] in _BLOCKS[where]
    match block:
        case {"type": "text", "text": text}:
            assert text.strip()
        case {"type": "thinking"}:
            assert block["signature"]
        case {"type": "redacted_thinking"}:
            assert block["data"]
        case {"type": "tool_use"}:
            assert _ID.fullmatch(block["id"])
            assert _ID.fullmatch(block["name"])
            assert isinstance(block["input"], dict)
        case {"type": "tool_result"}:
            content = block.get("content")
            assert content or not block.get("is_error")
            for inner in content if isinstance(content, list) else ():
                _check_block(inner, "tool_result")
        case {"source": {"type": "base64", "data": data}}:
            assert data
        case _:
            assert block["source"]["type"] in ("url", "text")


def anthropic_texts(messages: Sequence[Message]) -> Iterator[str]:
    """What users say, in its order."""
    for message in messages:
        if message["role"] == "user":
            yield from _texts(message["content"])


def _texts(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        pieces = cast(list[Any], content)
        yield from (p["text"] for p in pieces if isinstance(p, dict) and "text" in p)
