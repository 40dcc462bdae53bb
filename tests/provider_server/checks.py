"""What a strict provider would refuse in a request, and where a prefix broke. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolUnionParam
from openai.types.responses import ResponseInputItemParam, ToolParam
from pydantic import TypeAdapter, ValidationError

from renderings import check_chat, check_responses

Json = dict[str, Any]
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
CHAT_KEYS = {
    "model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options",
    "max_tokens", "max_completion_tokens", "temperature", "top_p", "seed", "stop",
    "reasoning_effort", "prompt_cache_key", "user", "safety_identifier", "service_tier",
    "response_format", "verbosity", "store", "metadata", "frequency_penalty", "presence_penalty",
    "logit_bias", "n",
}  # fmt: skip
RESPONSES_KEYS = {
    "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "stream",
    "stream_options", "max_output_tokens", "temperature", "top_p", "reasoning", "text", "store",
    "include", "prompt_cache_key", "user", "safety_identifier", "service_tier", "metadata",
    "truncation",
}  # fmt: skip


@dataclass(frozen=True)
class Break:
    """Request `at` (from 0) did not begin with the one before it in its scope."""

    at: int
    scope: str
    what: str


def faults_of(path: str, body: Json) -> Iterator[str]:
    """What is wrong with a request."""
    is_chat = path.endswith("/chat/completions")
    if unknown := body.keys() - (CHAT_KEYS if is_chat else RESPONSES_KEYS):
        yield f"unknown fields {sorted(unknown)}"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "no model"
    yield from _tool_faults(body, is_chat)
    yield from _message_faults(body, is_chat)
    if is_chat and "stream_options" in body and not body.get("stream"):
        yield "stream_options without stream"
    if not is_chat and body.get("store") is not False:
        yield "store is not false"


def _message_faults(body: Json, is_chat: bool) -> Iterator[str]:
    items = body.get("messages" if is_chat else "input")
    if not isinstance(items, list) or not items:
        yield "no messages"
        return
    listed = cast(list[Json], items)
    try:
        (check_chat if is_chat else check_responses)(listed)
    except (AssertionError, KeyError, ValueError, TypeError, IndexError) as error:
        yield f"messages: {type(error).__name__} {error} in {str(listed)[-2000:]}"
    adapter = _messages(is_chat)
    for at, item in enumerate(listed):
        yield from _typed(adapter, item, f"message {at}")
    last = listed[-1]
    said = last.get("role") or last.get("type")
    if said == "assistant" or last.get("type") == "reasoning":
        yield f"the last message is one of the assistant: {str(last)[:300]}"


def _tool_faults(body: Json, is_chat: bool) -> Iterator[str]:
    tools = body.get("tools")
    if tools is None:
        if "tool_choice" in body or "parallel_tool_calls" in body:
            yield "tool_choice or parallel_tool_calls without tools"
        return
    if not isinstance(tools, list) or not tools:
        yield "tools is empty, or no list"
        return
    names: set[str] = set()
    for tool in cast(list[Json], tools):
        yield from _typed(_tools(is_chat), tool, "tool")
        said = tool.get("function", {}) if is_chat else tool
        name, schema = said.get("name"), said.get("parameters")
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name in names:
            yield f"tool name {name!r} is not allowed, or there twice"
        names.add(str(name))
        if not isinstance(schema, dict) or cast(Json, schema).get("type") != "object":
            yield f"parameters of {name} are no schema of an object"


@cache
def _messages(is_chat: bool) -> TypeAdapter[Any]:
    return TypeAdapter(ChatCompletionMessageParam if is_chat else ResponseInputItemParam)


@cache
def _tools(is_chat: bool) -> TypeAdapter[Any]:
    return TypeAdapter(ChatCompletionToolUnionParam if is_chat else ToolParam)


def _typed(adapter: TypeAdapter[Any], value: Json, what: str) -> Iterator[str]:
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        yield f"{what} is none of the SDK's types: {str(error)[:300]} in {str(value)[:300]}"


# ---------------------------------------------------------------------- prefix


def broken(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """How a request does not begin with the one before it, up to the start of its last message;
    None when it does."""
    for name in ("model", "tools", "instructions"):
        if before.get(name) != now.get(name):
            return name
    name = "messages" if "messages" in now else "input"
    old, new = before[name][:-1], now[name]
    for at, item in enumerate(old):
        if at >= len(new):
            return f"{len(new)} messages instead of {len(old)} or more"
        if new[at] != item:
            return f"message {at}: {str(new[at])[:300]} instead of {str(item)[:300]}"
    return None


def shared(before: Mapping[str, Any], now: Mapping[str, Any]) -> int:
    """Messages that two requests begin with, both."""
    name = "messages" if "messages" in now else "input"
    number = 0
    for old, new in zip(before[name], now[name], strict=False):
        if old != new:
            break
        number += 1
    return number
