"""Markdown that is good to read, and in which nothing of a message is markup of ours.

Prose keeps its Markdown, with its headings two levels lower; code blocks are fenced anew, with more
backticks than they hold; raw HTML, remote images and links to anything but the web lose their
meaning and keep their text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from clew.context.entries import Entry
from clew.domain.chat import BlobReader
from clew.domain.compactions import Compaction
from clew.domain.parts import File, Image, Part, Reasoning, Text, ToolCall, ToolResult, Unknown
from clew.exporters.blocks import Code, blocks
from clew.exporters.dividers import placed, summary, told
from clew.exporters.ending import ended, nothing
from clew.exporters.text import (
    ID_LENGTH,
    attachment,
    dumps,
    minute,
    one_line,
    pretty,
    raster_url,
    shown,
    unknown,
    web_url,
)
from clew.exporters.transcript import Transcript, kind_of, named, numbers

_HTML = re.compile(r"(\\*)<(?=[A-Za-z/!?])")
_IMAGE = re.compile(r"(\\*)!(?=\[)")
_LINK = re.compile(r"(\\*)\](?=\((?!https?://|mailto:)|\[)")
_INSIDE = r"^((?:[ \t]*(?:>|[-+*]|\d{1,9}[.)])(?![^ \t>\n]))*[ \t>]*)"
"""The beginning of a line inside quotes and list items."""
_REFERENCE = re.compile(_INSIDE + r"\[", re.MULTILINE)
_HEADING = re.compile(_INSIDE + r"(#{1,6})(?=[ \t]|$)", re.MULTILINE)
_UNDERLINE = re.compile(r"^([ \t>]*)(=+|-+)(?=[ \t]*$)", re.MULTILINE)
_SIGNS = re.compile(r"([\\`*_\[\]<>#|!~&])")


def text(source: Transcript) -> Iterator[str]:
    """The page, piece by piece."""
    info = source.info
    yield f"# {_label(source.title)}\n\n"
    yield from _facts(source)
    if source.prompt is not None:
        yield _details("System prompt", _fenced(source.prompt))
    dividers = placed(source)
    for entry in named(source.entries()):
        place = _place(entry)
        while dividers and dividers[-1][0] < place:
            yield _divider(dividers.pop()[1])
        yield from _entry(entry, source.blob)
    for _, record in reversed(dividers):
        yield _divider(record)
    if not info.head:
        yield "It has no messages.\n"


def _place(entry: Entry) -> int:
    first = entry.messages[0]
    return first.replaces or first.seq


def _facts(source: Transcript) -> Iterator[str]:
    info = source.info
    facts = [
        ("Id", info.id), ("From", info.source), ("Model", info.model), ("Folder", info.cwd),
        ("Git branch", info.git_branch), ("Begun", minute(info.created_at)),
        ("Last message", minute(info.active_at)), ("Messages", f"{info.message_count:,}"),
    ]  # fmt: skip
    if info.origin is not None:
        facts.append((f"{kind_of(info).capitalize()} of", info.origin))
    if info.base:
        facts.append(("Goes on from", f"#{info.base}"))
    for name, value in facts:
        if value:
            yield f"- {name}: {_label(value, ID_LENGTH)}\n"
    for child in source.children:
        title = child.title or child.preview or "(untitled)"
        at = f" from \\#{child.base}" if child.base else ""
        id = _label(child.id, ID_LENGTH)
        yield f"- {kind_of(child).capitalize()}{at}: {_label(title)} ({id})\n"
    yield "\n"


def _entry(entry: Entry, blob: BlobReader) -> Iterator[str]:
    first = entry.messages[0]
    author = f" {_label(entry.author)}" if entry.author else ""
    yield f"## \\{numbers(entry.messages)} {entry.role}{author} · {minute(first.created_at)}\n\n"
    for part in entry.parts:
        yield _part(part, blob)
    if said := ended(entry):
        yield f"*Ended: {_label(said)}*\n\n"
    elif nothing(entry):
        yield "*Nothing to read*\n\n"


def _part(part: Part, blob: BlobReader) -> str:
    match part:
        case Text(text=text):
            return prose(text)
        case Reasoning(text=text):
            return _details("Thinking", prose(text)) if text else ""
        case ToolCall():
            body = _fenced(pretty(part.arguments), "json") if part.arguments else ""
            return f"**Call** {_code(part.name)}\n\n{body}"
        case ToolResult():
            return _result(part, blob)
        case Image():
            return _image(part, blob)
        case File():
            return f"{_linked(attachment(part), part.url)}\n\n"
        case Unknown(value=value):
            return _details(unknown(value), _fenced(dumps(value), "json"))


def _result(part: ToolResult, blob: BlobReader) -> str:
    name = one_line(part.name or part.call_id)
    summary = f"{'Error of' if part.is_error else 'Result of'} {name}"
    if isinstance(part.content, str):
        return _details(summary, _fenced(part.content) if part.content else "(nothing)\n\n")
    pieces = (
        _fenced(piece.text) if isinstance(piece, Text) else _part(piece, blob)
        for piece in part.content
    )
    return _details(summary, "".join(pieces) or "(nothing)\n\n")


def _image(part: Image, blob: BlobReader) -> str:
    url = raster_url(part, blob)
    if url is not None:
        return f"![{_label(attachment(part))}]({url})\n\n"
    return f"{_linked(attachment(part), part.url)}\n\n"


def _linked(label: str, url: str | None) -> str:
    safe = web_url(url)
    return f"\\[{_label(label)}\\]" if safe is None else f"[{_label(label)}](<{safe}>)"


def _details(summary: str, body: str) -> str:
    """Folded where HTML is shown, and readable where it is not."""
    return f"<details><summary>{escape(one_line(summary))}</summary>\n\n{body}</details>\n\n"


def _divider(record: Compaction) -> str:
    said = summary(record)
    body = _details("Its summary", prose(said)) if said else ""
    return f"---\n\n*{_label(told(record))}*\n\n{body}---\n\n"


def prose(text: str) -> str:
    """A text of a message."""
    found: list[str] = []
    for block in blocks(shown(text)):
        if isinstance(block, Code):
            found.append(_fenced(block.text, block.language))
        elif block.strip():
            found.append(_harmless(block.strip("\n")) + "\n\n")
    return "".join(found)


def _harmless(text: str) -> str:
    for pattern, sign in ((_HTML, "<"), (_IMAGE, "!"), (_LINK, "]")):
        text = pattern.sub(lambda found, sign=sign: _escaped(found[1], sign), text)
    text = _REFERENCE.sub(r"\1\\[", text) if "]:" in text else text
    text = _HEADING.sub(lambda found: found[1] + "#" * min(6, len(found[2]) + 2), text)
    return _UNDERLINE.sub(r"\1\\\2", text)


def _escaped(before: str, sign: str) -> str:
    """A sign with a backslash of its own; an odd one before it is that already."""
    return before + sign if len(before) % 2 else f"{before}\\{sign}"


def _fenced(text: str, language: str = "") -> str:
    """Code in a fence that it cannot end."""
    text = shown(text).rstrip("\n")
    fence = "`" * (max([2, *map(len, re.findall("`{3,}", text))]) + 1)
    return f"{fence}{language}\n{text}\n{fence}\n\n"


def _code(text: str) -> str:
    """Code inside a line."""
    text = one_line(text, 200) or "?"
    run = "`" * (max([0, *map(len, re.findall("`+", text))]) + 1)
    space = " " if "`" in text else ""
    return f"{run}{space}{text}{space}{run}"


def _label(text: str, most: int = 200) -> str:
    """A text of a line in which no sign means anything."""
    return _SIGNS.sub(r"\\\1", one_line(text, most))


__all__: Sequence[str] = ("prose", "text")
