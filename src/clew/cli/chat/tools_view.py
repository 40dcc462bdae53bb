"""A tool call on one line: its name, what it was given, how long it took, what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from clew.cli.lines import Line, line
from clew.cli.parts import Look, parts_lines
from clew.cli.screen import Piece
from clew.cli.text import cells, glance, one_line
from clew.domain.parts import Text, ToolCall, ToolResult
from clew.store.findings import counted, size_text

NAME = 30
LEAST = 10
"""Columns of the arguments, at least."""
VALUE = 40
"""Columns of one argument."""


def running(call: ToolCall, width: int, unicode: bool) -> list[Piece]:
    """A call that was begun."""
    return [*_head(call, width - len(" ..."), unicode, "yellow"), (" ...", "dim")]


def finished(
    call: ToolCall, result: ToolResult, seconds: float, width: int, unicode: bool
) -> list[Piece]:
    """A call that was answered."""
    said = f"  {_time(seconds)}, {_size(result)}"
    if not result.is_error:
        return [*_head(call, width - cells(said), unicode, "yellow"), (said, "dim")]
    room = max(LEAST, width - cells(said))
    head = _head(call, room // 2, unicode, "red")
    rest = max(LEAST, room - sum(cells(text) for text, _ in head))
    why = glance(text_of(result), rest - 2)
    return [*head, (f"  {why}" if why else "", "red"), (said, "dim")]


def asked(call: ToolCall) -> Iterator[Line]:
    """A call that waits for a person, whole: what is allowed must be seen."""
    yield line(0, ("? ", "yellow bold"), (glance(call.name, NAME + NAME), "bold"))
    yield from _arguments(call)


def expanded(call: ToolCall, result: ToolResult | None) -> Iterator[Line]:
    """A call and its result, whole."""
    yield line(0, (glance(call.name, NAME + NAME), "bold"))
    yield from _arguments(call)
    if result is not None:
        yield from parts_lines((result,), Look(full=True))


def text_of(result: ToolResult) -> str:
    """The text of a result."""
    if isinstance(result.content, str):
        return result.content
    return "\n".join(part.text for part in result.content if isinstance(part, Text))


def short_arguments(arguments: str, width: int) -> str:
    """Arguments on one line: the values, with their names where there are several."""
    given = _object(arguments)
    if given is None:
        return glance(arguments, width)
    if len(given) == 1:
        return glance(_value(next(iter(given.values()))), width)
    pairs = (f"{name}={glance(_value(value), VALUE)}" for name, value in given.items())
    return glance(" ".join(pairs), width)


def _arguments(call: ToolCall) -> Iterator[Line]:
    given = _object(call.arguments)
    if given is None:
        yield line(2, one_line(call.arguments))
        return
    for name, value in given.items():
        for number, row in enumerate(_value(value).split("\n")):
            label = f"{one_line(name)}: " if number == 0 else "  "
            yield line(2, (label, "dim"), one_line(row) if number == 0 else _indented(row))


def _indented(row: str) -> str:
    return " " * (len(row) - len(row.lstrip())) + one_line(row)


def _head(call: ToolCall, width: int, unicode: bool, style: str) -> list[Piece]:
    sign = "→ " if unicode else "-> "
    name = glance(call.name, NAME)
    room = width - cells(sign + name) - 1
    given = short_arguments(call.arguments, room) if room >= LEAST else ""
    return [(sign + name, style), (f" {given}" if given else "", "dim")]


def _object(arguments: str) -> dict[str, Any] | None:
    try:
        given: object = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", given) if isinstance(given, dict) else None


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _size(result: ToolResult) -> str:
    if not isinstance(result.content, str):
        others = sum(not isinstance(part, Text) for part in result.content)
        if others:
            return counted(others, "attachment")
    text = text_of(result)
    lines = text.count("\n") + 1
    return counted(lines, "line") if lines > 1 else size_text(len(text.encode("utf-8", "replace")))


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 99.95 else f"{seconds / 60:.0f} min"
