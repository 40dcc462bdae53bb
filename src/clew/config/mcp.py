"""MCP servers as other clients write them, in our words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from msgspec.structs import fields

from clew.config.values import McpConfig

IGNORED = ("type", "transport")
"""Which of the two kinds a server is, shows in whether it has a command or a url."""
NAMES = {"disabled": "enabled", "serverUrl": "url"}
"""How others call a key of ours."""
_REFERENCE = re.compile(r"\$\{env:(\w+)\}")
"""How some clients refer to a variable."""


def ours(server: Mapping[str, Any]) -> dict[str, Any]:
    """A server's table with our keys only for what others call otherwise."""
    found = {name: _ours(value) for name, value in server.items() if name not in IGNORED}
    if isinstance(found.get("disabled"), bool):
        found.setdefault("enabled", not found.pop("disabled"))
    if "serverUrl" in found and "url" not in found:
        found["url"] = found.pop("serverUrl")
    return found


def _ours(value: Any) -> Any:
    """With ${NAME} for ${env:NAME}."""
    if isinstance(value, str):
        return _REFERENCE.sub(r"${\1}", value)
    if isinstance(value, list):
        return [_ours(item) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        return {name: _ours(item) for name, item in cast(dict[str, Any], value).items()}
    return value


def servers_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """The servers of an mcp.json: under mcpServers, or servers."""
    found = data.get("mcpServers", data.get("servers", {}))
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def unknown(server: Mapping[str, Any]) -> list[str]:
    """Keys of a server that mean something to other clients only."""
    known = {field.encode_name for field in fields(McpConfig)}
    return [name for name in server if name not in known]
