"""Parts: the typed pieces of a message's content.

A part is a frozen value with a `type` tag in JSON. Bytes of images and files never stand inside a
stored part: a draft carries `data`, the store moves it to a blob and keeps `hash` and `size`.
A piece that no type here describes is kept verbatim in `Unknown`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from clew.domain.values import check_json
from clew.errors import InputError

MOST_SHOWN = 10**12
"""The highest `ToolResult.shown`: more than any message holds."""


class Text(Struct, tag="text", frozen=True, omit_defaults=True):
    """Plain text."""

    text: str


class Reasoning(Struct, tag="reasoning", frozen=True, omit_defaults=True):
    """A model's thinking. `signature` and `data` are only valid for the `model` that made them."""

    text: str = ""
    model: str | None = None
    signature: str | None = None
    data: str | None = None
    """Opaque (redacted or encrypted) content, as the provider sent it."""
    id: str | None = None


class ToolCall(Struct, tag="tool_call", frozen=True, omit_defaults=True):
    """A call the model asks for. `arguments` is the model's own text, JSON or not, unchanged."""

    id: str
    name: str
    arguments: str = ""
    kind: str = "function"
    """As the provider names it: "custom" for one whose arguments are free text."""
    extra: dict[str, Any] | None = None
    """What else the provider sent with the call and wants back, such as a thought signature."""


class Image(Struct, tag="image", frozen=True, omit_defaults=True):
    """An image: by `url`, or by bytes (`data` in a draft, `hash` of a blob once stored)."""

    media_type: str = "image/png"
    data: bytes | None = None
    hash: str | None = None
    """SHA-256 of the bytes, hexadecimal; set by the store."""
    size: int | None = None
    """Bytes; set by the store."""
    url: str | None = None
    detail: str | None = None
    width: int | None = None
    height: int | None = None


class File(Struct, tag="file", frozen=True, omit_defaults=True):
    """A file: by `url`, by a provider's `file_id`, or by bytes as in `Image`."""

    media_type: str = "application/octet-stream"
    name: str | None = None
    data: bytes | None = None
    hash: str | None = None
    size: int | None = None
    url: str | None = None
    file_id: str | None = None


class Unknown(Struct, tag="unknown", frozen=True):
    """A piece of content of a kind clew does not know, kept verbatim."""

    value: Any


class ToolResult(Struct, tag="tool_result", frozen=True, omit_defaults=True):
    """What a tool answered to the call `call_id`: text, or parts when it holds images or files."""

    call_id: str
    content: str | tuple[Text | Image | File | Unknown, ...] = ""
    name: str | None = None
    is_error: bool = False
    shown: int | None = None
    """Characters of its text that a model is shown, its beginning and its end; None: all. The whole
    is in the log."""


Part = Text | Reasoning | ToolCall | ToolResult | Image | File | Unknown
Parts = tuple[Part, ...]


def check_parts(parts: Parts) -> None:
    """Refuse what would not come back: a message that cannot be decoded must not be written."""
    for part in parts:
        if not _is_plain(part):
            _check_part(part)


def _is_plain(part: object) -> bool:
    """Whether a part is seen to be right at once, as most are: the whole check takes as long as
    encoding the message."""
    match part:
        case Text(text=str()):
            return True
        case ToolResult(call_id=str(), content=str(), name=None | str(), is_error=bool()):
            return part.shown is None or (type(part.shown) is int and _is_shown(part.shown))
        case ToolCall(id=str(), name=str(), arguments=str(), kind=str(), extra=None):
            return True
        case Reasoning():
            rest = (part.model, part.signature, part.data, part.id)
            return isinstance(part.text, str) and all(  # pyright: ignore[reportUnnecessaryIsInstance]
                value is None or isinstance(value, str)  # pyright: ignore[reportUnnecessaryIsInstance]
                for value in rest
            )
        case _:
            return False


def _check_part(part: Part) -> None:
    name = type(part).__name__
    if not isinstance(part, Part):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"a part is a {name}; pass clew.Text and its like")
    match part:
        case Unknown(value=value):
            check_json("Unknown.value", value)
            return
        case ToolCall(extra=extra):
            check_json("ToolCall.extra", extra)
        case ToolResult(content=tuple(pieces)):
            check_parts(pieces)
        case Image(data=data) | File(data=data) if data is not None:
            raise InputError(f"{name}.data is a {type(data).__name__}; pass bytes")
        case _:
            pass
    try:
        msgspec.convert(msgspec.to_builtins(part), Part)
    except (TypeError, RecursionError, msgspec.ValidationError) as error:
        raise InputError(f"a {name} cannot be stored: {error}") from None
    if isinstance(part, Image | File):
        _check_medium(part)
    if isinstance(part, ToolResult):
        _check_shown(part.shown)


def _check_shown(shown: int | None) -> None:
    """Refuse what is no number of characters."""
    if shown is not None and not _is_shown(shown):
        raise InputError(
            f"ToolResult.shown is {shown}; give characters, 0 or more, or None for all of its text"
        )


def _is_shown(shown: int) -> bool:
    return 0 <= shown <= MOST_SHOWN


def _check_medium(part: Image | File) -> None:
    """Refuse what names no bytes: no rendering could send it."""
    name = type(part).__name__
    file_id = part.file_id if isinstance(part, File) else None
    if part.data is None and part.hash is None and part.url is None and file_id is None:
        raise InputError(f"{name} has neither data nor hash nor url; give one of them")


def plain_text(parts: Parts) -> str:
    """What a person reads in these parts: the text of the text parts, joined by line ends."""
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def result_text(result: ToolResult) -> str:
    """The text of a tool result."""
    if isinstance(result.content, str):
        return result.content
    return plain_text(result.content)


def call_ids(parts: Parts) -> tuple[str, ...]:
    """Ids of the tool calls in these parts."""
    return tuple(part.id for part in parts if isinstance(part, ToolCall))


def answered_ids(parts: Parts) -> tuple[str, ...]:
    """Ids of the calls that these parts answer."""
    return tuple(part.call_id for part in parts if isinstance(part, ToolResult))


def unasked_ids(messages: Iterable[Parts]) -> set[str]:
    """Ids of calls that these messages answer without one of them having made the call before."""
    made: set[str] = set()
    unasked: set[str] = set()
    for parts in messages:
        unasked.update(id for id in answered_ids(parts) if id not in made)
        made.update(call_ids(parts))
    return unasked


def searchable(parts: Parts) -> Iterator[str]:
    """All text a search should find: text, reasoning, call names and arguments, tool outputs."""
    for part in parts:
        match part:
            case Text(text=text) | Reasoning(text=text):
                yield text
            case ToolCall():
                yield part.name
                yield part.arguments
            case ToolResult():
                yield result_text(part)
            case File(name=str(name)):
                yield name
            case _:
                pass
