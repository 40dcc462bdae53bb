"""A message as lines: who, when, and what, with the long things folded unless asked for.

Pure: values in, lines out. Everything that comes from a conversation is made harmless here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from msgspec import Struct

from clew.cli.lines import BLANK, Line, line
from clew.cli.screen import Piece
from clew.cli.text import fit, one_line, visible
from clew.cli.times import moment
from clew.domain.messages import Message, Role
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
from clew.store.findings import counted, size_text

STYLES = {
    Role.USER: "bold cyan", Role.ASSISTANT: "bold green", Role.TOOL: "bold blue",
    Role.SYSTEM: "bold magenta", Role.DEVELOPER: "bold magenta",
}  # fmt: skip
FOLDED = 72
"""Columns of what a folded piece still shows."""
SHORT_LINES, SHORT_TEXT = 3, 240
"""A tool output of at most so many lines and characters is not folded."""


class Look(Struct, frozen=True):
    """How messages are shown."""

    full: bool = False
    """Nothing folded."""
    unicode: bool = True

    def sign(self, fancy: str, plain: str) -> str:
        return fancy if self.unicode else plain


def message_lines(message: Message, look: Look, mark: str = "") -> Iterator[Line]:
    """A message from the log. `mark` says what is special about it."""
    style = f"{STYLES[message.role]} dim" if mark else STYLES[message.role]
    who = one_line(message.author) if message.author else ""
    about = f"  #{message.seq}  {moment(message.created_at)}"
    pieces: list[Piece] = [(str(message.role), style)]
    if who:
        pieces.append((f" {who}", "dim"))
    pieces.append((about, "dim"))
    if mark:
        pieces.append((f"  {mark}", "yellow"))
    yield line(0, *pieces)
    yield from parts_lines(message.parts, look)
    yield BLANK


def parts_lines(parts: tuple[Part, ...], look: Look) -> Iterator[Line]:
    """The content of a message, indented under its head."""
    for part in parts:
        yield from _part_lines(part, look)


def _part_lines(part: Part, look: Look) -> Iterator[Line]:
    match part:
        case Text(text=text):
            yield from _text_lines(text)
        case Reasoning():
            yield from _reasoning_lines(part, look)
        case ToolCall(name=name, arguments=arguments):
            yield from _call_lines(name, arguments, look)
        case ToolResult():
            yield from _result_lines(part, look)
        case Image() | File():
            yield line(2, (f"[{_attachment(part)}]", "magenta"))
        case Unknown(value=value):
            shown = one_line(json.dumps(value, default=str))
            yield line(2, ("[unknown] ", "magenta"), shown if look.full else fit(shown, FOLDED))


def _text_lines(text: str, style: str = "", indent: int = 2) -> Iterator[Line]:
    for row in visible(text).rstrip("\n").split("\n"):
        yield line(indent, (row, style)) if row else BLANK


def _reasoning_lines(part: Reasoning, look: Look) -> Iterator[Line]:
    if not part.text:
        yield line(2, ("thinking (not readable)", "dim italic"))
    elif look.full:
        yield line(2, ("thinking", "dim italic"))
        yield from _text_lines(part.text, "dim italic", 4)
    else:
        first, more = _first_line(part.text)
        yield line(2, ("thinking  ", "dim italic"), (first, "dim"), (more, "dim"))


def _call_lines(name: str, arguments: str, look: Look) -> Iterator[Line]:
    head: Piece = (f"{look.sign('→', '->')} {one_line(name)}", "yellow")
    if not look.full:
        yield line(2, head, (f" {fit(one_line(arguments), FOLDED)}".rstrip(), "dim"))
        return
    yield line(2, head)
    yield from _text_lines(_pretty(arguments), "dim", 4)


def _pretty(arguments: str) -> str:
    """JSON with its fields on lines of their own; anything else as it is."""
    try:
        return json.dumps(json.loads(arguments), indent=2, ensure_ascii=False)
    except ValueError:
        return arguments


def _result_lines(part: ToolResult, look: Look) -> Iterator[Line]:
    sign, style = (look.sign("✗", "x"), "red") if part.is_error else (look.sign("←", "<-"), "blue")
    head: Piece = (f"{sign} {one_line(part.name or part.call_id)}", style)
    attachments = () if isinstance(part.content, str) else part.content
    text = part.content if isinstance(part.content, str) else _texts(attachments)
    if not text:
        yield line(2, head, ("" if attachments else "  (nothing)", "dim"))
    elif look.full or _is_short(text):
        yield line(2, head)
        yield from _text_lines(text, "", 4)
    else:
        first, more = _first_line(text)
        yield line(2, head, "  ", first, (more, "dim"))
    for piece in attachments:
        if not isinstance(piece, Text):
            yield from (row._replace(indent=row.indent + 2) for row in _part_lines(piece, look))


def _texts(parts: tuple[Text | Image | File | Unknown, ...]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def _is_short(text: str) -> bool:
    return len(text) <= SHORT_TEXT and text.rstrip("\n").count("\n") < SHORT_LINES


def _first_line(text: str) -> tuple[str, str]:
    """The first line that says something, and how much more there is."""
    rows = text.strip("\n").split("\n")
    first = fit(one_line(next(row for row in (*rows, "") if row.strip() or row == "")), FOLDED)
    size = size_text(len(text.encode("utf-8", "surrogatepass")))
    if len(rows) > 1:
        return first, f"  +{counted(len(rows) - 1, 'line')}, {size}"
    return first, f"  {size}" if first.endswith("…") else ""


def _attachment(part: Image | File) -> str:
    kind = "image" if isinstance(part, Image) else "file"
    name = part.name if isinstance(part, File) else None
    size = part.size if part.size is not None else (len(part.data) if part.data else None)
    facts = (
        one_line(name or ""), one_line(part.media_type), "" if size is None else size_text(size),
        "" if part.url is None else fit(one_line(part.url), FOLDED),
    )  # fmt: skip
    return " ".join((kind, *(fact for fact in facts if fact)))
