"""The names by which a model calls tools of servers: SERVER__TOOL.

Providers take at most 64 letters, digits, `_` and `-`. A name is a function of server and tool
alone, so that it stays the same whatever else is offered: one that had to be changed carries a hash
of what it was, and can be no other's.
"""

from __future__ import annotations

import re
from hashlib import sha256

LONGEST = 64
BETWEEN = "__"
_SERVER = 30
"""Characters of a server's name."""
_HASH = 8
_OTHERS = re.compile(r"[^a-zA-Z0-9_-]")


def tool_name(server: str, tool: str) -> str:
    """The name of a server's tool, for a model."""
    name = prefix(server) + _OTHERS.sub("_", tool)
    if name == f"{server}{BETWEEN}{tool}" and len(name) <= LONGEST and _splits(server):
        return name
    digest = sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{name[: LONGEST - _HASH - 1]}_{digest}"


def prefix(server: str) -> str:
    """How the names of a server's tools begin. Two servers may share it; their names differ."""
    return _OTHERS.sub("_", server)[:_SERVER] + BETWEEN


def _splits(server: str) -> bool:
    """Whether the first `__` of a name ends the server's: else a tool of "a" and one of "a__b"
    could be called the same."""
    return BETWEEN not in server and not server.endswith("_") and bool(server)
