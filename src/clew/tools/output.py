"""What a tool said, as the log keeps it: all of it, up to a limit that no model could read anyway.

How much of it a model is shown is another thing (`[tools] output`): the result says so itself, the
rest is in the log, and recall reads it back.
"""

from __future__ import annotations

from typing import Any

import msgspec

from clew.domain.parts import File, Image, Text, ToolCall, ToolResult, Unknown
from clew.tools.api import ToolOutput

HARD = 8 << 20
"""Bytes of JSON that the texts of one result may take; a message's limit is twice that."""
_WORST = 6
"""Bytes that a character takes in JSON at most: a control character, as its code."""

Pieces = tuple[Text | Image | File | Unknown, ...]


def result(call: ToolCall, output: ToolOutput, shown: int) -> ToolResult:
    """The result of a call. `shown`: characters that a model is shown; 0: all."""
    content = _bounded(output.content, HARD)
    more: dict[str, Any] = {}
    if shown > 0 and _characters(content) > shown:
        more["shown"] = shown
    return ToolResult(
        call_id=call.id, content=content, name=call.name, is_error=output.is_error, **more
    )


def failure(call: ToolCall, text: str) -> ToolResult:
    """An error, as the model reads it: what is wrong, and what to do."""
    return ToolResult(call_id=call.id, content=f"Error: {text}", name=call.name, is_error=True)


def cut(text: str, most: int) -> str:
    """The text, its middle left out so that it takes at most `most` bytes of JSON, and a line that
    says so where it was."""
    if len(text) * _WORST <= most or size(text) <= most:
        return text
    keep = int(len(text) * most / size(text)) // 2
    while size(text[:keep]) + size(text[-keep:]) > most:
        keep = keep * 63 // 64
    note = (
        f"\n[{len(text) - 2 * keep:,} of {len(text):,} characters were left out here: more than "
        "can be stored. Ask for less at once.]\n"
    )
    return text[:keep] + note + text[-keep:]


def size(text: str) -> int:
    """Bytes that a text takes in JSON."""
    try:
        return len(msgspec.json.encode(text))
    except UnicodeEncodeError:  # lone surrogates
        return len(text) * _WORST


def _bounded(content: str | Pieces, most: int) -> str | Pieces:
    if isinstance(content, str):
        return cut(content, most)
    texts = sum(isinstance(part, Text) for part in content)
    share = most // max(1, texts)
    if sum(size(part.text) for part in content if isinstance(part, Text)) <= most:
        return content
    return tuple(
        Text(cut(part.text, share)) if isinstance(part, Text) else part for part in content
    )


def _characters(content: str | Pieces) -> int:
    if isinstance(content, str):
        return len(content)
    return sum(len(part.text) for part in content if isinstance(part, Text))
