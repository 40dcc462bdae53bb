"""Entries of renderings in a few words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from clew.context.entries import Entry
from clew.domain.messages import Role
from clew.domain.parts import Part, Text, ToolCall, ToolResult
from clew.errors import NotFound

PNG = b"\x89PNG\r\n\x1a\n"


def no_blob(digest: str) -> bytes:
    raise NotFound("blob", digest)


def said(role: Role, *parts: Part, author: str | None = None) -> Entry:
    return Entry(role, parts, author)


def user(*parts: Part | str, author: str | None = None) -> Entry:
    found = [Text(part) if isinstance(part, str) else part for part in parts]
    return said(Role.USER, *found, author=author)


def assistant(*parts: Part | str) -> Entry:
    return said(Role.ASSISTANT, *(Text(p) if isinstance(p, str) else p for p in parts))


def call(id: str, name: str = "run", arguments: str = "{}", kind: str = "function") -> ToolCall:
    return ToolCall(id, name, arguments, kind)


def result(id: str, content: Any = "ok", is_error: bool = False) -> Entry:
    return said(Role.TOOL, ToolResult(id, content, None, is_error))


def read(value: Any) -> None:
    """Pydantic looks at what is iterable only when it is read."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, Iterable) and not isinstance(value, str):
        for inner in value:
            read(inner)
