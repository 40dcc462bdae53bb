"""Hosts for measurements: a real store, a tool, and a model in memory that answers at once."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import clew
import clew.aio
from benchmarks import clew_adapter
from benchmarks.workload import Writer
from clew.config.values import ChatConfig, Config, LimitsConfig, ProviderConfig
from clew.domain.parts import Part, Text, ToolCall
from clew.domain.turns import Usage
from clew.host.host import Host
from clew.providers.api import Body, Model, Reply, StreamEvent, TextDelta, ToolSpec
from clew.providers.openai_chat import OpenAIChat
from clew.providers.registry import Providers
from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.profile import AsyncProfile
from clew.store.sqlite import SqliteBackend
from clew.tools.api import Tool, ToolCallContext, ToolOutput, Verdict
from clew.tools.toolbox import Toolbox

CONFIG = Config(chat=ChatConfig(titles=False), limits=LimitsConfig(repeats=0))
"""No side requests, and no end to tools that are called in each turn."""
Script = Callable[[Body], Sequence[Part]]
_TEXTS = 97
_NOWHERE = ProviderConfig(base_url="http://127.0.0.1:9/v1")


class Quick(OpenAIChat):
    """A provider whose requests are rendered as for a server, and whose answers are there at once:
    what takes time is the host. `bodies`: what it was sent, if it is to keep it."""

    def __init__(self, script: Script, window: int, *, keep: bool = False) -> None:
        super().__init__("bench", _NOWHERE, None)
        self.model = Model(name="gpt-4o", provider=self.name, window=window, reply=window // 8)
        self.script, self.keep = script, keep
        self.bodies: list[Body] = []
        self.asked = 0

    async def stream(self, body: Body) -> AsyncIterator[StreamEvent]:
        """The whole answer as one piece."""
        self.asked += 1
        if self.keep:
            self.bodies.append(body)
        parts = tuple(self.script(body))
        for part in parts:
            if isinstance(part, Text):
                yield TextDelta(part.text)
        calls = any(isinstance(part, ToolCall) for part in parts)
        yield Reply(parts=parts, stop="tool_calls" if calls else "stop", usage=Usage())

    async def models(self) -> tuple[str, ...]:
        return (self.model.name,)

    async def describe(self, model: str) -> Model | None:
        return self.model


class Look:
    """A tool that returns a page."""

    origin = "bench"
    spec = ToolSpec("look", "Looks at a page.", {"type": "object", "properties": {}})
    read_only = True
    default: Verdict = "allow"

    def __init__(self, size: int) -> None:
        self._size = size

    async def call(self, arguments: Mapping[str, Any], where: ToolCallContext) -> ToolOutput:
        return ToolOutput(text(int(arguments["n"]), self._size))


class _Shelf:
    name = "bench"

    async def tools(self) -> Sequence[Tool]:
        return (Look(700),)

    async def close(self) -> None:
        """Nothing to close."""


@asynccontextmanager
async def hosted(path: Path, provider: Quick) -> AsyncGenerator[tuple[Host, AsyncProfile]]:
    """A host on a store, with one tool besides the built-in ones."""
    async with clew.aio.open(path) as store:
        profile = store.profile(clew_adapter.PROFILE)
        providers = Providers(CONFIG, lambda name, section: None)
        providers.add(provider)
        toolbox = Toolbox(CONFIG.tools, sources=[_Shelf()])
        async with Host(profile, providers, toolbox, CONFIG) as host:
            yield host, profile


def text(seed: int, size: int) -> str:
    """Prose and code of so many characters, from one of some texts by seed."""
    return _text(seed % _TEXTS, size)


@cache
def _text(seed: int, size: int) -> str:
    return Writer(f"host {seed}").text(size)


def answered(body: Body, every: int) -> Sequence[Part]:
    """A tool first in one of `every` turns (0: in none), then words."""
    messages = body.payload["messages"]
    users = sum(message["role"] == "user" for message in messages)
    last = messages[-1]
    if every and last["role"] == "user" and f"tool {every}" in str(last["content"]):
        return (ToolCall(f"c{len(messages)}_{users}", "look", f'{{"n": {len(messages)}}}'),)
    return (Text(text(len(messages), 400)),)


def question(n: int, *, tool: bool = False, every: int = 2) -> str:
    """What a person says in turn n."""
    return f"Question {n}{f' for tool {every}' if tool else ''}: {text(n, 250)}"


class Meter:
    """Processor time between two looks, of all threads of this process."""

    def __init__(self) -> None:
        self._last = time.process_time()

    def milliseconds(self) -> float:
        """Since the last look."""
        now, before = time.process_time(), self._last
        self._last = now
        return (now - before) * 1e3


class Writes:
    """Counts transactions that write, of all stores of this process: a job has one of its own."""

    def __init__(self) -> None:
        self._count = 0
        plain, awaited = SqliteBackend.write, SqliteBackend.write_async

        def write(backend: SqliteBackend, unit: Any) -> Any:
            self._count += 1
            return plain(backend, unit)

        async def write_async(backend: SqliteBackend, unit: Any) -> Any:
            self._count += 1
            return await awaited(backend, unit)

        SqliteBackend.write = write  # type: ignore[method-assign]
        SqliteBackend.write_async = write_async  # type: ignore[method-assign]

    def taken(self) -> int:
        """Since the last look."""
        found, self._count = self._count, 0
        return found


async def say(host: Host, conversation: AsyncConversation, words: str) -> None:
    """One turn, which must be answered."""
    report = await host.say(conversation, [clew.user(words)])
    assert report.state == "done", report
