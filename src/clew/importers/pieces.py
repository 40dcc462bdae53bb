"""Content and tool calls in the form of Chat Completions, as strangers write them."""

from __future__ import annotations

from typing import Any, cast

from clew.domain.parts import File, Image, Reasoning, Text, ToolCall, ToolResult, Unknown
from clew.domain.turns import Usage
from clew.importers.fields import (
    arguments,
    file_at,
    ident,
    image,
    image_at,
    listed,
    mapping,
    text,
    unknown,
    whole,
)
from clew.importers.records import Damaged, Skipped

Piece = Text | Image | File | Unknown
_TEXTS = ("text", "input_text", "output_text")


def content(value: object) -> tuple[Piece, ...]:
    """The pieces of a message's content: a text, a list of pieces, or nothing. An empty text is
    no piece."""
    if isinstance(value, list):
        return tuple(piece for each in cast(list[Any], value) for piece in _piece(each))
    return tuple(_piece(value))


def unspoken(message: dict[str, Any], kind: str, number: int) -> Skipped | Damaged:
    """What a message of no known role is: empty, so no object, or of a role that is not read."""
    if not message:
        return Damaged(f"{kind} {number}", "no object")
    return Skipped(f"{kind}/{text(message.get('role')) or 'without a role'}")


def result_content(value: object) -> str | tuple[Piece, ...]:
    """A tool result's content: text where it is only that."""
    if isinstance(value, str):
        return value
    pieces = content(value)
    if len(pieces) == 1 and isinstance(pieces[0], Text):
        return pieces[0].text
    return pieces or ""


def result(call: object, value: object, name: object = None, is_error: bool = False) -> ToolResult:
    """A tool's answer; the call is "" when the source does not name one."""
    return ToolResult(ident(call) or "", result_content(value), ident(name), is_error)


def calls(value: object) -> tuple[ToolCall, ...]:
    """The tool calls of a message's `tool_calls`; what is no call is left out."""
    found = (_call(mapping(each)) for each in listed(value))
    return tuple(call for call in found if call is not None)


def _call(given: dict[str, Any]) -> ToolCall | None:
    kind = ident(given.get("type")) or "function"
    body = mapping(given.get(kind)) or mapping(given.get("function")) or given
    name = ident(body.get("name"))
    id = ident(given.get("id")) or ident(given.get("call_id"))
    if name is None and id is None:
        return None
    word = "input" if kind == "custom" and "input" in body else "arguments"
    return ToolCall(id or "", name or "", arguments(body.get(word)), kind)


def _piece(value: object) -> list[Piece]:
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return [Text(value)]
    piece = mapping(value)
    kind = piece.get("type")
    if kind in _TEXTS and (said := text(piece.get("text"))) is not None:
        return [Text(said)] if said else []
    found = _picture(piece, kind) or _file(piece, kind)
    return [found or unknown(value)]


def _picture(piece: dict[str, Any], kind: object) -> Image | None:
    match kind:
        case "image_url" | "input_image":
            url = piece.get("image_url")
            fields = mapping(url)
            detail = fields.get("detail", piece.get("detail"))
            return image_at(fields.get("url") if fields else url, detail)
        case "image":
            source = mapping(piece.get("source")) or piece
            found = image(source.get("data"), source.get("media_type", source.get("mime_type")))
            return found or image_at(source.get("url"))
        case _:
            return None


def _file(piece: dict[str, Any], kind: object) -> File | None:
    if kind not in ("file", "input_file"):
        return None
    fields = mapping(piece.get("file")) or piece
    if found := file_at(fields.get("file_data") or fields.get("file_url"), fields.get("filename")):
        return found
    id = ident(fields.get("file_id"))
    return None if id is None else File(name=text(fields.get("filename")), file_id=id)


def thoughts(details: list[Any], plain: str | None, model: str | None) -> list[Reasoning]:
    """The provider's own items where they are kept, and the plain text, which they may lack."""
    found = [one for each in details if (one := _thought(mapping(each), model)) is not None]
    if plain and not any(one.text for one in found):
        return [Reasoning(text=plain, model=model), *found]
    return found


def _thought(item: dict[str, Any], model: str | None) -> Reasoning | None:
    said = text(item.get("text")) or text(item.get("thinking"))
    if said is None:
        pieces = listed(item.get("summary")) or [item.get("summary")]
        lines = (text(mapping(piece).get("text")) or text(piece) for piece in pieces)
        said = "\n".join(line for line in lines if line)
    data = text(item.get("encrypted_content")) or text(item.get("data"))
    signature = text(item.get("signature"))
    if not said and not data and not signature:
        return None
    return Reasoning(said, model, signature, data, ident(item.get("id")))


def usage_of(value: object) -> Usage | None:
    """The `usage` of an answer, in the words of Chat Completions or of the Responses API, which
    both count cached tokens in the input; None when it counts nothing."""
    given = mapping(value)
    asked = mapping(given.get("prompt_tokens_details")) or given.get("input_tokens_details")
    said = mapping(given.get("completion_tokens_details")) or given.get("output_tokens_details")
    cached = whole(mapping(asked).get("cached_tokens"))
    found = Usage(
        input=whole(given.get("prompt_tokens")) or whole(given.get("input_tokens")) or 0,
        output=whole(given.get("completion_tokens")) or whole(given.get("output_tokens")) or 0,
        cached=cached or whole(given.get("cache_read_input_tokens")) or 0,
        reasoning=whole(mapping(said).get("reasoning_tokens")) or 0,
    )
    return None if found == Usage() else found
