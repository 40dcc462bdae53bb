"""Chat Completions messages <-> drafts and messages.

`draft_of` accepts what OpenAI-compatible clients hold in their `messages` list; `chat_of` gives
it back. What neither side has a field for travels unchanged: unknown content parts in `Unknown`,
unknown keys of the message in `meta["chat"]`, and beside them, under SHAPE, in which of several
forms the content stood, where it was not the usual one. Whatever else a caller puts there adds
fields to the rendering and never replaces one.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from clew.domain.messages import Draft, Role, known_role
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
from clew.domain.text import a_text
from clew.domain.values import escape_text, json_value
from clew.errors import InputError

ChatMessage = Mapping[str, Any]
BlobReader = Callable[[str], bytes]

SHAPE = "_clew"
"""Key in `meta["chat"]`: {"content": "absent", "null", "list" or "bare"; "strings", "untyped",
"objects": places of content pieces, or calls, that were a bare text, had no type, had arguments
that were no text; "role": "function"}."""

_KEPT = frozenset(("role", "content", "tool_calls", "tool_call_id"))
"""What only parts say."""
_NAMES = frozenset(("id", "key"))
_TOOL_ROLES = ("tool", "function")
_ARGUMENTS = {"custom": "input"}
"""What the arguments are called in a kind of call, where it is another word."""

Shape = dict[str, Any]


def drafts_of(messages: Iterable[ChatMessage | Draft] | ChatMessage | Draft) -> list[Draft]:
    """Drafts from one message or several."""
    if isinstance(messages, Draft | Mapping):
        return [draft_of(cast(ChatMessage, messages))]
    if isinstance(messages, str | bytes) or not isinstance(messages, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            f"messages is a {type(messages).__name__}; pass a Chat Completions dict, a Draft, or a "
            "list of them"
        )
    drafts: list[Draft] = []
    for message in messages:
        try:
            drafts.append(draft_of(message))
        except InputError as error:
            raise InputError(f"message {len(drafts) + 1}: {error}") from None
    return drafts


def draft_of(message: ChatMessage | Draft) -> Draft:
    """A draft from a Chat Completions message; `id` becomes its key. A draft passes through."""
    if isinstance(message, Draft):
        return message
    if not isinstance(message, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            f"a message is a {type(message).__name__}; pass a Chat Completions dict (of an SDK's "
            "object: its model_dump()) or a Draft"
        )
    role = message.get("role")
    if not known_role(role) and role != "function":
        raise InputError(
            f"message role {role!r} is none of {', '.join(Role)}; pass a Chat Completions message"
        )
    if SHAPE in message:
        raise InputError(f"the message has the key {SHAPE!r}, which clew uses itself; leave it out")
    shape: Shape = {}
    if role in _TOOL_ROLES:
        taken, parts = _result_parts(message, shape)
    else:
        taken, parts = _content_parts(message, shape)
    if role == "function":
        shape["role"] = role
    name = None if role in _TOOL_ROLES else message.get("name")
    if name is not None:
        a_text("name", name)
        taken.add("name")
    chat = {k: v for k, v in message.items() if k not in taken and k not in _NAMES}
    if shape:
        chat[SHAPE] = shape
    return Draft(
        role=Role.TOOL if role == "function" else Role(cast(str, role)),
        parts=parts,
        key=_key(message),
        author=name,
        meta={"chat": chat} if chat else None,
    )


def _key(message: ChatMessage) -> str | None:
    key = message.get("key") or message.get("id")
    if key is None or isinstance(key, str):
        return key or None
    if isinstance(key, int):
        return str(key)
    raise InputError(f"the message's id is a {type(key).__name__}; pass a text")


def _content_parts(message: ChatMessage, shape: Shape) -> tuple[set[str], Parts]:
    taken = {"role", "content"}
    parts: list[Part] = []
    reasoning = message.get("reasoning_content")
    if reasoning and isinstance(reasoning, str):
        taken.add("reasoning_content")
        parts.append(Reasoning(text=reasoning))
    if "content" not in message:
        shape["content"] = "absent"
    parts.extend(_parts_of(message.get("content"), shape))
    if calls := message.get("tool_calls"):
        taken.add("tool_calls")
        if not isinstance(calls, list | tuple):
            raise InputError(f"tool_calls is a {type(calls).__name__}; pass a list of calls")
        listed = cast(Sequence[object], calls)
        parts.extend(_call_part(call, at, shape) for at, call in enumerate(listed))
    return taken, tuple(parts)


def _call_part(given: object, at: int, shape: Shape) -> ToolCall:
    if not isinstance(given, Mapping):
        raise InputError(f"tool_calls[{at}] is a {type(given).__name__}; pass a dictionary")
    call = cast(Mapping[str, Any], given)
    if "type" not in call:
        shape.setdefault("untyped", []).append(at)
    kind = str(call.get("type", "function"))
    body = call.get(kind)
    if "id" not in call or not isinstance(body, Mapping):
        raise InputError(
            f"tool_calls[{at}] needs an id and a {kind!r} with the name of the tool; add them"
        )
    fields = cast(Mapping[str, Any], body)
    word = _ARGUMENTS.get(kind, "arguments")
    arguments = fields.get(word)
    if arguments is not None and not isinstance(arguments, str):
        shape.setdefault("objects", []).append(at)
        arguments = escape_text(arguments, f"tool_calls[{at}] {word}")
    extra: dict[str, Any] = {k: v for k, v in call.items() if k not in ("id", "type", kind)}
    if inner := {k: v for k, v in fields.items() if k not in ("name", word)}:
        extra[kind] = inner
    return ToolCall(
        str(call["id"]), str(fields.get("name", "")), arguments or "", kind, extra or None
    )


def _result_parts(message: ChatMessage, shape: Shape) -> tuple[set[str], Parts]:
    content, name = message.get("content"), message.get("name")
    call = message.get("tool_call_id") or name
    if call is None:
        raise InputError("a tool message needs tool_call_id, the id of the call it answers; add it")
    if "content" not in message:
        shape["content"] = "absent"
    elif content is None:
        shape["content"] = "null"
    body: str | tuple[Any, ...]
    body = content if isinstance(content, str) else tuple(_parts_of(content, shape))
    if shape.get("content") == "list":
        del shape["content"]  # of a result a list is the usual form of what is no text
    taken = {"role", "content", "tool_call_id"}
    if name is not None:
        a_text("name", name)
        taken.add("name")
    return taken, (ToolResult(str(call), body, name),)


def _parts_of(content: object, shape: Shape) -> list[Part]:
    if content is None:
        return []
    if isinstance(content, str):
        return [Text(content)]
    if isinstance(content, bytes | bytearray | memoryview):
        raise InputError("message content is bytes; pass text, or an image or file part")
    if not isinstance(content, list | tuple):
        shape["content"] = "bare"
        return [Unknown(content)]
    pieces = cast(Sequence[object], content)
    parts = [_part_of(piece) for piece in pieces]
    if not parts or (len(parts) == 1 and type(parts[0]) is Text):
        shape["content"] = "list"
    if strings := [at for at, piece in enumerate(pieces) if isinstance(piece, str)]:
        shape["strings"] = strings
    return parts


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
            detail = rest.get("detail")
            if not rest or (len(rest) == 1 and isinstance(detail, str)):
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
    more = _more(meta)
    shape = _shape(more)
    message: dict[str, Any] = {"role": str(role)}
    if author is not None:
        message["name"] = author
    if results := [part for part in parts if isinstance(part, ToolResult)]:
        _add_result(message, results[0], shape, blob)
    else:
        calls = [part for part in parts if isinstance(part, ToolCall)]
        thinking = "".join(part.text for part in parts if isinstance(part, Reasoning))
        if thinking:
            message["reasoning_content"] = thinking
        pieces = [part for part in parts if not isinstance(part, ToolCall | Reasoning)]
        if pieces or shape.get("content") != "absent":
            message["content"] = _chat_content(pieces, shape, blob)
        if calls:
            untyped, objects = _places(shape, "untyped"), _places(shape, "objects")
            message["tool_calls"] = [
                _chat_call(call, at not in untyped, at in objects) for at, call in enumerate(calls)
            ]
    for name, value in more.items():
        if (name == "tool_calls" and not value) or (name != SHAPE and name not in _KEPT):
            message.setdefault(name, value)
    return message


def has_more(meta: Any) -> bool:
    """Whether the message had fields besides those that parts hold."""
    return any(name != SHAPE for name in _more(meta))


def is_function_result(meta: Any) -> bool:
    """Whether this was a message of the role "function", whose call is no tool call."""
    return _shape(_more(meta)).get("role") == "function"


def _more(meta: Any) -> dict[str, Any]:
    """What a caller put into `meta["chat"]`, if it is what `draft_of` puts there."""
    chat: object = cast(dict[str, Any], meta).get("chat") if isinstance(meta, dict) else None
    return cast(dict[str, Any], chat) if isinstance(chat, dict) else {}


def _shape(more: dict[str, Any]) -> Shape:
    shape: object = more.get(SHAPE)
    return cast(Shape, shape) if isinstance(shape, dict) else {}


def _places(shape: Shape, name: str) -> list[Any]:
    places: object = shape.get(name)
    return cast(list[Any], places) if isinstance(places, list) else []


def _add_result(
    message: dict[str, Any], result: ToolResult, shape: Shape, blob: BlobReader
) -> None:
    content = result.content
    if shape.get("role") == "function" and message["role"] == "tool":
        message["role"] = "function"
    else:
        message["tool_call_id"] = result.call_id
    if content or shape.get("content") not in ("absent", "null"):
        message["content"] = _result_content(result, shape, blob)
    elif shape["content"] == "null":
        message["content"] = None
    if result.name is not None:
        message["name"] = result.name


def split_results(parts: Parts) -> list[Parts]:
    """One tuple per tool result: Chat Completions holds one result in a message."""
    results = [part for part in parts if isinstance(part, ToolResult)]
    return [(part,) for part in results] if len(results) > 1 else [parts]


def _chat_call(call: ToolCall, typed: bool, as_object: bool) -> dict[str, Any]:
    arguments: Any = call.arguments
    if as_object:
        try:
            arguments = json_value(call.arguments)
        except (ValueError, RecursionError):
            pass
    extra = call.extra or {}
    inner = extra.get(call.kind)
    body: dict[str, Any] = dict(cast(dict[str, Any], inner)) if isinstance(inner, dict) else {}
    body.update({"name": call.name, _ARGUMENTS.get(call.kind, "arguments"): arguments})
    kind = {"type": call.kind} if typed else {}
    return {**extra, "id": call.id, **kind, call.kind: body}


def _result_content(result: ToolResult, shape: Shape, blob: BlobReader) -> Any:
    if isinstance(result.content, str):
        return result.content
    return _chat_pieces(result.content, shape, blob)


def _chat_content(pieces: Sequence[Part], shape: Shape, blob: BlobReader) -> Any:
    as_list = shape.get("content") == "list"
    if not pieces:
        return [] if as_list else None
    if len(pieces) == 1 and isinstance(pieces[0], Text) and not as_list:
        return pieces[0].text
    return _chat_pieces(pieces, shape, blob)


def _chat_pieces(pieces: Sequence[Part], shape: Shape, blob: BlobReader) -> Any:
    if len(pieces) == 1 and isinstance(pieces[0], Unknown) and shape.get("content") == "bare":
        return pieces[0].value
    strings = _places(shape, "strings")
    return [
        part.text if isinstance(part, Text) and at in strings else _chat_piece(part, blob)
        for at, part in enumerate(pieces)
    ]


def _chat_piece(part: Part, blob: BlobReader) -> Any:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Image():
            image: dict[str, Any] = {"url": _data_url(part, blob) if part.url is None else part.url}
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
        fields["file_data"] = _data_url(part, blob) if part.url is None else part.url
    return fields


def _data_url(part: Image | File, blob: BlobReader) -> str:
    data = part.data
    if data is None:
        if part.hash is None:
            raise InputError(f"an {type(part).__name__.lower()} needs a url, data or a stored hash")
        data = blob(part.hash)
    return f"data:{part.media_type};base64,{base64.b64encode(data).decode()}"
