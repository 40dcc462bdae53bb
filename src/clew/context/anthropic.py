"""Anthropic Messages: entries as the messages of a request. The prompt goes to `system`.

Strict turns, the user first. Results of one message of the assistant stand first in the one message
of the user behind it. Thinking stands where its model signed it, and never at the end. No text is
blank.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, cast

from clew.context.entries import Entry
from clew.context.lawful import lawful
from clew.context.media import base64_of, bytes_of, label, words
from clew.context.notices import noticed
from clew.context.wire import CONTINUES, folded
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
EMPTY_ERROR = "[no output]"
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_PDF = "application/pdf"
_THINKING = ("thinking", "redacted_thinking")

Block = dict[str, Any]
Turn = tuple[str, list[Block]]


def anthropic_messages(
    entries: Iterable[Entry], blob: BlobReader, model: str | None = None, notice: str | None = None
) -> list[dict[str, Any]]:
    """The messages of a request, of any log, the notice in the last of them."""
    said = (
        ("assistant" if entry.role is Role.ASSISTANT else "user", list(_blocks(entry, blob)))
        for entry in folded(noticed(lawful(entries, model, LONGEST_ID), notice))
    )
    turns = _by_turns((role, _ended(role, blocks)) for role, blocks in _by_turns(said))
    if turns and turns[0][0] == "assistant":
        turns.insert(0, ("user", [_text(CONTINUES)]))
    return [{"role": role, "content": blocks} for role, blocks in turns]


def _by_turns(turns: Iterable[Turn]) -> list[Turn]:
    """Neighbours of one role as one; none that says nothing."""
    found: list[Turn] = []
    for role, blocks in turns:
        if blocks and found and found[-1][0] == role:
            found[-1][1].extend(blocks)
        elif blocks:
            found.append((role, list(blocks)))
    return found


def _ended(role: str, blocks: list[Block]) -> list[Block]:
    """A message of the assistant ends neither in thinking nor in white space, be it the last or
    not: else what was sent once would be another when more follows."""
    if role != "assistant":
        return blocks
    end = len(blocks)
    while end and blocks[end - 1]["type"] in _THINKING:
        end -= 1
    kept = blocks[:end]
    if kept and kept[-1]["type"] == "text":
        kept[-1] = _text(kept[-1]["text"].rstrip())
    return kept


# ---------------------------------------------------------------------- blocks


def _blocks(entry: Entry, blob: BlobReader) -> Iterator[Block]:
    for part in entry.parts:
        match part:
            case Reasoning():
                yield from _thinking(part)
            case ToolCall():
                yield {
                    "type": "tool_use", "id": part.id, "name": part.name,
                    "input": _arguments(part),
                }  # fmt: skip
            case ToolResult():
                yield _result(part, blob)
            case _:
                yield from _content(part, blob)


def _thinking(part: Reasoning) -> Iterator[Block]:
    """What came with an id was made, and encrypted, by another provider."""
    if part.signature is not None:
        yield {"type": "thinking", "thinking": part.text, "signature": part.signature}
    elif part.data is not None and part.id is None:
        yield {"type": "redacted_thinking", "data": part.data}


def _arguments(call: ToolCall) -> dict[str, Any]:
    """The arguments as the object that the API wants; what is none stands in one."""
    if call.kind == "custom":
        return {"input": call.arguments}
    try:
        value = json.loads(call.arguments, parse_constant=_refused)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return {"input": call.arguments}
    return cast(dict[str, Any], value) if isinstance(value, dict) else {"input": call.arguments}


def _refused(constant: str) -> NoReturn:
    """NaN and its like are no JSON."""
    raise ValueError(constant)


def _result(part: ToolResult, blob: BlobReader) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": part.call_id}
    pieces = (Text(part.content),) if isinstance(part.content, str) else part.content
    content = [block for piece in pieces for block in _content(piece, blob)]
    if not content and part.is_error:
        content = [_text(EMPTY_ERROR)]
    if content and isinstance(part.content, str):
        block["content"] = content[0]["text"]
    elif content:
        block["content"] = content
    if part.is_error:
        block["is_error"] = True
    return block


def _content(part: Part, blob: BlobReader) -> Iterator[Block]:
    match part:
        case Text(text=text):
            if text.strip():
                yield _text(text)
        case Image():
            yield _image(part, blob) or _text(label(part))
        case File():
            yield _document(part, blob) or _text(label(part))
        case Unknown(value={"type": "refusal", "refusal": str(text)}) if text.strip():
            yield _text(text)
        case Unknown(value=value):
            yield _text(words(value))
        case _:
            return


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _image(part: Image, blob: BlobReader) -> Block | None:
    if _is_web(part.url):
        return {"type": "image", "source": {"type": "url", "url": part.url}}
    kind = part.media_type.lower()
    data = base64_of(part, blob) if kind in _IMAGES else None
    if not data:
        return None
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


def _document(part: File, blob: BlobReader) -> Block | None:
    """PDF and text; of other kinds the API takes none. A provider's `file_id` is only its own."""
    kind = part.media_type.lower()
    source: Block | None = None
    if kind == _PDF and _is_web(part.url):
        source = {"type": "url", "url": part.url}
    elif kind == _PDF and (data := base64_of(part, blob)):
        source = {"type": "base64", "media_type": _PDF, "data": data}
    elif kind.startswith("text/") or kind == "application/json":
        text = (bytes_of(part, blob) or b"").decode("utf-8", "replace")
        source = (
            {"type": "text", "media_type": "text/plain", "data": text} if text.strip() else None
        )
    if source is None:
        return None
    return {"type": "document", "source": source, **({"title": part.name} if part.name else {})}


def _is_web(url: str | None) -> bool:
    return url is not None and url.startswith(("https://", "http://"))
