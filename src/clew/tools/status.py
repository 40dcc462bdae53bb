"""How it stands with a tool, for a person."""

from __future__ import annotations

from msgspec import Struct


class ToolStatus(Struct, frozen=True, kw_only=True):
    """A tool that is offered, or `SERVER.*` of a server that could not say what it offers."""

    name: str
    origin: str
    """"built-in", or the name of the server."""
    read_only: bool = False
    available: bool = True
    error: str | None = None
    """Why it is not available, and what helps."""
