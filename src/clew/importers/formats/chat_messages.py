"""Messages of Chat Completions as strangers write them."""

from __future__ import annotations

from typing import Any

from clew.domain.messages import Role, known_role
from clew.domain.parts import Part, Reasoning, Text, ToolCall, ToolResult
from clew.importers.fields import arguments, ident, mapping, meta, text
from clew.importers.formats.responses_items import Said, kind_of, said
from clew.importers.pieces import calls, content, result_content

KEYS = frozenset((
    "role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio",
    "annotations", "reasoning", "reasoning_content", "reasoning_details", "thinking_blocks",
    "provider_specific_fields", "weight", "id", "prefix", "partial", "cache_control", "images",
))  # fmt: skip
"""What a message may have, of OpenAI and of those that took its form."""


def chat_said(message: dict[str, Any], model: str | None = None) -> Said | None:
    """What a message says, or None when its role is none. Items of the Responses API among the
    messages are read too."""
    role = message.get("role")
    if role is None or role == "agent":
        return said(message, model) if kind_of(message) else None
    if role in ("tool", "function"):
        return Said(Role.TOOL, (_result(message),))
    if not known_role(role):
        return None
    parts: list[Part] = []
    if thought := text(message.get("reasoning_content")) or text(message.get("reasoning")):
        parts.append(Reasoning(thought, model=model))
    parts += content(message.get("content"))
    if refusal := text(message.get("refusal")):
        parts.append(Text(refusal))
    parts += calls(message.get("tool_calls"))
    if (old := _old_call(message)) is not None:
        parts.append(old)
    return Said(Role(str(role)), tuple(parts), text(message.get("name")))


def chat_about(message: dict[str, Any]) -> dict[str, Any] | None:
    """What else of a message is worth keeping."""
    details = message.get("reasoning_details")
    return meta(refusal=bool(message.get("refusal")), reasoning_details=details)


def _result(message: dict[str, Any]) -> ToolResult:
    name = ident(message.get("name"))
    call = ident(message.get("tool_call_id")) or name or ""
    return ToolResult(call, result_content(message.get("content")), name)


def _old_call(message: dict[str, Any]) -> ToolCall | None:
    """The one call that a message could make before there were lists of them: it had no id, and
    its result names the function."""
    asked = mapping(message.get("function_call"))
    name = ident(asked.get("name"))
    return None if name is None else ToolCall(name, name, arguments(asked.get("arguments")))
