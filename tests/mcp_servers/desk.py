"""A server of tools, over stdio or HTTP: `python desk.py [PORT]`.

It writes what happens to it into the file that DESK_LOG names ("start", "slow", "cancelled"), so
that a test can wait for it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from base64 import b64encode
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import (
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)

READS = ToolAnnotations(read_only_hint=True)
PIXEL = b"\x89PNG\r\n\x1a\n" + b"pixels"
server = MCPServer("desk", log_level="ERROR")


def note(what: str) -> None:
    """Tell the test."""
    path = os.environ.get("DESK_LOG")
    if path:
        with open(path, "a", encoding="utf-8") as log:
            log.write(f"{what} {os.getpid()}\n")


@server.tool(annotations=READS)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(structured_output=False)
def write(text: str, times: int = 1) -> str:
    """Give a text back, many times."""
    return text * times


@server.tool(annotations=READS)
async def slow(seconds: float = 3600.0) -> str:
    """Answer after some time."""
    note("slow")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    return "done"


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@server.tool(annotations=READS)
def surroundings(name: str) -> str:
    """An environment variable of the server."""
    return os.environ.get(name, "(none)")


@server.tool(annotations=READS)
def process() -> int:
    """The server's process."""
    return os.getpid()


@server.tool(name="read.file", annotations=READS)
def read_file() -> str:
    """A name that providers do not take."""
    return "with a dot"


@server.tool(name="read_file", annotations=READS)
def read_file_too() -> str:
    """A name that the other could be changed to."""
    return "with a line"


@server.tool()
def everything() -> CallToolResult:
    """All kinds of content."""
    data = b64encode(PIXEL).decode()
    return CallToolResult(
        content=[
            TextContent(text="a text"),
            ImageContent(data=data, mime_type="image/png"),
            ImageContent(data="!!", mime_type="image/png"),
            EmbeddedResource(resource=TextResourceContents(uri="memo:1", text="of a resource")),
            EmbeddedResource(
                resource=BlobResourceContents(
                    uri="file:///a/b.pdf", blob=data, mime_type="application/pdf"
                )
            ),
            ResourceLink(name="log", uri="file:///log", description="the log"),
        ],
        structured_content={"rows": 3},
    )


@server.tool()
async def grow(ctx: Context[Any]) -> str:
    """Offer one tool more, and say so."""
    server.add_tool(lambda: "new", name="grown", description="Came later.")
    await ctx.notify_tools_changed()
    return "grown"


if __name__ == "__main__":
    note("start")
    print("desk is ready", file=sys.stderr, flush=True)
    if len(sys.argv) > 1 and sys.argv[1].isdecimal():
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
