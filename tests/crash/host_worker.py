"""A host that is killed at a named point of a turn; and the pieces its test uses, too.

    python host_worker.py STORE CONVERSATION POINT NUMBER

runs the turns of CONVERSATION: the message `u1` is said, what is left is gone on with. When the
point is passed the NUMBERth time the process kills itself with -9. Without POINT it lives.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))

from hosting import Function, Made, calls, hosted

import clew
from clew.clock import SystemClock
from clew.config.values import ChatConfig, CompactionConfig, Config
from clew.host.host import Host
from clew.providers.api import Body, Model, Reply
from clew.store.aio.conversation import AsyncConversation
from clew.testing.provider import ScriptedProvider

CONFIG = Config(chat=ChatConfig(titles=False), compaction=CompactionConfig(high=0.5, low=0.25))
WINDOW = 16_000


def answer(body: Body) -> str | Reply:
    """What the model says depends on what it is asked alone: after a crash it is asked again."""
    messages: list[dict[str, Any]] = body.payload["messages"]
    last = messages[-1]
    if last["role"] == "tool":
        return "All is done. " + "It took a while. " * 5
    ids = {call["id"] for m in messages for call in m.get("tool_calls") or ()}
    return calls(*((f"{name}{len(ids)}", name) for name in ("write", "look", "careful")))


def provider() -> ScriptedProvider:
    model = Model(name="scripted", provider="scripted", window=WINDOW)
    return ScriptedProvider(answer, model=model)


def tools(folder: Path) -> list[Made]:
    """`write` has an effect, `look` has none, `careful` has one and must be allowed. What was done
    stands in a file, so that it can be counted over all processes."""

    def effect(name: str, seconds: float = 0) -> Function:
        async def work(_: Mapping[str, Any]) -> str:
            await asyncio.sleep(seconds)
            noted(folder / "effects", name)
            return f"{name} was done"

        return work

    return [
        Made("write", effect("write")),
        Made("look", effect("look", 0.1), read_only=True),
        Made("careful", effect("careful"), default="ask"),
    ]  # fmt: skip


def noted(path: Path, line: str) -> None:
    """Add a line to a file, in one write that no kill can split."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, f"{line}\n".encode())
    os.close(fd)


class Post:
    """A channel that writes what it sends into a file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "sent"

    async def send(self, route: str, payload: Any, key: str) -> None:
        noted(self._path, json.dumps([route, key, payload["text"]]))


class Later(SystemClock):
    """Two minutes ahead: what a dead publisher had taken is due again."""

    def now(self) -> int:
        return super().now() + 120_000_000


async def carry_on(host: Host, conv: AsyncConversation) -> None:
    """Say the message, which may have been said before, and do all that is left; a person allows
    what has to be allowed."""
    message = clew.user("Do it.", key="u1", meta={"reply_to": "post:me"})
    await host.say(conv, [message])
    while True:
        for approval in await conv.approvals():
            if approval.state == "asked":
                await host.answer(conv, approval.call_id, True)
        if await host.go_on(conv) is None:
            return


async def main(place: str, id: str, point: str = "", number: str = "1") -> None:
    folder, left = Path(place).parent, int(number)

    def watch(at: str) -> None:
        nonlocal left
        left -= at == point
        if at == point and left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    async with hosted(
        place, provider(), *tools(folder), config=CONFIG, watch=watch,
        channels={"post": Post(folder)}, clock=None if point else Later(),
    ) as (host, profile):  # fmt: skip
        await carry_on(host, await profile.open(id))
        if not point and host.publisher is not None:
            await host.publisher.publish()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
