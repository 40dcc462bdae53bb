"""What the tests of MCP share: toolboxes over real servers, and waiting for what they do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, cast

from clew.config.values import McpConfig, ToolsConfig
from clew.domain.parts import ToolCall, ToolResult
from clew.tools.api import ToolCallContext
from clew.tools.toolbox import Toolbox

SERVERS = Path(__file__).resolve().parent.parent / "mcp_servers"
WAIT = 30.0
"""Seconds that a thing which happens may take on a busy machine."""
QUIET = ToolsConfig(builtin=False)


def desk(log: Path | None = None, **more: Any) -> McpConfig:
    """The server of the SDK, over stdio."""
    env = {**more.pop("env", {}), **({"DESK_LOG": str(log)} if log else {})}
    return McpConfig(command=sys.executable, args=[str(SERVERS / "desk.py")], env=env, **more)


def old(*habits: str, log: Path | None = None, **more: Any) -> McpConfig:
    """A server older than the SDK."""
    env = {**more.pop("env", {}), **({"OLD_LOG": str(log)} if log else {})}
    args = [str(SERVERS / "old.py"), *habits]
    return McpConfig(command=sys.executable, args=args, env=env, **more)


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, 120))


@contextlib.asynccontextmanager
async def toolbox(config: ToolsConfig = QUIET, **servers: McpConfig) -> AsyncIterator[Toolbox]:
    box = Toolbox(config, servers)
    try:
        yield box
    finally:
        await box.close()


def place() -> ToolCallContext:
    nothing = cast(Any, None)
    return ToolCallContext(nothing, nothing, asyncio.Event())


async def call(box: Toolbox, name: str, arguments: str = "") -> ToolResult:
    return await box.call(ToolCall("call-1", name, arguments), place())


async def until(holds: Callable[[], object]) -> None:
    """Wait until something holds, that another process brings about."""
    deadline = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < deadline, "it never happened"
        await asyncio.sleep(0.01)


def lines(log: Path, word: str) -> list[int]:
    """Process ids of the lines with this word."""
    if not log.exists():
        return []
    found = (line.split() for line in log.read_text("utf-8").splitlines())
    return [int(parts[-1]) for parts in found if len(parts) == 2 and parts[0] == word]


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] == "Z"


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@contextlib.contextmanager
def serving(
    port: int, log: Path | None = None, program: str = "desk.py"
) -> Iterator[subprocess.Popen[bytes]]:
    """The server of the SDK over HTTP, once it listens."""
    process = subprocess.Popen(
        [sys.executable, str(SERVERS / program), str(port)],
        env={**os.environ, **({"DESK_LOG": str(log)} if log else {})},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + WAIT
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None, "the server has ended"
            assert time.monotonic() < deadline, "the server does not listen"
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.wait()
