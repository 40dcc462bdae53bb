"""LangChain's messages, as LangGraph keeps them in a checkpoint."""

from __future__ import annotations

import hashlib
from typing import Any

from msgspec import Struct

from clew.domain.messages import Role
from clew.domain.parts import Part, ToolCall
from clew.domain.turns import Usage
from clew.importers.fields import arguments, canonical, ident, listed, mapping, meta, text, whole
from clew.importers.formats.langgraph_values import fields_of, plain
from clew.importers.pieces import calls, content, result, thoughts
from clew.importers.records import Record, Spent

_ROLES = {
    "human": Role.USER,
    "user": Role.USER,
    "ai": Role.ASSISTANT,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
    "system": Role.SYSTEM,
    "developer": Role.DEVELOPER,
}
_THINKING = ("thinking", "reasoning", "redacted_thinking", "reasoning_content")
_CALLS = ("tool_use", "tool_call", "function_call", "tool_call_chunk")
"""Blocks that say again what `tool_calls` says."""


class Message(Struct, frozen=True, kw_only=True):
    """A message of a checkpoint."""

    id: str
    """Its own; of one that has none: made of its place and what it says."""
    print: bytes
    """The same for the same message."""
    role: Role
    fields: dict[str, Any]


def message_of(value: object, place: int) -> Message | None:
    """A message, whichever way it was written; None when it is none."""
    if isinstance(value, str) and value:
        value = {"type": "human", "content": value}
    try:
        given = plain(fields_of(value))
    except ValueError:
        return None
    fields = mapping(given)
    name = text(fields.get("class")) or ""
    kind = text(fields.get("type")) or text(fields.get("role")) or _kind(name)
    role = _ROLES.get(kind.removesuffix("MessageChunk").lower())
    if kind == "chat" or name.startswith("ChatMessage"):
        role = _ROLES.get(text(fields.get("role")) or "", Role.USER)
    if role is None or "content" not in fields:
        return None
    told = {key: each for key, each in fields.items() if key != "class"}
    print = hashlib.blake2b(canonical(told), digest_size=16).digest()
    id = ident(fields.get("id")) or f"message:{place}:{print.hex()[:8]}"
    return Message(id=id, print=print, role=role, fields=fields)


def _kind(name: str) -> str:
    return name.removesuffix("Chunk").removesuffix("Message").lower()


def record_of(message: Message, chat: str, id: str, parent: str | None, at: int | None) -> Record:
    """A message as a record; `at`: the time of the checkpoint that first had it."""
    fields, role = message.fields, message.role
    about = mapping(fields.get("response_metadata"))
    is_answer = role is Role.ASSISTANT
    model = ident(about.get("model_name")) or ident(about.get("model")) if is_answer else None
    return Record(
        chat=chat,
        role=role,
        parts=_parts(fields, role, model),
        id=id,
        parent=parent,
        created_at=at,
        author=None if role is Role.TOOL else ident(fields.get("name")),
        model=model,
        spent=_spent(mapping(fields.get("usage_metadata")), model) if is_answer else None,
        meta=meta(
            finish_reason=text(about.get("finish_reason")) or text(about.get("stop_reason")),
            response=ident(about.get("id")),
        ),
    )


def _parts(fields: dict[str, Any], role: Role, model: str | None) -> tuple[Part, ...]:
    if role is Role.TOOL:
        failed = fields.get("status") == "error"
        call = fields.get("tool_call_id") or fields.get("name")
        return (result(call, fields.get("content"), fields.get("name"), failed),)
    if role is not Role.ASSISTANT:
        return content(fields.get("content"))
    more = mapping(fields.get("additional_kwargs"))
    asked = _calls(fields, more)
    said = fields.get("content")
    thinking: list[Any] = []
    if blocks := listed(said):
        kinds = [(mapping(block).get("type"), block) for block in blocks]
        thinking = [_thought(mapping(block)) for kind, block in kinds if kind in _THINKING]
        hidden = (*_THINKING, *(_CALLS if asked else ()))
        said = [block for kind, block in kinds if kind not in hidden]
    plain_thought = text(more.get("reasoning_content"))
    return (*thoughts(thinking, plain_thought, model), *content(said), *asked)


def _thought(block: dict[str, Any]) -> dict[str, Any]:
    inner = mapping(block.get("reasoning_content"))
    said = text(block.get("reasoning")) or text(inner.get("text"))
    return {**inner, **block, **({"text": said} if said else {})}


def _calls(fields: dict[str, Any], more: dict[str, Any]) -> list[ToolCall]:
    """The calls; their arguments as the model wrote them, where the provider's own form is kept."""
    written = {call.id: call for call in calls(more.get("tool_calls"))}
    found: list[ToolCall] = []
    for name in ("tool_calls", "invalid_tool_calls"):
        for each in listed(fields.get(name)):
            call = mapping(each)
            id = ident(call.get("id")) or ""
            given = arguments(call.get("args"))
            own = written.pop(id, None)
            found.append(own or ToolCall(id, ident(call.get("name")) or "", given))
    return [*found, *written.values()]


def _spent(given: dict[str, Any], model: str | None) -> Spent | None:
    usage = Usage(
        input=whole(given.get("input_tokens")) or 0,
        output=whole(given.get("output_tokens")) or 0,
        cached=whole(mapping(given.get("input_token_details")).get("cache_read")) or 0,
        reasoning=whole(mapping(given.get("output_token_details")).get("reasoning")) or 0,
    )
    return None if usage == Usage() else Spent(model=model or "unknown", usage=usage)
