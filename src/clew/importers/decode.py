"""JSON from a stranger: what is nearly right is read, what is not is a ValueError that says why."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

DEEPEST = 500
"""Levels of nesting; deeper values are refused, since what reads them later may recurse."""

_decoder = msgspec.json.Decoder()
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
"""A text that does not end goes to the end: else each of its quotes would be tried as its begin."""
_COLON = re.compile(rb"\s*:")


def decode(data: bytes | str) -> Any:
    """The value of a JSON text. Of equal keys the last counts. Invalid UTF-8 becomes U+FFFD; lone
    surrogates, NaN and control characters in texts are taken as they are. ValueError."""
    if isinstance(data, str):
        data = data.encode(errors="replace")
    try:
        value = _decoder.decode(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        value = _lenient(data)
    check_depth(data)
    return value


def _lenient(data: bytes) -> Any:
    if not data.strip(b"\0 \t\r\n"):
        raise ValueError("nothing but NUL bytes" if b"\0" in data else "empty")
    text = data.decode("utf-8", "replace")
    try:
        return json.loads(text, strict=False)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")
        raise ValueError(f"no JSON: {what} at character {error.pos + 1}") from None


def check_depth(data: bytes) -> None:
    """Refuse a text that nests deeper than DEEPEST."""
    if data.count(b"{") + data.count(b"[") <= DEEPEST:
        return
    depth = 0
    for match in _TOKEN.finditer(data):
        token = match[0]
        if token in (b"{", b"["):
            depth += 1
            if depth > DEEPEST:
                raise ValueError(f"nested deeper than {DEEPEST} levels")
        elif token in (b"}", b"]"):
            depth -= 1


def loose_keys(head: bytes) -> frozenset[str]:
    """The keys of the object that a JSON text begins with, as far as the text goes."""
    found: set[str] = set()
    depth = 0
    for match in _TOKEN.finditer(head):
        token = match[0]
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                break
        elif depth == 1 and _COLON.match(head, match.end()):
            found.add(token[1:-1].decode("utf-8", "replace"))
    return frozenset(found)
