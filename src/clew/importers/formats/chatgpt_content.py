"""What a message of a ChatGPT export holds: text, images, attached files, thinking.

Images and files are not in the JSON: it points to files that lie beside it in the archive.
"""

from __future__ import annotations

import re
from typing import Any

from clew.domain.parts import File, Image, Reasoning, Text, Unknown
from clew.importers.fields import BLOB, ident, listed, mapping, media, text, unknown, whole
from clew.importers.source import Source

Piece = Text | Image | File | Unknown
_FILE = re.compile(r"file[-_][A-Za-z0-9]+")
_SIGNS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
)
_PLAIN = ("code", "execution_output", "tether_quote", "system_error")
"""Types of content whose words stand in `text`."""


def kind(message: dict[str, Any]) -> str:
    """The type of its content."""
    return text(mapping(message.get("content")).get("content_type")) or "text"


def words(message: dict[str, Any]) -> str:
    """All its text, for what takes nothing but text, such as a call's arguments."""
    content = mapping(message.get("content"))
    if (plain := text(content.get("text"))) is not None:
        return plain
    return "\n".join(part for part in listed(content.get("parts")) if isinstance(part, str))


def is_empty(message: dict[str, Any]) -> bool:
    """Whether nothing is in it."""
    content = mapping(message.get("content"))
    held = any(listed(content.get("parts"))) or any(
        value for name, value in content.items() if name not in ("content_type", "parts")
    )
    return not held and not listed(mapping(message.get("metadata")).get("attachments"))


def thinking(message: dict[str, Any], model: str | None) -> Reasoning:
    """The thoughts of a message of type `thoughts` or `reasoning_recap`."""
    content = mapping(message.get("content"))
    said = [text(content.get("content")) or ""]
    for thought in map(mapping, listed(content.get("thoughts"))):
        both = (text(thought.get("summary")), text(thought.get("content")))
        said.append("\n".join(line for line in both if line))
    return Reasoning("\n\n".join(each for each in said if each), model=model)


def pieces(source: Source, message: dict[str, Any]) -> tuple[Piece, ...]:
    """Text, images and files of a message, in their order; what was attached to it comes last."""
    content = mapping(message.get("content"))
    match kind(message):
        case "text" | "multimodal_text":
            found = [_piece(source, part) for part in listed(content.get("parts")) if part]
        case "tether_browsing_display":
            found = _texts(content.get("result"), content.get("summary"))
        case name if name in _PLAIN:
            found = _texts(content.get("text"))
        case _:
            found = [unknown(content)]
    return (*found, *_attached(source, message))


def _texts(*values: object) -> list[Piece]:
    return [Text(value) for value in values if isinstance(value, str) and value]


def _piece(source: Source, part: object) -> Piece:
    if isinstance(part, str):
        return Text(part)
    fields = mapping(part)
    match fields.get("content_type"):
        case "image_asset_pointer":
            return _image(source, fields) or unknown(part)
        case "audio_transcription" if isinstance(fields.get("text"), str):
            return Text(fields["text"])
        case "audio_asset_pointer":
            return _audio(source, fields) or unknown(part)
        case _:
            return unknown(part)


def _image(source: Source, fields: dict[str, Any]) -> Image | None:
    data = _asset(source, fields.get("asset_pointer"))
    if data is None:
        return None
    return Image(
        media_type=_sniffed(data) or "image/png",
        data=data,
        width=whole(fields.get("width")),
        height=whole(fields.get("height")),
    )


def _audio(source: Source, fields: dict[str, Any]) -> File | None:
    data = _asset(source, fields.get("asset_pointer"))
    name = text(fields.get("format")) or "wav"
    return None if data is None else File(media_type=media(f"audio/{name}", "audio/wav"), data=data)


def _asset(source: Source, pointer: object) -> bytes | None:
    """The bytes that "file-service://file-XYZ" or "sediment://file_XYZ" means."""
    found = _FILE.search(pointer.partition("://")[2]) if isinstance(pointer, str) else None
    return None if found is None else source.asset(found[0], BLOB)


def _sniffed(data: bytes) -> str | None:
    return next((kind for sign, kind in _SIGNS if data.startswith(sign)), None)


def _attached(source: Source, message: dict[str, Any]) -> list[Piece]:
    """The files that a person attached, but for images that stand among the parts too."""
    shown = "\n".join(
        str(part.get("asset_pointer"))
        for part in map(mapping, listed(mapping(message.get("content")).get("parts")))
    )
    found: list[Piece] = []
    for each in map(mapping, listed(mapping(message.get("metadata")).get("attachments"))):
        id = ident(each.get("id"))
        if id is None or id in shown:
            continue
        kind = media(each.get("mime_type") or each.get("mimeType"), "application/octet-stream")
        data = source.asset(id, BLOB) if _FILE.fullmatch(id) else None
        found.append(File(media_type=kind, name=text(each.get("name")), data=data, file_id=id))
    return found
