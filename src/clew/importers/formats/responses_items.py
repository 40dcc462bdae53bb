"""Items of the Responses API as messages, for Codex, the Agents SDK and recordings of the API."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from clew.domain.messages import Role, known_role
from clew.domain.parts import Part, Parts, Reasoning, Text, ToolCall, ToolResult, Unknown
from clew.importers.fields import (
    arguments,
    compact,
    ident,
    image,
    listed,
    mapping,
    meta,
    text,
    unknown,
)
from clew.importers.pieces import Piece, content, result_content

TYPES = frozenset((
    "message", "agent_message", "reasoning", "function_call", "function_call_output",
    "custom_tool_call", "custom_tool_call_output", "local_shell_call", "local_shell_call_output",
    "shell_call", "shell_call_output", "apply_patch_call", "apply_patch_call_output",
    "computer_call", "computer_call_output", "web_search_call", "file_search_call",
    "code_interpreter_call", "image_generation_call", "tool_search_call", "tool_search_output",
    "mcp_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response",
    "compaction", "compaction_summary", "context_compaction",
))  # fmt: skip
"""Items that are messages here."""

_PLAIN = (
    "message", "reasoning", "function_call", "function_call_output", "custom_tool_call",
)  # fmt: skip
"""Types that the parts of a message tell."""
_ARGUMENTS = ("arguments", "input", "action", "operation", "code", "queries", "query")
"""Where an item keeps what the model asked for."""
_ANSWERS = ("output", "outputs", "results", "result", "tools", "approve", "error")


_MARK = re.compile(
    rb'"type"\s*:\s*"(?:%s|input_text|output_text|input_image)"'
    % b"|".join(kind.encode() for kind in sorted(TYPES))
)


class Said(NamedTuple):
    """What an item says."""

    role: Role
    parts: Parts
    author: str | None = None


def has_items(head: bytes) -> bool:
    """Whether there are items of the Responses API, or pieces of their content, in a JSON text."""
    return _MARK.search(head) is not None


def kind_of(item: dict[str, Any]) -> str:
    """An item's type; an input message may have none."""
    kind = text(item.get("type"))
    return kind or ("message" if "role" in item else "")


def said(item: dict[str, Any], model: str | None = None) -> Said | None:
    """What an item says, or None when it is no message. `model` is the one that answers."""
    match kind_of(item):
        case "message":
            return _message(item)
        case "agent_message":
            author = text(item.get("author"))
            return Said(Role.USER, content(item.get("content")), author)
        case "reasoning":
            return Said(Role.ASSISTANT, (reasoning(item, model),))
        case "compaction" | "compaction_summary" | "context_compaction" | "mcp_list_tools":
            return Said(Role.ASSISTANT, (unknown(item),))
        case "mcp_approval_response":
            call = ident(item.get("approval_request_id")) or ""
            return Said(Role.TOOL, (ToolResult(call, compact(item.get("approve"))),))
        case kind if kind in TYPES and kind.endswith("_output"):
            return Said(Role.TOOL, (_result(item),))
        case kind if kind in TYPES:
            return Said(Role.ASSISTANT, (_call(item, kind),))
        case _:
            return None


def all_said(item: dict[str, Any], model: str | None = None) -> tuple[Said, ...]:
    """What an item says, and what came of it where that stands in the same item."""
    message = said(item, model)
    result = None if message is None else answered(item)
    results = () if result is None else (Said(Role.TOOL, (result,)),)
    return () if message is None else (message, *results)


def answered(item: dict[str, Any]) -> ToolResult | None:
    """Of a call that its provider ran itself: what came of it, which stands in the same item."""
    if kind_of(item) not in ("mcp_call", "code_interpreter_call", "file_search_call"):
        return None
    if item.get("error") is not None:
        return ToolResult(_call_id(item), arguments(item["error"]), is_error=True)
    for name in _ANSWERS:
        if item.get(name) is not None:
            return ToolResult(_call_id(item), _output(item[name]))
    return None


def about(item: dict[str, Any]) -> dict[str, Any] | None:
    """What else of an item is worth keeping."""
    status, kind = item.get("status"), kind_of(item)
    return meta(
        item=ident(item.get("id")),
        type=None if kind in _PLAIN else kind,
        status=None if status == "completed" else text(status),
        phase=text(item.get("phase")),
    )


def reasoning(item: dict[str, Any], model: str | None) -> Reasoning:
    """A model's thinking: its summary, then its own words where they are given."""
    words = [
        said
        for piece in [*listed(item.get("summary")), *listed(item.get("content"))]
        if (said := text(mapping(piece).get("text")))
    ]
    return Reasoning(
        "\n\n".join(words),
        model=model,
        data=text(item.get("encrypted_content")),
        id=ident(item.get("id")),
    )


def _message(item: dict[str, Any]) -> Said | None:
    role = item.get("role")
    if not known_role(role) or role == "tool":
        return None
    return Said(Role(str(role)), tuple(_part(each) for each in content(item.get("content"))))


def _part(piece: Part) -> Part:
    """A refusal is text that a person reads."""
    match piece:
        case Unknown(value={"type": "refusal", "refusal": str(refusal)}):
            return Text(refusal)
        case _:
            return piece


def _call_id(item: dict[str, Any]) -> str:
    return ident(item.get("call_id")) or ident(item.get("id")) or ""


def _call(item: dict[str, Any], kind: str) -> Part:
    if kind == "function_call":
        space = ident(item.get("namespace"))
        name, args = ident(item.get("name")) or "", arguments(item.get("arguments"))
        return ToolCall(_call_id(item), name, args, extra=meta(namespace=space))
    if kind == "custom_tool_call":
        name = ident(item.get("name")) or ""
        return ToolCall(_call_id(item), name, arguments(item.get("input")), "custom")
    if kind == "image_generation_call":
        return image(item.get("result"), "image/png") or unknown(item)
    if not _has_answer(item, kind):
        return unknown(item)
    name = ident(item.get("name")) or kind.removesuffix("_call")
    asked = next((item[each] for each in _ARGUMENTS if item.get(each) is not None), None)
    return ToolCall(_call_id(item), name, arguments(asked), extra={"type": kind})


def _has_answer(item: dict[str, Any], kind: str) -> bool:
    """Whether a call is one that a result follows: a hosted call without stays what it is, since
    a call that nobody answered cannot be sent to a model."""
    if answered(item) is not None or kind == "mcp_approval_request":
        return True
    return ident(item.get("call_id")) is not None or kind == "local_shell_call"


def _result(item: dict[str, Any]) -> ToolResult:
    if item.get("type") == "tool_search_output":
        return ToolResult(_call_id(item), compact(item.get("tools")))
    output = item.get("output")
    failed = mapping(output).get("success") is False
    return ToolResult(ident(item.get("call_id")) or "", _output(output), is_error=failed)


def _output(value: object) -> str | tuple[Piece, ...]:
    """A text, pieces of content (in a list, one alone, or in an object's `content`), or JSON."""
    fields = mapping(value)
    if value is None or isinstance(value, str):
        return result_content(value)
    if "content" in fields and "type" not in fields:
        return _output(fields["content"])
    if fields.get("type") == "computer_screenshot":
        return result_content([{**fields, "type": "input_image"}])
    if isinstance(fields.get("type"), str):
        return result_content([fields])
    if any(mapping(each).get("type") for each in listed(value)):
        return result_content(value)
    return compact(value)
