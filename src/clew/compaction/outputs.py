"""What one line can tell of a tool's call and of its output: pure functions over their text.

Tools wrap what they say in many ways: plain text, a JSON object with the text in one of its fields,
an exit code at the beginning or the end. A guess that fails leaves a line out and invents none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from clew.domain.parts import File, Image, Text, ToolCall, ToolResult, Unknown, result_text

LINE = 160
"""Characters of one line of a stub."""
_VALUE = 40
"""Characters of an argument that is neither the command nor the path."""
_MOST_VALUES = 4
_EXTENT = 1 << 20
"""A longer output is not taken apart as JSON."""
_HEAD, _TAIL = 400, 600
"""Where an exit code is looked for: what a program prints in between is not about itself."""

_COMMANDS = ("command", "cmd", "script", "code")
_PATHS = (
    "path", "file_path", "filepath", "filename", "file", "absolute_path", "notebook_path",
    "directory", "dir",
)  # fmt: skip
_FIRST = (*_COMMANDS, *_PATHS, "pattern", "query", "url")
_CODES = ("exit_code", "exitCode", "returncode", "return_code", "exit_status")
_TEXTS = ("output", "stdout", "stderr", "content", "text", "result", "error")

_CODE = re.compile(
    r"\b(?:exit(?:ed)?[ _-]?(?:with[ _-])?(?:status|code)|return[ _-]?code)\b"
    r"[\"'>]*\s*(?:[:=]|is|of)?\s*(-?\d{1,6})\b",
    re.IGNORECASE,
)
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ERROR = re.compile(
    r"errors?\b|exceptions?\b|traceback|\bfail(?:s|ed|ing|ures?)?\b|\bfatal\b|panic"
    r"|\b(?:denied|refused|cannot|undefined|unresolved|invalid)\b|not found|no such file",
    re.IGNORECASE,
)
_NO_ERROR = re.compile(
    r"\b(?:0|no|without|zero)\s+(?:\w+\s+)?(?:errors?|fail\w*|exceptions?|issues?)"
    r"|(?:errors?|fail\w*)[\"']?\s*[:=]\s*(?:0\b|null|none|false|\(none\)|\"\"|\[\])",
    re.IGNORECASE,
)
_READERS = re.compile(
    r"(?:cd\s+\S+\s*(?:&&|;)\s*)*(?:sudo\s+)?"
    r"(?:cat|bat|head|tail|less|nl|sed|awk|grep|rg|ag|ls|tree|find|git\s+(?:diff|show|log|grep))\b"
)
"""Commands that print what is in files: a word like "error" there says nothing about the call."""


def command_of(call: ToolCall | None) -> str | None:
    """The command that a call runs, if that is what it does."""
    values = _arguments(call)
    return next((_said(values[name]) for name in _COMMANDS if values.get(name)), None)


def described(call: ToolCall | None, name: str | None = None) -> str:
    """A call on one line: its name, then command and path, then what else is short.

    "" when nothing is known of it. `name`: the one that the result carries.
    """
    if call is None:
        return name or ""
    values = _arguments(call)
    told = [name for name in _FIRST if values.get(name)]
    said = [shortened(_said(values[name]), LINE) for name in told[:2]]
    rest = [key for key, value in values.items() if key not in told and _is_plain(value)]
    said += [f"{key}={shortened(_said(values[key]), _VALUE)}" for key in rest[:_MOST_VALUES]]
    if not values and call.arguments.strip() not in ("", "{}", "null"):
        said = [call.arguments]
    return shortened(f"{call.name}: {', '.join(said)}" if said else call.name, LINE)


def notes(call: ToolCall | None, result: ToolResult) -> list[str]:
    """What an output says of itself: how it ended, and its first and last telling line.

    Lines about errors where it failed, else how it begins and ends.
    """
    raw = result_text(result)
    fields = _fields(raw)
    text = _unwrapped(fields) if fields else raw
    code = _exit_code(raw, fields, command_of(call))
    found: list[str] = []
    if code is not None:
        found.append(f"exit code {code}")
    elif result.is_error:
        found.append("failed")
    lines = list(_errors(text)) if _may_have_failed(call, result, text, code) else []
    return found + (lines or _ends(text))


def counted(result: ToolResult) -> tuple[int, int]:
    """Lines and characters of an output's text."""
    raw = result_text(result)
    fields = _fields(raw)
    text = _unwrapped(fields) if fields else raw
    return text.count("\n") + bool(text and not text.endswith("\n")), len(raw)


def attached(result: ToolResult) -> list[str]:
    """The images and files of a result, one line each: "image/png 812x600, 240 kB"."""
    if isinstance(result.content, str):
        return []
    named = (
        "content of an unknown kind" if isinstance(part, Unknown) else media(part)
        for part in result.content
        if not isinstance(part, Text)
    )
    return [shortened(line, LINE) for line in named]


def media(part: Image | File) -> str:
    """An image or file by what is known of it: "image/png 812x600, 240 kB"."""
    if isinstance(part, File):
        name = f"{part.name}, " if part.name else ""
        return f"{name}{part.media_type}{_bytes(part)}"
    area = f" {part.width}x{part.height}" if part.width and part.height else ""
    return f"{part.media_type}{area}{_bytes(part)}"


def shortened(text: str, most: int) -> str:
    """On one line of at most `most` characters, its middle left out: what counts in a command
    stands at its beginning and its end."""
    if len(text) > 8 * most:
        text = f"{text[: 4 * most]}…{text[-4 * most :]}"
    line = " ".join(_COLOURS.sub("", text).split())
    if len(line) <= most:
        return line
    tail = (most - 1) // 3
    return f"{line[: most - 1 - tail]}…{line[len(line) - tail :]}"


# ---------------------------------------------------------------------- calls


def _arguments(call: ToolCall | None) -> dict[str, Any]:
    if call is None or not call.arguments.lstrip().startswith("{"):
        return {}
    return _object(call.arguments) or {}


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) and value != ""


def _said(value: object) -> str:
    """A value as text; of a command in a list, `["bash", "-lc", "make"]`, what it runs."""
    if isinstance(value, list):
        words = [str(word) for word in cast(list[object], value)]
        return words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else " ".join(words)
    return str(value)


# ---------------------------------------------------------------------- outputs


def _fields(text: str) -> dict[str, Any] | None:
    """The object that an output is, if it is one."""
    if len(text) > _EXTENT or text.lstrip()[:1] != "{":
        return None
    return _object(text)


def _unwrapped(fields: dict[str, Any]) -> str:
    texts = [fields[name] for name in _TEXTS if isinstance(fields.get(name), str)]
    found = "\n".join(text for text in texts if text)
    return found or json.dumps(fields, ensure_ascii=False)


def _exit_code(raw: str, fields: dict[str, Any] | None, command: str | None) -> int | None:
    if fields:
        inner = fields.get("metadata")
        places = [fields, cast(dict[str, Any], inner)] if isinstance(inner, dict) else [fields]
        found = (place.get(name) for place in places for name in _CODES)
        return next((code for code in found if type(code) is int), None)
    if command is None:
        return None
    codes = _CODE.findall(raw[-_TAIL:]) or _CODE.findall(raw[:_HEAD])
    return int(codes[-1]) if codes else None


def _may_have_failed(
    call: ToolCall | None, result: ToolResult, text: str, code: int | None
) -> bool:  # fmt: skip
    if code is not None or result.is_error:
        return bool(code) or result.is_error
    command = command_of(call)
    if command is not None:
        return _READERS.match(command.strip()) is None
    first = text[:LINE].lstrip().split("\n", 1)[0]
    return _tells(first)


def _tells(line: str) -> bool:
    return _ERROR.search(line) is not None and _NO_ERROR.search(line) is None


def _errors(text: str) -> Iterator[str]:
    """The first and the last line that tells of an error."""
    first = next(_error_lines(text), None)
    if first is None:
        return
    yield shortened(first, LINE)
    last = next(_error_lines_back(text), first)
    if last != first:
        yield shortened(last, LINE)


def _error_lines(text: str) -> Iterator[str]:
    for match in _ERROR.finditer(text):
        line = _line_at(text, match.start())
        if _tells(line):
            yield line


def _error_lines_back(text: str) -> Iterator[str]:
    """The same from the end, in slices: the whole of a long output need not be searched."""
    end = len(text)
    while end > 0:
        start = max(0, end - 4096)
        start = text.rfind("\n", 0, start) + 1 if start else 0
        for line in reversed(text[start:end].split("\n")):
            if _tells(line):
                yield line
        end = start - 1


def _line_at(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return text[start : len(text) if end < 0 else end]


def _ends(text: str) -> list[str]:
    """The first and the last line that is not empty."""
    body = text.strip()
    if not body:
        return []
    ends = (_line_at(body, 0), _line_at(body, len(body) - 1))
    return [shortened(line, LINE) for line in dict.fromkeys(ends)]


def _bytes(part: Image | File) -> str:
    size = part.size if part.data is None else len(part.data)
    if size is None:
        return ""
    if size < 1_000:
        return f", {size} bytes"
    unit, divisor = ("kB", 1_000) if size < 1_000_000 else ("MB", 1_000_000)
    return f", {round(size / divisor)} {unit}"
