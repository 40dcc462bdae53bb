"""Items of the Responses API: what could be sent as the `input` of a request."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, cast

from clew.context.entries import Entry
from clew.domain.chat import BlobReader
from clew.domain.messages import Role
from clew.domain.parts import (
    File,
    Image,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)
from clew.exporters.text import attachment, bytes_of, dumps, json_list
from clew.exporters.transcript import Transcript

Item = dict[str, Any]
_CONTENT = ("input_", "output_", "refusal")
_ROLES = {Role.USER: "user", Role.SYSTEM: "system", Role.DEVELOPER: "developer"}


def items(source: Transcript) -> Iterator[Item]:
    """In the order of the parts, so that thinking stands right before what came of it."""
    custom: set[str] = set()
    for entry in source.entries():
        yield from _Entry(entry, source.blob, custom).items()


def text(source: Transcript) -> Iterator[str]:
    """The file: {"model", "input", "instructions"}. A model that nobody named is null, since a
    request has the field, and by it a reader knows the form."""
    prompt = {} if source.prompt is None else {"instructions": source.prompt}
    return json_list(items(source), {"model": source.info.model}, "input", prompt)


class _Entry:
    """One message as items. `custom`: ids of calls whose input is free text."""

    def __init__(self, entry: Entry, blob: BlobReader, custom: set[str]) -> None:
        self._entry, self._blob, self._custom = entry, blob, custom
        self._assistant = entry.role is Role.ASSISTANT
        self._count = 0

    def items(self) -> Iterator[Item]:
        content: list[Item] = []
        for part in self._entry.parts:
            if (piece := self._piece(part)) is not None:
                content.append(piece)
                continue
            yield from self._message(content)
            content = []
            yield self._item(part)
        yield from self._message(content)

    def _id(self, kind: str) -> str:
        """An id of its own, where the source gave none: of the message, and its place in it."""
        self._count += 1
        uid = self._entry.messages[0].uid if self._entry.messages else "0" * 32
        return f"{kind}_{uid}{self._count:02x}"

    def _message(self, content: list[Item]) -> Iterator[Item]:
        if not content:
            return
        spoken = all(piece["type"] in ("output_text", "refusal") for piece in content)
        if self._assistant and spoken:
            yield {
                "type": "message", "id": self._id("msg"), "role": "assistant",
                "status": "completed", "content": content,
            }  # fmt: skip
        elif self._assistant:  # the API has no message of an assistant with images
            yield {"type": "message", "role": "assistant", "content": list(map(_input, content))}
        else:
            role = _ROLES.get(self._entry.role, "user")
            yield {"type": "message", "role": role, "content": content}

    def _piece(self, part: Part) -> Item | None:
        """A piece of a message's content; None for what is an item of its own."""
        match part:
            case Text(text=text) if self._assistant:
                return {"type": "output_text", "text": text, "annotations": []}
            case Text() | Image() | File():
                return self._input(part)
            case Unknown(value=value):
                if _is_item(value):
                    return None
                return cast(Item, value) if _is_content(value) else self._text(dumps(value))
            case _:
                return None

    def _text(self, text: str) -> Item:
        if self._assistant:
            return {"type": "output_text", "text": text, "annotations": []}
        return {"type": "input_text", "text": text}

    def _input(self, part: Part) -> Item:
        match part:
            case Text(text=text):
                return {"type": "input_text", "text": text}
            case Image():
                url = part.url or self._data_url(part)
                if url is not None:
                    detail = part.detail if part.detail in ("low", "high", "auto") else "auto"
                    return {"type": "input_image", "image_url": url, "detail": detail}
                return {"type": "input_text", "text": f"[{attachment(part)}]"}
            case File():
                return self._file(part)
            case Unknown(value=value) if _is_content(value):
                return cast(Item, value)
            case Unknown(value=value):
                return {"type": "input_text", "text": dumps(value)}
            case _:
                return {"type": "input_text", "text": ""}

    def _file(self, part: File) -> Item:
        name = {} if part.name is None else {"filename": part.name}
        if part.file_id is not None:
            return {"type": "input_file", "file_id": part.file_id}
        if part.url is not None:
            return {"type": "input_file", "file_url": part.url, **name}
        data = self._data_url(part)
        if data is None:
            return {"type": "input_text", "text": f"[{attachment(part)}]"}
        return {"type": "input_file", "file_data": data, **name}

    def _data_url(self, part: Image | File) -> str | None:
        data = bytes_of(part, self._blob)
        if data is None:
            return None
        return f"data:{part.media_type};base64,{base64.b64encode(data).decode()}"

    def _item(self, part: Part) -> Item:
        match part:
            case Reasoning():
                return self._reasoning(part)
            case ToolCall(kind="custom"):
                self._custom.add(part.id)
                return {
                    "type": "custom_tool_call", "call_id": part.id, "name": part.name,
                    "input": part.arguments,
                }  # fmt: skip
            case ToolCall():
                return {
                    "type": "function_call", "call_id": part.id, "name": part.name,
                    "arguments": part.arguments,
                }  # fmt: skip
            case ToolResult():
                kind = "custom_tool_call" if part.call_id in self._custom else "function_call"
                return {
                    "type": f"{kind}_output",
                    "call_id": part.call_id,
                    "output": self._output(part),
                }
            case Unknown(value=value):
                return cast(Item, value)
            case _:
                return {}

    def _reasoning(self, part: Reasoning) -> Item:
        summary = [{"type": "summary_text", "text": part.text}] if part.text else []
        item: Item = {
            "type": "reasoning", "id": part.id or self._id("rs"), "summary": summary,
        }  # fmt: skip
        if part.data is not None:
            item["encrypted_content"] = part.data
        return item

    def _output(self, part: ToolResult) -> str | list[Item]:
        if isinstance(part.content, str):
            return part.content
        return [self._input(piece) for piece in part.content]


def _input(piece: Item) -> Item:
    """Content of an assistant as the input of a request has it."""
    if piece["type"] == "output_text":
        return {"type": "input_text", "text": piece["text"]}
    return piece


def _is_content(value: object) -> bool:
    kind = cast(dict[str, object], value).get("type") if isinstance(value, dict) else None
    return isinstance(kind, str) and kind.startswith(_CONTENT)


def _is_item(value: object) -> bool:
    """An item of a kind that clew does not know, kept as it came."""
    kind = cast(dict[str, object], value).get("type") if isinstance(value, dict) else None
    return isinstance(kind, str) and kind.endswith(("_call", "_call_output", "compaction"))
