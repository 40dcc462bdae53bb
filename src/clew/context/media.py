"""Images, files and pieces of foreign kinds as a request may hold them: bytes as base64, or a few
words."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any, cast

from msgspec import structs

from clew.context.unknowns import opened
from clew.domain.chat import BlobReader
from clew.domain.parts import File, Image, Part, Text
from clew.errors import NotFound

_SURROGATES = re.compile("[\ud800-\udfff]+")
_LABEL = 1000
"""Characters of a label; names of files may be longer than they should be."""


def bytes_of(part: Image | File, blob: BlobReader) -> bytes | None:
    """Its bytes, where the store has them."""
    if part.data is not None or part.hash is None:
        return part.data
    try:
        return blob(part.hash)
    except NotFound:
        return None


def base64_of(part: Image | File, blob: BlobReader) -> str | None:
    data = bytes_of(part, blob)
    return None if data is None else base64.b64encode(data).decode()


def data_url(part: Image | File, blob: BlobReader) -> str | None:
    """A data URL of its bytes, where the store has them."""
    encoded = base64_of(part, blob)
    return None if encoded is None else f"data:{part.media_type};base64,{encoded}"


def label(part: Image | File) -> str:
    """What it is, in a few words, for where it cannot stand itself."""
    name = part.name if isinstance(part, File) else None
    size = "" if part.size is None else f"{part.size:,} bytes"
    kind = "image" if isinstance(part, Image) else "file"
    words = " ".join(" ".join(filter(None, (kind, name, part.media_type, size))).split())
    return f"[{words if len(words) <= _LABEL else words[: _LABEL - 1] + '…'}]"


def translated(value: object) -> Part | None:
    """A piece of a foreign kind as a part: text, images and documents as other APIs have them. None
    for what is none of these."""
    if not isinstance(value, dict):
        return None
    fields = cast(dict[str, Any], value)
    match fields:
        case {"type": "text" | "input_text" | "output_text", "text": str(text)}:
            return Text(text)
        case {"type": "image", "source": source}:
            return _sourced(Image(), source)
        case {"type": "image", "mimeType": str(kind), "data": str(body)}:
            return _packed(Image(media_type=kind), body)
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return _at(Image(), url)
        case {"type": "image_url" | "input_image", "image_url": str(url)}:
            return _at(Image(), url)
        case {"type": "document", "source": source}:
            return _sourced(File("application/pdf", _name(fields, "title")), source)
        case {"type": "input_file", "file_data": str(url)}:
            return _at(File(name=_name(fields, "filename")), url)
        case {"type": "file", "file": {"file_data": str(url)}}:
            return _at(File(name=_name(fields["file"], "filename")), url)
        case _:
            return None


def _sourced(part: Image | File, source: object) -> Image | File | None:
    """With what an Anthropic source says."""
    match source:
        case {"type": "base64", "media_type": str(kind), "data": str(body)}:
            return _packed(structs.replace(part, media_type=kind), body)
        case {"type": "url", "url": str(url)}:
            return structs.replace(part, url=url)
        case {"type": "text", "data": str(text)} if isinstance(part, File):
            return structs.replace(part, media_type="text/plain", data=utf8(text).encode())
        case _:
            return None


def _name(fields: dict[str, Any], field: str) -> str | None:
    name = fields.get(field)
    return name if isinstance(name, str) else None


def _at(part: Image | File, url: str) -> Image | File | None:
    """With the bytes of a data URL, or at an address."""
    head, comma, body = url.partition(",")
    if not url.startswith("data:"):
        return structs.replace(part, url=url)
    if not comma or not head.endswith(";base64"):
        return None
    return _packed(structs.replace(part, media_type=head[5:-7].split(";")[0]), body)


def _packed(part: Image | File, body: str) -> Image | File | None:
    try:
        data = base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return None
    return structs.replace(part, data=data)


def words(value: object) -> str:
    """A piece of a foreign kind as JSON. Bytes in it are named and left out: as text they would
    fill a window, and no model can read them."""
    found = opened(value)
    packed = [medium for medium in found.media if medium.size]
    if not packed:
        return dumps(value)
    return " ".join((utf8(found.text), *map(label, packed)))


def dumps(value: object) -> str:
    """JSON on one line; what UTF-8 cannot hold stands escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if text.isascii() else _SURROGATES.sub(_escaped, text)


def utf8(text: str) -> str:
    """Text that a request can carry: a pair of surrogates becomes what it means, a lone one U+FFFD.
    JSON text with one is refused by providers, or cannot be encoded at all."""
    return text if text.isascii() else _SURROGATES.sub(_character, text)


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"\\u{ord(unit):04x}" for unit in found[0])


def _character(found: re.Match[str]) -> str:
    return found[0].encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")
