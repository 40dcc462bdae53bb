"""Chat Completions: the log as the messages of a request, each of a form that the API takes.

Only a user's message holds images and files there. Those that tools returned follow in a message of
a user, behind all results of that step. Elsewhere, or without their bytes, they are named.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from msgspec import structs

from clew.context.entries import Entry
from clew.domain.chat import BlobReader, chat_of, split_results
from clew.domain.messages import Role
from clew.domain.parts import File, Image, Part, Parts, Text, ToolResult, Unknown
from clew.exporters.text import attachment, bytes_of, dumps, json_list
from clew.exporters.transcript import Transcript

RETURNED = "Images and files that tools returned:"
_DETAILS = ("auto", "low", "high")
_CONTENT = {
    Role.USER: ("text", "image_url", "input_audio", "file"), Role.ASSISTANT: ("text", "refusal"),
}  # fmt: skip
"""Kinds of content pieces that a role's message may hold; of the others only text."""


def messages(source: Transcript) -> Iterator[dict[str, Any]]:
    """The system prompt, then every message, one for each tool result."""
    if source.prompt is not None:
        yield {"role": "system", "content": source.prompt}
    returned: list[Part] = []
    for entry in source.entries():
        if entry.role is not Role.TOOL and returned:
            yield _returned(returned, source.blob)
            returned = []
        found: list[Part] = []
        parts = tuple(_allowed(part, entry.role, source.blob, found) for part in entry.parts)
        returned += found
        yield from _messages(entry, parts, source.blob)
    if returned:
        yield _returned(returned, source.blob)


def text(source: Transcript) -> Iterator[str]:
    """The file: {"model", "messages", "tools"}."""
    fields = {} if source.info.model is None else {"model": source.info.model}
    tools = source.toolset or ()
    usable = tools and all("function" in schema for schema in tools)
    return json_list(messages(source), fields, "messages", {"tools": tools} if usable else {})


def _messages(entry: Entry, parts: Parts, blob: BlobReader) -> Iterator[dict[str, Any]]:
    for piece in split_results(parts):
        message = chat_of(entry.role, piece, blob, entry.author, entry.meta)
        if message.get("content") is None and message["role"] != "assistant":
            message["content"] = ""  # only an assistant may say nothing
        yield message


def _returned(parts: list[Part], blob: BlobReader) -> dict[str, Any]:
    return chat_of(Role.USER, (Text(RETURNED), *parts), blob)


def _allowed(part: Part, role: Role, blob: BlobReader, returned: list[Part]) -> Part:
    """A part that the role's message may hold. What tools returned and theirs may not goes to
    `returned`."""
    match part:
        case Image() | File():
            named = part.url is not None or getattr(part, "file_id", None) is not None
            if not named and bytes_of(part, blob) is None:
                return Text(f"[{attachment(part)}]")
            if isinstance(part, Image) and part.detail not in _DETAILS:
                part = structs.replace(part, detail=None)
            if role is Role.TOOL:
                returned.append(part)
            return part if role is Role.USER else Text(f"[{attachment(part)}]")
        case Unknown():
            kinds = _CONTENT.get(role, ("text",))
            return part if _kind(part.value) in kinds else Text(dumps(part.value))
        case ToolResult(content=tuple(pieces)):
            content = tuple(_allowed(piece, Role.TOOL, blob, returned) for piece in pieces)
            return structs.replace(part, content=cast(Any, content))
        case _:
            return part


def _kind(value: object) -> object:
    return cast(dict[str, object], value).get("type") if isinstance(value, dict) else None
