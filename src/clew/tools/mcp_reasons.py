"""Why a server could not be used, and what helps, from what the SDK raised."""

from __future__ import annotations

import httpx2
from mcp.shared.exceptions import MCPError
from mcp.types import CONNECTION_CLOSED

from clew.config.values import McpConfig

_REFUSED = {
    401: "it refuses who asks (HTTP 401); check its headers in the configuration.",
    403: "it refuses who asks (HTTP 403); check its headers in the configuration.",
    404: "there is nothing at its url (HTTP 404); check it, it often ends in /mcp.",
    405: "its url takes no calls (HTTP 405); check it, it often ends in /mcp.",
}


def reason(config: McpConfig, error: BaseException | None, status: int | None) -> str:
    """A sentence. `status`: of the last answer of HTTP, if it was an error."""
    if status in _REFUSED:
        return _REFUSED[status]
    if status is not None:
        said = f": {error.message}" if isinstance(error, MCPError) else ""
        return f"it answered with HTTP {status}{said}."
    match error:
        case MCPError() if error.code == CONNECTION_CLOSED:
            return "it ended while it was started."
        case MCPError():
            return f"it says: {error.message}."
        case FileNotFoundError():
            return f"{config.command!r} was not found, or its cwd; install it, or give its path."
        case PermissionError():
            return f"{config.command!r} may not be run; make it executable, or give another."
        case httpx2.TransportError():
            return f"its url does not answer ({type(error).__name__}); is it running?"
        case None:
            return "it did not answer."
        case _:
            return f"{type(error).__name__}: {error}."
