"""What an MCP server answers to a call, as parts of a message."""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Iterable, Iterator
from typing import Any, cast

import mcp.types as mcp

from clew.domain.parts import File, Image, Text, Unknown
from clew.tools.api import ToolOutput

_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What models look at; another image is a file."""
_LARGEST = 32 << 20
"""Bytes of one image or file; the store takes more, no model does."""

Piece = Text | Image | File | Unknown


def answer(result: mcp.CallToolResult) -> ToolOutput:
    """The content in its order; structured content where no text says the same. Text alone is one
    text; nothing at all says so, because some providers refuse an empty result."""
    pieces = [piece for block in result.content for piece in _block(block)]
    pieces += _structured(result.structured_content, pieces)
    texts = [piece.text for piece in pieces if isinstance(piece, Text)]
    content = "\n".join(texts) if len(texts) == len(pieces) else tuple(pieces)
    return ToolOutput(content or "(no output)", is_error=bool(result.is_error))


def _block(block: mcp.ContentBlock) -> Iterator[Piece]:
    match block:
        case mcp.TextContent():
            yield Text(block.text)
        case mcp.ImageContent() | mcp.AudioContent():
            yield _bytes(block.data, block.mime_type, None)
        case mcp.ResourceLink():
            yield Text(_link(block))
        case mcp.EmbeddedResource():
            yield from _resource(block.resource)
        case _:
            yield Text(f"[content of a kind that is not known: {type(block).__name__}]")


def _resource(resource: mcp.TextResourceContents | mcp.BlobResourceContents) -> Iterator[Piece]:
    uri = str(resource.uri)
    if isinstance(resource, mcp.TextResourceContents):
        yield Text(f"[resource {uri}]\n{resource.text}")
        return
    yield Text(f"[resource {uri}]")
    yield _bytes(resource.blob, resource.mime_type or "application/octet-stream", uri)


def _link(link: mcp.ResourceLink) -> str:
    about = ", ".join(filter(None, (link.mime_type, link.description)))
    return f"[resource {link.name}: {link.uri}{f' ({about})' if about else ''}]"


def _bytes(data: str, media_type: str, uri: str | None) -> Piece:
    if len(data) // 4 * 3 > _LARGEST:
        return Text(f"[{media_type} of {len(data) // 4 * 3:,} bytes left out: too large]")
    try:
        decoded = b64decode(data, validate=True)
    except (NoBase64, ValueError):
        return Text(f"[{media_type} left out: it is no base64]")
    if media_type in _PICTURES:
        return Image(media_type=media_type, data=decoded)
    name = uri.rstrip("/").rsplit("/", 1)[-1] if uri else None
    return File(media_type=media_type, name=name, data=decoded)


def _structured(value: Any, pieces: Iterable[Piece]) -> list[Piece]:
    if value is None or any(_says(piece, value) for piece in pieces):
        return []
    return [Text(json.dumps(value, ensure_ascii=False))]


def _says(piece: Piece, value: Any) -> bool:
    """Whether a text is this value as JSON: servers send it twice, for clients that know less. What
    is not an object they wrap in one, as its `result`; that is as well said without it."""
    if not isinstance(piece, Text):
        return False
    inner = _wrapped(value)
    if inner is not None and piece.text == inner:
        return True
    try:
        said = json.loads(piece.text)
    except (ValueError, RecursionError):
        return False
    return bool(said == value or (inner is not None and said == inner))


def _wrapped(value: Any) -> Any:
    """What stands in an object of `result` alone."""
    if not isinstance(value, dict):
        return None
    entries = cast(dict[str, Any], value)
    return entries["result"] if entries.keys() == {"result"} else None
