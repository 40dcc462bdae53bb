"""What is in a piece of content of a kind that clew does not know: text, and images and files.

Such a piece is kept verbatim, bytes as base64 in the middle of it. To a model they are an image or
a file; counted as text a screenshot would fill a window.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from clew.context.images import dimensions
from clew.domain.parts import File, Image
from clew.domain.values import MAX_DEPTH

_PACKED = re.compile(r"[A-Za-z0-9+/_\-\s]{256,}+={0,2}+\s*+")
_RUN = re.compile(r"\S{60}")
"""Base64 is broken into lines of 76 characters, or 64, if at all; a word ends before."""
_HEAD = 1 << 17
"""Characters of base64 in which the size of an image must be found."""
_NAMES = ("media_type", "mime_type", "mimeType", "mediaType", "mediatype")
_ADDRESSES = ("url", "uri", "fileUri", "file_uri", "file_id", "image_url", "file_url")
_PICTURE = re.compile(r"((in|out)put_)?image(_url|_file)?|computer_screenshot")
_PAPER = re.compile(r"((in|out)put_)?(file|document|audio|video)(_url)?")


class Opened(NamedTuple):
    """`text`: the piece as JSON without the bytes in it; `media`: what these bytes, and the
    addresses of images and files, stand for."""

    text: str
    media: tuple[Image | File, ...]


def opened(value: object) -> Opened:
    """The text and the media of a piece."""
    media: list[Image | File] = []
    rest = _without(value, {}, media, 0)
    return Opened(json.dumps(rest, ensure_ascii=False, default=str), tuple(media))


def _without(
    value: object, around: Mapping[str, Any], media: list[Image | File], depth: int
) -> Any:
    """The value without its bytes. What is nested deeper than a store takes is left out."""
    if isinstance(value, str):
        found = _medium(value, around)
        if found is None:
            return value
        media.append(found)
        return ""
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, Mapping):
        fields = cast(Mapping[str, Any], value)
        before = len(media)
        rest = {str(k): _without(v, fields, media, depth + 1) for k, v in fields.items()}
        if all(m.size is None for m in media[before:]) and (elsewhere := _elsewhere(fields)):
            media[before:] = [elsewhere]
        return rest
    if isinstance(value, list | tuple):
        items = cast(Sequence[object], value)
        return [_without(item, around, media, depth + 1) for item in items]
    return value


def _elsewhere(fields: Mapping[str, Any]) -> Image | File | None:
    """An image or file that is named by an address or an id."""
    nested = [cast(Mapping[str, Any], v) for v in fields.values() if isinstance(v, Mapping)]
    if not any(_text(each, name) for each in (fields, *nested) for name in _ADDRESSES):
        return None
    kind, media_type = _text(fields, "type") or "", _type_of(fields)
    if _PICTURE.fullmatch(kind) or (not kind and media_type.startswith("image/")):
        return Image(detail=_text(fields, "detail"))
    known = not kind and any(name in fields for name in _NAMES)
    return File(media_type=media_type) if _PAPER.fullmatch(kind) or known else None


def _medium(text: str, around: Mapping[str, Any]) -> Image | File | None:
    """The image or file that a text is, if it is one."""
    if text.startswith("data:"):
        return in_data_url(text, _text(around, "detail"))
    if len(text) < 256 or not _PACKED.fullmatch(text) or not _RUN.search(text):
        return None
    return _of(text, _type_of(around), _text(around, "detail"))


def in_data_url(url: str, detail: str | None = None) -> Image | File | None:
    """The image or file in a data: URL; None if that holds text, or is none."""
    head, comma, body = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return _of(body, head[5:-7].split(";")[0], detail)


def _of(packed: str, media_type: str, detail: str | None) -> Image | File:
    data = _bytes(packed[:_HEAD])
    size = len(packed) * 3 // 4
    pixels = dimensions(data)
    if pixels is None and not media_type.startswith("image/"):
        paper = "application/pdf" if data.startswith(b"%PDF") else media_type
        return File(media_type=paper, size=size)
    width, height = pixels or (None, None)
    return Image(media_type=media_type, size=size, detail=detail, width=width, height=height)


def _bytes(packed: str) -> bytes:
    """The bytes of base64 as far as they can be read, with either alphabet."""
    letters = "".join(packed.split()).translate({45: 43, 95: 47}).rstrip("=")
    try:
        return base64.b64decode(letters[: len(letters) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


def _type_of(fields: Mapping[str, Any]) -> str:
    return next((t for name in _NAMES if (t := _text(fields, name))), "application/octet-stream")


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) else None
