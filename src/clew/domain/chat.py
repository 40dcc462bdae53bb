"""Chat Completions messages <-> drafts and messages.

`draft_of` accepts what OpenAI-compatible clients hold in their `messages` list; `chat_of` gives
it back. What neither side has a field for travels unchanged: unknown content parts in `Unknown`,
unknown keys of the message in `meta["chat"]`.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from clew.domain.messages import Draft, Role
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
from clew.errors import InputError

ChatMessage = Mapping[str, Any]
BlobReader = Callable[[str], bytes]

_KNOWN = frozenset(
    ("role", "content", "tool_calls", "tool_call_id", "name", "reasoning_content", "id", "key")
)
_ROLES = frozenset((*(str(role) for role in Role), "function"))
_TOOL_ROLES = ("tool", "function")
_ARGUMENTS = {"custom": "input"}
"""What the arguments are called in a kind of call, where it is another word."""


def draft_of(message: ChatMessage | Draft) -> Draft:
    """A draft from a Chat Completions message; `id` becomes its key. A draft passes through."""
    if isinstance(message, Draft):
        return message
    if not isinstance(message, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            f"a message is a {type(message).__name__}; pass a Chat Completions dict or a Draft"
        )
    role = message.get("role")
    if role not in _ROLES:
        raise InputError(
            f"message role {role!r} is none of {', '.join(Role)}; pass a Chat Completions message"
        )
    meta = {k: v for k, v in message.items() if k not in _KNOWN}
    parts = _result_parts(message) if role in _TOOL_ROLES else _content_parts(message)
    key = message.get("key") or message.get("id")
    return Draft(
        role=Role.TOOL if role == "function" else Role(cast(str, role)),
        parts=parts,
        key=None if key is None else str(key),
        author=message.get("name") if role not in _TOOL_ROLES else None,
        meta={"chat": meta} if meta else None,
    )


def _content_parts(message: ChatMessage) -> Parts:
    parts: list[Part] = []
    if reasoning := message.get("reasoning_content"):
        parts.append(Reasoning(text=str(reasoning)))
    parts.extend(_parts_of(message.get("content")))
    parts.extend(map(_call_part, message.get("tool_calls") or ()))
    return tuple(parts)


def _call_part(call: Mapping[str, Any]) -> ToolCall:
    kind = str(call.get("type", "function"))
    body = call.get(kind)
    if "id" not in call or not isinstance(body, Mapping):
        raise InputError(f"a tool call needs an id and a {kind!r} with the name of the tool")
    fields = cast(Mapping[str, Any], body)
    arguments = fields.get(_ARGUMENTS.get(kind, "arguments"), "")
    extra = {name: value for name, value in call.items() if name not in ("id", "type", kind)}
    return ToolCall(
        str(call["id"]),
        str(fields.get("name", "")),
        arguments if isinstance(arguments, str) else json.dumps(arguments),
        kind,
        extra or None,
    )


def _result_parts(message: ChatMessage) -> Parts:
    content = message.get("content")
    call = message.get("tool_call_id") or message.get("name")
    if call is None:
        raise InputError("a tool message needs tool_call_id, the id of the call it answers")
    body: str | tuple[Any, ...]
    body = content if isinstance(content, str) else tuple(_parts_of(content))
    return (ToolResult(str(call), body, message.get("name")),)


def _parts_of(content: object) -> list[Part]:
    if content is None:
        return []
    if isinstance(content, str):
        return [Text(content)]
    if isinstance(content, bytes | bytearray | memoryview):
        raise InputError("message content is bytes; pass text, or an image or file part")
    if not isinstance(content, Sequence):
        return [Unknown(content)]
    return [_part_of(piece) for piece in cast(Sequence[object], content)]


def _part_of(piece: object) -> Part:
    if isinstance(piece, str):
        return Text(piece)
    if not isinstance(piece, Mapping):
        return Unknown(piece)
    fields = cast(Mapping[str, Any], piece)
    match fields:
        case {"type": "text", "text": str(text)} if len(fields) == 2:
            return Text(text)
        case {"type": "image_url", "image_url": {"url": str(url), **rest}} if len(fields) == 2:
            detail = rest.pop("detail", None)
            if not rest:
                return _image(url, detail)
        case _:
            pass
    return Unknown(dict(fields))


def _image(url: str, detail: str | None) -> Image:
    """A data URL becomes bytes; anything else stays a URL."""
    head, comma, body = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        try:
            data = base64.b64decode(body, validate=True)
        except (binascii.Error, ValueError):
            return Image(url=url, detail=detail)
        if base64.b64encode(data).decode() == body:  # else the URL would not come back unchanged
            return Image(media_type=head[5:-7], data=data, detail=detail)
    return Image(url=url, detail=detail)


def chat_of(
    role: Role, parts: Parts, blob: BlobReader, author: str | None = None, meta: Any = None
) -> dict[str, Any]:
    """A Chat Completions message. `blob` reads the bytes of an image by its hash."""
    message: dict[str, Any] = {"role": str(role)}
    if author is not None:
        message["name"] = author
    if results := [part for part in parts if isinstance(part, ToolResult)]:
        message["content"] = _result_content(results[0], blob)
        message["tool_call_id"] = results[0].call_id
        if results[0].name is not None:
            message["name"] = results[0].name
    else:
        calls = [_chat_call(part) for part in parts if isinstance(part, ToolCall)]
        thinking = "".join(part.text for part in parts if isinstance(part, Reasoning))
        if thinking:
            message["reasoning_content"] = thinking
        message["content"] = _chat_content(parts, blob)
        if calls:
            message["tool_calls"] = calls
    if isinstance(meta, dict):
        message.update(cast(dict[str, Any], meta).get("chat", {}))
    return message


def split_results(parts: Parts) -> list[Parts]:
    """One tuple per tool result: Chat Completions holds one result in a message."""
    results = [part for part in parts if isinstance(part, ToolResult)]
    return [(part,) for part in results] if len(results) > 1 else [parts]


def _chat_call(call: ToolCall) -> dict[str, Any]:
    body = {"name": call.name, _ARGUMENTS.get(call.kind, "arguments"): call.arguments}
    return {"id": call.id, "type": call.kind, call.kind: body, **(call.extra or {})}


def _result_content(result: ToolResult, blob: BlobReader) -> Any:
    if isinstance(result.content, str):
        return result.content
    return [_chat_piece(part, blob) for part in result.content]


def _chat_content(parts: Parts, blob: BlobReader) -> Any:
    pieces = [part for part in parts if not isinstance(part, ToolCall | Reasoning)]
    if not pieces:
        return None
    if len(pieces) == 1 and isinstance(pieces[0], Text):
        return pieces[0].text
    return [_chat_piece(part, blob) for part in pieces]


def _chat_piece(part: Part, blob: BlobReader) -> Any:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Image():
            image: dict[str, Any] = {"url": part.url or _data_url(part, blob)}
            if part.detail is not None:
                image["detail"] = part.detail
            return {"type": "image_url", "image_url": image}
        case File():
            return {"type": "file", "file": _file(part, blob)}
        case Unknown(value=value):
            return value
        case _:
            raise InputError(f"{type(part).__name__} has no place in message content")


def _file(part: File, blob: BlobReader) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if part.name is not None:
        fields["filename"] = part.name
    if part.file_id is not None:
        fields["file_id"] = part.file_id
    else:
        fields["file_data"] = part.url or _data_url(part, blob)
    return fields


def _data_url(part: Image | File, blob: BlobReader) -> str:
    data = part.data
    if data is None:
        if part.hash is None:
            raise InputError(f"an {type(part).__name__.lower()} needs a url, data or a stored hash")
        data = blob(part.hash)
    return f"data:{part.media_type};base64,{base64.b64encode(data).decode()}"
