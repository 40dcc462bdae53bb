"""What a model is shown of a long result: its beginning, its end, and how to read the rest.

A result says itself how much that is (`ToolResult.shown`). The log keeps and searches the whole;
requests, and the counts of tokens and bytes, have what this makes of it. Pure: of a message alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import structs

from clew.context.entries import Entry
from clew.domain.messages import Message
from clew.domain.parts import Part, Parts, Text, ToolResult

SLACK = 100
"""Characters more than `shown` of which all is shown: the line that names them takes as many."""
_NEAR = 8
"""A cut moves to the end of a line within this part of the piece that stays."""
_COUNTED = 'recall("@10000")'
"""A handle for counts: they are made before a message has its number, and hold for any."""


def recall_handle(messages: Sequence[Message]) -> str | None:
    """How the whole of a message is read; None of what no message of the log is."""
    return f'recall("@{messages[0].seq}")' if messages else None


def seen(entry: Entry) -> Entry:
    """An entry as a model sees it; itself when nothing of it is limited."""
    if not any(_is_limited(part) for part in entry.parts):
        return entry
    handle = recall_handle(entry.messages)
    return entry._replace(parts=tuple(_seen(part, handle) for part in entry.parts))


def seen_parts(parts: Parts) -> Parts:
    """Parts as a model sees them, for counting; the same when nothing of them is limited."""
    if not any(_is_limited(part) for part in parts):
        return parts
    return tuple(_seen(part, _COUNTED) for part in parts)


def _is_limited(part: Part) -> bool:
    return isinstance(part, ToolResult) and part.shown is not None


def _seen(part: Part, handle: str | None) -> Part:
    """A result of which all that is left is shown."""
    if not isinstance(part, ToolResult) or part.shown is None:
        return part
    if isinstance(part.content, str):
        (text,) = _cut([part.content], part.shown, handle)
        return structs.replace(part, content=text or "", shown=None)
    texts = iter(_cut([p.text for p in part.content if isinstance(p, Text)], part.shown, handle))
    pieces = (_with(piece, texts) for piece in part.content)
    return structs.replace(part, content=tuple(p for p in pieces if p is not None), shown=None)


def _with(piece: Any, texts: Iterator[str | None]) -> Any:
    """A text as it was cut; None for one that lies in the gap."""
    if not isinstance(piece, Text):
        return piece
    text = next(texts)
    return None if text is None else Text(text)


def _cut(texts: Sequence[str], most: int, handle: str | None) -> list[str | None]:
    """The texts, of all together the first two thirds of `most` characters and the last third."""
    total = sum(map(len, texts))
    if total <= most + SLACK:
        return list(texts)
    first, last = most * 2 // 3, total - (most - most * 2 // 3)
    first, last = _line_end(texts, first), _line_start(texts, last, total)
    note = f"[... {last - first:,} characters left out{f'; {handle} reads them' if handle else ''}]"
    return list(_parted(texts, first, last, note))


def _parted(texts: Sequence[str], first: int, last: int, note: str) -> Iterator[str | None]:
    """The texts without what lies from `first` to `last`, the note where that begins."""
    start = 0
    for text in texts:
        end = start + len(text)
        if start <= first < end:
            yield _lines(text[: first - start], note, text[last - start :])
        elif first <= start and end <= last:
            yield None
        else:
            yield text[last - start :] if start < last < end else text
        start = end


def _lines(before: str, note: str, after: str) -> str:
    left = before if before.endswith("\n") or not before else f"{before}\n"
    return f"{left}{note}\n{after}" if after else f"{left}{note}"


def _line_end(texts: Sequence[str], at: int) -> int:
    """A place shortly before, behind the end of a line, if there is one."""
    for start, text in _placed(texts):
        if start < at <= start + len(text):
            found = text.rfind("\n", max(0, at - start - at // _NEAR), at - start)
            return at if found < 0 else start + found + 1
    return at


def _line_start(texts: Sequence[str], at: int, total: int) -> int:
    """A place shortly behind, where a line begins, if there is one."""
    for start, text in _placed(texts):
        if start <= at < start + len(text):
            near = at - start + (total - at) // _NEAR
            found = text.find("\n", max(0, at - start - 1), near)
            return at if found < 0 else start + found + 1
    return at


def _placed(texts: Sequence[str]) -> Iterator[tuple[int, str]]:
    start = 0
    for text in texts:
        yield start, text
        start += len(text)
