"""The Responses API: entries as the `input` items of a request. The prompt goes to `instructions`.

`items_of` writes down what is there; `responses_items` what a request may hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from clew.context.entries import Entry
from clew.context.lawful import lawful
from clew.context.media import data_url, dumps, label, words
from clew.context.notices import noticed
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

LONGEST_ID = 64
Item = dict[str, Any]
_CONTENT = ("input_", "output_", "refusal")
_ROLES = {Role.USER: "user", Role.SYSTEM: "system", Role.DEVELOPER: "developer"}


def responses_items(
    entries: Iterable[Entry], blob: BlobReader, model: str | None = None, notice: str | None = None
) -> list[Item]:
    """The input of a request, of any log, the notice in the last item. Reasoning only as the
    provider encrypted it, and right before what came of it: the API keeps nothing else of it, and
    takes it nowhere else."""
    made = (_held(entry) for entry in lawful(entries, model, LONGEST_ID))
    return _paired(list(items_of(noticed(made, notice), blob)))


def _held(entry: Entry) -> Entry:
    """Without blank text and without thinking that says nothing to this API."""
    parts = tuple(part for part in map(_taken, entry.parts) if not _is_void(part))
    return entry.having(parts)


def _taken(part: Part) -> Part:
    if isinstance(part, Unknown) and not (_is_item(part.value) or _is_content(part.value)):
        return Text(words(part.value))
    return part


def _is_void(part: Part) -> bool:
    match part:
        case Text(text=text):
            return not text.strip()
        case Reasoning(data=data, signature=signature):
            return data is None or signature is not None
        case _:
            return False


def _paired(items: Sequence[Item]) -> list[Item]:
    """Without what came twice under one id, items of unknown kinds that lack their call or output,
    and reasoning that nothing came of."""
    ids: set[object] = set()
    made: set[object] = set()
    answered: set[object] = set()
    once: list[Item] = []
    for item in items:
        id, call = item.get("id"), item.get("call_id")
        if id is not None and id in ids:
            continue
        ids.add(id)
        once.append(item)
        if not _is_output(item):
            made.add(call)
        elif call in made:
            answered.add(call)
    kept = [item for item in once if "call_id" not in item or item["call_id"] in answered]
    return _with_what_came_of_it(kept)


def _with_what_came_of_it(items: Sequence[Item]) -> list[Item]:
    found: list[Item] = []
    of_assistant = False
    for item in reversed(items):
        is_reasoning = item["type"] == "reasoning"
        if of_assistant or not is_reasoning:
            found.append(item)
        if not is_reasoning:
            of_assistant = item.get("role", "assistant") == "assistant" and not _is_output(item)
    return found[::-1]


def _is_output(item: Item) -> bool:
    return str(item["type"]).endswith("_output")


# ---------------------------------------------------------------------- items


def items_of(entries: Iterable[Entry], blob: BlobReader) -> Iterator[Item]:
    """In the order of the parts, so that thinking stands right before what came of it."""
    custom: set[str] = set()
    for at, entry in enumerate(entries):
        uid = entry.messages[0].uid if entry.messages else f"{at:032x}"
        yield from _Entry(entry, uid, blob, custom).items()


class _Entry:
    """One message as items. `custom`: ids of calls whose input is free text."""

    def __init__(self, entry: Entry, uid: str, blob: BlobReader, custom: set[str]) -> None:
        self._entry, self._uid, self._blob, self._custom = entry, uid, blob, custom
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
        return f"{kind}_{self._uid}{self._count:02x}"

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
                url = part.url or data_url(part, self._blob)
                if url is not None:
                    detail = part.detail if part.detail in ("low", "high", "auto") else "auto"
                    return {"type": "input_image", "image_url": url, "detail": detail}
                return {"type": "input_text", "text": label(part)}
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
        data = data_url(part, self._blob)
        if data is None:
            return {"type": "input_text", "text": label(part)}
        return {"type": "input_file", "file_data": data, **name}

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
