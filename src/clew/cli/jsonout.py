"""JSON on standard output: exact, valid, and harmless to a terminal.

Characters that act on a terminal, and lone surrogates, which UTF-8 cannot hold, stand in strings
only, so they are escaped, which changes nothing for a reader.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

import msgspec

from clew.cli.text import acts


class _Escaped(dict[int, int | str]):
    """For str.translate: each character that acts, as JSON escapes it. Filled as they come."""

    def __missing__(self, code: int) -> int | str:
        self[code] = escaped = f"\\u{code:04x}" if acts(code) else code
        return escaped


_ESCAPED = _Escaped()


def dumps(value: object) -> str:
    """One line of JSON. Structs become objects with all their fields."""
    plain = msgspec.to_builtins(value)
    text = json.dumps(plain, ensure_ascii=False, separators=(", ", ": "))
    return text if text.isprintable() else text.translate(_ESCAPED)


def write(stream: TextIO, value: object) -> None:
    """Print a value."""
    stream.write(_encodable(stream, dumps(value)) + "\n")


def write_list(stream: TextIO, values: Iterable[Any], end: str = "\n") -> None:
    """Print a list, one value a line, as they come."""
    stream.write("[")
    separator = "\n"
    for value in values:
        stream.write(separator + _encodable(stream, dumps(value)))
        separator = ",\n"
    stream.write(("]" if separator == "\n" else "\n]") + end)


def _encodable(stream: TextIO, text: str) -> str:
    """What the stream's encoding cannot hold, escaped."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return json.dumps(json.loads(text), ensure_ascii=True)
    return text


def write_object(
    stream: TextIO, fields: Mapping[str, object], name: str, values: Iterable[Any]
) -> None:
    """Print an object whose last field is a list, its values as they come."""
    head = "".join(f'"{field}": {_encodable(stream, dumps(v))}, ' for field, v in fields.items())
    stream.write(f'{{{head}"{name}": ')
    write_list(stream, values, end="}\n")
