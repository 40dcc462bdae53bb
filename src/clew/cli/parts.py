"""The content of a message as lines, with the long things folded unless asked for.

Pure: values in, lines out. Everything that comes from a conversation is made harmless here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from msgspec import Struct

from clew.cli.lines import BLANK, WIDEST, Line, line
from clew.cli.screen import Piece
from clew.cli.text import cells, glance, one_line, visible
from clew.domain.parts import (
    File,
    Image,
    Part,
    Parts,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)
from clew.store.findings import counted, size_text

INDENT = 2
"""Of content under its head."""
DEEP = 12
"""Columns that a line of text goes on further in, at most."""
NARROW = 20
"""Columns that a folded piece has at least."""
NAME = 40
"""Columns of a name: of a tool, an author, a file."""
SHORT_LINES, SHORT_TEXT = 3, 240
"""A tool output of at most so many lines and characters is not folded."""


class Look(Struct, frozen=True):
    """How messages are shown."""

    full: bool = False
    """Nothing folded."""
    unicode: bool = True
    width: int = WIDEST
    """Columns; what is folded has its line to itself and is as long as that."""
    under: Mapping[str, tuple[Line, ...]] = {}
    """Lines to stand under a tool call, by its id."""
    target: int | None = None
    """Seq of the message to point at."""
    opening: str = "clew show"
    """What a person types before the id of a conversation; empty: need not be said."""

    def sign(self, fancy: str, plain: str) -> str:
        return fancy if self.unicode else plain

    def glance(self, text: str, width: int) -> str:
        """The beginning of a text on one line."""
        return glance(text, width, self.sign("…", "..."))

    def beside(self, text: str, *others: str) -> str:
        """The beginning of a text, as much as has room on an indented line with others."""
        room = self.width - INDENT - sum(map(cells, others))
        return self.glance(text, max(NARROW, room))


def parts_lines(parts: Parts, look: Look, note: str = "", folded: bool = False) -> Iterator[Line]:
    """The content of a message, indented under its head. `note` stands behind the head of each
    tool result; with `folded` texts are folded too."""
    for part in parts:
        yield from _part_lines(part, look, note, folded)


def _part_lines(part: Part, look: Look, note: str, folded: bool) -> Iterator[Line]:
    match part:
        case Text(text=text):
            if folded and not look.full and not _is_short(text):
                first, more = folded_text(text, look)
                yield line(INDENT, first, (more, "dim"))
            else:
                yield from text_lines(text)
        case Reasoning():
            yield from _reasoning_lines(part, look)
        case ToolCall():
            yield from _call_lines(part, look)
            yield from look.under.get(part.id, ())
        case ToolResult():
            yield from _result_lines(part, look, note)
        case Image() | File():
            yield line(INDENT, (f"[{_attachment(part, look)}]", "magenta"))
        case Unknown(value=value):
            sign, shown = "[unknown] ", json.dumps(value, default=str)
            shown = one_line(shown) if look.full else look.beside(shown, sign)
            yield line(INDENT, (sign, "magenta"), shown)


def text_lines(text: str, style: str = "", indent: int = INDENT) -> Iterator[Line]:
    """All of a text."""
    for row in visible(text).rstrip("\n").split("\n"):
        yield line(indent, (row, style), hang=_hang(row)) if row.strip() else BLANK


def _hang(row: str) -> int:
    """Where a line goes on: under its own indent, behind the dash of a list."""
    words = row.lstrip(" ")
    return min(len(row) - len(words) + (2 if words[:2] in ("- ", "* ") else 0), DEEP)


def folded_text(text: str, look: Look, *beside: str) -> tuple[str, str]:
    """The first line that says something, and how much more there is; both have room on an indented
    line with what stands beside them."""
    text = text.strip("\n")
    first = next((row for row in text.split("\n", 100) if row.strip()), "")
    size = size_text(len(text.encode("utf-8", "surrogatepass")))
    lines = text.count("\n")
    more = f"  +{counted(lines, 'line')}, {size}" if lines else f"  {size}"
    shown = look.beside(first, more, *beside)
    whole = not lines and shown == one_line(first)
    return shown, "" if whole else more


def kinds(parts: Parts) -> str:
    """What there is where there is no text: (image), (unknown, reasoning)."""
    return f"({', '.join(type(part).__name__.lower() for part in parts) or 'nothing'})"


def _reasoning_lines(part: Reasoning, look: Look) -> Iterator[Line]:
    if not part.text:
        yield line(INDENT, ("thinking (not readable)", "dim italic"))
    elif look.full:
        yield line(INDENT, ("thinking", "dim italic"))
        yield from text_lines(part.text, "dim italic", 2 * INDENT)
    else:
        sign = "thinking  "
        first, more = folded_text(part.text, look, sign)
        yield line(INDENT, (sign, "dim italic"), (first, "dim"), (more, "dim"))


def _call_lines(part: ToolCall, look: Look) -> Iterator[Line]:
    head: Piece = (f"{look.sign('→', '->')} {look.glance(part.name, NAME)}", "yellow")
    if not look.full:
        shown = look.beside(part.arguments, head[0], " ")
        yield line(INDENT, head, (f" {shown}".rstrip(), "dim"))
        return
    yield line(INDENT, head)
    yield from text_lines(_pretty(part.arguments), "dim", 2 * INDENT)


def _pretty(arguments: str) -> str:
    """JSON with its fields on lines of their own; anything else as it is."""
    try:
        return json.dumps(json.loads(arguments), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return arguments


def _result_lines(part: ToolResult, look: Look, note: str) -> Iterator[Line]:
    sign, style = (look.sign("✗", "x"), "red") if part.is_error else (look.sign("←", "<-"), "blue")
    head: Piece = (f"{sign} {look.glance(part.name or part.call_id, NAME)}", style)
    tail: Piece = (note and f"  {note}", "dim")
    attachments = () if isinstance(part.content, str) else part.content
    text = part.content if isinstance(part.content, str) else _texts(attachments)
    first, more = folded_text(text, look, head[0], "  ", tail[0])
    if not text.strip():
        said = "" if attachments else "  (nothing)"
        yield line(INDENT, head, (said, "dim"), tail)
    elif look.full or (more and _is_short(text)):
        yield line(INDENT, head, tail)
        yield from text_lines(text, "", 2 * INDENT)
    else:
        yield line(INDENT, head, "  ", first, (more, "dim"), tail)
    for piece in attachments:
        if not isinstance(piece, Text):
            yield from (
                row._replace(indent=row.indent + INDENT)
                for row in _part_lines(piece, look, "", False)
            )


def _texts(parts: tuple[Text | Image | File | Unknown, ...]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def _is_short(text: str) -> bool:
    return len(text) <= SHORT_TEXT and text.strip("\n").count("\n") < SHORT_LINES


def _attachment(part: Image | File, look: Look) -> str:
    kind = "image" if isinstance(part, Image) else "file"
    name = part.name if isinstance(part, File) else None
    size = part.size if part.size is not None else (len(part.data) if part.data else None)
    pixels = ""
    if isinstance(part, Image) and part.width is not None and part.height is not None:
        pixels = f"{part.width}x{part.height}"
    facts = (
        look.glance(name or "", NAME), look.glance(part.media_type, NAME), pixels,
        "" if size is None else size_text(size),
        "" if part.url is None else look.glance(part.url, NAME + NAME),
    )  # fmt: skip
    return " ".join((kind, *(fact for fact in facts if fact)))
