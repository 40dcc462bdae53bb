"""Content blocks of Claude Code records as parts of messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

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
from clew.importers.decode import decode
from clew.importers.fields import (
    decoded,
    ident,
    image,
    lasted,
    listed,
    mapping,
    media,
    unknown,
    whole,
)
from clew.importers.formats.claude_code_lines import (
    NOTHING,
    Block,
    Entry,
    Line,
    Media,
    Tokens,
    content_of,
)
from clew.importers.records import Spent

SYNTHETIC = "<synthetic>"
"""The `model` of messages that Claude Code itself wrote."""

_KIND = 60
_ATTACHMENT = re.compile(rb'\{"type":\s*"(\w{1,50})"')

Inner = Text | Image | File | Unknown


def model_of(line: Line) -> str | None:
    """The model that made this message."""
    model = line.message.model if line.message else None
    return None if model == SYNTHETIC else model


def parts_of(entry: Entry) -> Parts:
    """The parts of a record that has a message."""
    message = entry.line.message
    content = message.content if message else None
    if isinstance(content, str):
        return (Text(content),) if content else ()
    blocks = content or []
    if len(blocks) == 1:  # most
        return (_part(blocks[0], 0, entry),)
    return tuple(_part(block, at, entry) for at, block in enumerate(blocks))


def _part(block: Block, at: int, entry: Entry) -> Part:
    line = entry.line
    match block.type:
        case "text" if block.text is not None:
            return Text(block.text)
        case "tool_use":
            arguments = bytes(block.input).decode("utf-8", "replace")
            return ToolCall(block.id or line.uuid or "", block.name or "", arguments)
        case "tool_result":
            call = block.tool_use_id or line.source_tool_assistant_uuid or ""
            return ToolResult(call, _result(block, at, entry), is_error=block.is_error is True)
        case "thinking":
            return Reasoning(block.thinking or "", model_of(line), block.signature)
        case "redacted_thinking":
            return Reasoning(model=model_of(line), data=block.data)
        case _:
            return _attached(block) or unknown(_verbatim(entry, at))


def _attached(block: Block) -> Image | File | None:
    """An image or document."""
    source = block.source
    if source is None:
        return None
    if block.type == "image":
        return Image(url=source.url) if source.url else image(source.data, source.media_type)
    if block.type == "document":
        return _document(source, block.title)
    return None


def _document(source: Media, title: str | None) -> File | None:
    if source.url:
        return File(media(source.media_type, "application/pdf"), title, url=source.url)
    if source.type == "text" and source.data is not None:
        return File(
            media(source.media_type, "text/plain"), title, source.data.encode("utf-8", "replace")
        )
    data = decoded(source.data)
    kind = media(source.media_type, "application/pdf")
    return None if data is None else File(kind, title, data)


def _result(block: Block, at: int, entry: Entry) -> str | tuple[Inner, ...]:
    """What a tool answered: text where it is no more than one text."""
    content = block.content
    if content is None or isinstance(content, str):
        return content or ""
    if len(content) == 1 and content[0].type == "text":
        return content[0].text or ""
    return tuple(_inner(inner, i, at, entry) for i, inner in enumerate(content)) or ""


def _inner(block: Block, i: int, at: int, entry: Entry) -> Inner:
    if block.type == "text" and block.text is not None:
        return Text(block.text)
    if (found := _attached(block)) is not None:
        return found
    outer = _verbatim(entry, at)
    inner = mapping(outer).get("content")
    return unknown(_at(inner, i))


def _verbatim(entry: Entry, at: int) -> object:
    """A block with all its fields."""
    content = mapping(entry.whole().get("message")).get("content")
    return _at(content, at)


def _at(content: object, at: int) -> object:
    """An element of a list; what is no list is its only element."""
    if not isinstance(content, list):
        return content
    values = cast(Sequence[object], listed(cast(object, content)))
    return values[at] if at < len(values) else None


def queued_of(entry: Entry) -> Parts:
    """What a user typed while the agent worked: it stands in an attachment and nowhere else. Empty
    when the attachment is another one."""
    if b"queued_command" not in bytes(entry.line.attachment):
        return ()
    attachment = mapping(entry.whole().get("attachment"))
    if attachment.get("type") != "queued_command" or attachment.get("commandMode") != "prompt":
        return ()
    content = content_of(attachment.get("prompt"))
    if isinstance(content, str):
        return (Text(content),) if content else ()
    parts: list[Part] = []
    for block in content or ():
        if block.type == "text" and block.text is not None:
            parts.append(Text(block.text))
        elif (found := _attached(block)) is not None:
            parts.append(found)
    return tuple(parts)


def agent_of(line: Line) -> str | None:
    """The sub-agent whose result this record holds."""
    if b'"agentId"' not in bytes(line.tool_use_result):
        return None
    try:
        return ident(mapping(decode(bytes(line.tool_use_result))).get("agentId"))
    except ValueError:
        return None


def retracted(line: Line) -> list[str]:
    """Records that the tool took back, oldest first."""
    if line.retracted == NOTHING:
        return []
    try:
        given = listed(decode(bytes(line.retracted)))
    except ValueError:
        return []
    return [uuid for each in given if (uuid := ident(each))]


def kind_of(entry: Entry) -> str:
    """What a record that is no message is called."""
    line = entry.line
    kind = line.type or "no type"
    if kind == "system" and line.subtype:
        return f"system/{line.subtype}"[:_KIND]
    if kind == "attachment" and (found := _ATTACHMENT.match(bytes(line.attachment))):
        return f"attachment/{found[1].decode('ascii')}"
    return kind[:_KIND]


def role_of(line: Line, parts: Parts) -> Role:
    """Who speaks: in Claude Code a user's record can be a tool's."""
    if line.type == "assistant":
        return Role.ASSISTANT
    return Role.TOOL if any(type(part) is ToolResult for part in parts) else Role.USER


def spent_of(line: Line) -> Spent | None:
    """What the API message of this record cost, as far as the record says."""
    model = model_of(line)
    if line.message is None or line.message.usage is None or model is None:
        return None
    usage = _usage(line.message.usage)
    if not (usage.input or usage.output):
        return None
    if line.cost is None and line.duration_ms is None:  # all but the oldest
        return Spent(model=model, usage=usage)
    cost = line.cost if line.cost is not None and line.cost >= 0 else None
    return Spent(model=model, usage=usage, cost=cost, latency=lasted(line.duration_ms))


def _usage(tokens: Tokens) -> Usage:
    cached = whole(tokens.cache_read_input_tokens) or 0
    written = whole(tokens.cache_creation_input_tokens) or 0
    details = tokens.output_tokens_details
    return Usage(
        input=(whole(tokens.input_tokens) or 0) + written + cached,
        output=whole(tokens.output_tokens) or 0,
        cached=cached,
        reasoning=(whole(details.thinking_tokens) or 0) if details else 0,
    )
