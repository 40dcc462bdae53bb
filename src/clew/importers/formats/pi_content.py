"""Messages of the pi coding agent as roles, parts and costs."""

from __future__ import annotations

from typing import Any, cast

from clew.domain.messages import Role
from clew.domain.parts import (
    File,
    Image,
    Part,
    Parts,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)
from clew.domain.turns import Usage
from clew.importers.fields import (
    arguments,
    flag,
    ident,
    image,
    listed,
    mapping,
    number,
    small,
    text,
    unknown,
    whole,
)
from clew.importers.records import Spent

Fields = dict[str, Any]
Said = tuple[Role, Parts]

_PLAIN_STOPS = (None, "stop", "toolUse")


def said(message: Fields) -> Said | None:
    """Role and parts; None of a message that the model is not shown."""
    content = message.get("content")
    match message.get("role"):
        case "user" | "custom" | "hookMessage":
            return Role.USER, _parts(content)
        case "assistant":
            return Role.ASSISTANT, _parts(content, text(message.get("model")))
        case "toolResult":
            return Role.TOOL, (_result(message),)
        case "bashExecution" if not message.get("excludeFromContext"):
            return Role.USER, (Text(_ran(message)),)
        case _:
            return None


def _parts(content: object, model: str | None = None) -> Parts:
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if not isinstance(content, list):
        return (unknown(content),)
    return tuple(_part(block, model) for block in listed(cast(object, content)))


def _part(block: object, model: str | None) -> Part:
    fields = mapping(block)
    match fields.get("type"):
        case "thinking":
            return Reasoning(
                text(fields.get("thinking")) or "", model, text(fields.get("thinkingSignature"))
            )
        case "toolCall":
            return ToolCall(
                ident(fields.get("id")) or "",
                text(fields.get("name")) or "",
                arguments(fields.get("arguments")),
                extra=small({"thoughtSignature": fields.get("thoughtSignature")}),
            )
        case _:
            return _shown(block)


def _shown(block: object) -> Text | Image | File | Unknown:
    """A block as a user or tool may give it."""
    if isinstance(block, str):
        return Text(block)
    fields = mapping(block)
    words = fields.get("text")
    if fields.get("type") == "text" and isinstance(words, str):
        return Text(words)
    if fields.get("type") == "image":
        return image(fields.get("data"), fields.get("mimeType")) or unknown(block)
    return unknown(block)


def _result(message: Fields) -> ToolResult:
    content: object = message.get("content")
    found: str | tuple[Text | Image | File | Unknown, ...]
    if content is None or isinstance(content, str):
        found = content or ""
    else:
        blocks = listed(cast(object, content)) if isinstance(content, list) else [content]
        found = tuple(_shown(block) for block in blocks) or ""
        if len(found) == 1 and isinstance(found[0], Text):
            found = found[0].text
    return ToolResult(
        ident(message.get("toolCallId")) or "",
        found,
        ident(message.get("toolName")),
        flag(message.get("isError")),
    )


def _ran(message: Fields) -> str:
    """What the model is told of a command that the user ran."""
    output = text(message.get("output"))
    lines = [f"Ran `{text(message.get('command')) or ''}`"]
    lines.append(f"```\n{output}\n```" if output else "(no output)")
    if message.get("cancelled"):
        lines.append("(command cancelled)")
    elif code := number(message.get("exitCode")):
        lines.append(f"Command exited with code {code:g}")
    return "\n".join(lines)


def spent(message: Fields) -> Spent | None:
    """What an assistant's message cost."""
    usage, model = mapping(message.get("usage")), ident(message.get("model"))
    cached = whole(usage.get("cacheRead")) or 0
    written = whole(usage.get("cacheWrite")) or 0
    tokens = Usage(
        input=(whole(usage.get("input")) or 0) + written + cached,
        output=whole(usage.get("output")) or 0,
        cached=cached,
    )
    if model is None or not (tokens.input or tokens.output):
        return None
    cost = number(mapping(usage.get("cost")).get("total"))
    return Spent(model=model, usage=tokens, cost=cost if cost is None or cost >= 0 else None)


def facts(message: Fields) -> Fields:
    """What else is kept of a message."""
    stop = message.get("stopReason")
    return {
        "stopReason": None if stop in _PLAIN_STOPS else text(stop),
        "errorMessage": text(message.get("errorMessage")),
        "customType": text(message.get("customType")),
        "command": text(message.get("command")),
    }
