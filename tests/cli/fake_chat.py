"""A chat and a host for the tests of its commands: they write down what is asked of them; the store
is a real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import clew
import clew.aio
from clew.cli.chat.api import Piece
from clew.cli.chat.commands import registry
from clew.cli.settings import Settings
from clew.compaction.aio import AsyncCompactor
from clew.compaction.engine import Compactor
from clew.compaction.outcome import Outcome
from clew.config.values import Config
from clew.context.budget import Budget
from clew.context.build import Context
from clew.domain.messages import Draft
from clew.host.api import Report
from clew.host.events import Emit
from clew.providers.api import Model, Price
from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.profile import AsyncProfile

MODELS = (
    Model(name="large", provider="local", window=100_000, price=Price(input=1, output=2)),
    Model(name="small", provider="local", window=16_000),
    Model(name="archivist", provider="archivist", window=100_000),
)
SMALL = Budget(window=16_000)
TOOLS: tuple[dict[str, Any], ...] = (
    {"name": "recall", "origin": "built-in", "policy": "allow", "available": True},
    {"name": "git_push", "origin": "git", "policy": "ask", "available": False},
)


class FakeHost:
    """Answers each message at once, with "answer to ..."."""

    def __init__(self) -> None:
        self.model = MODELS[0]
        self.asked: list[str] = []
        """What was asked of it, in words."""
        self.running = False

    async def say(
        self, conv: AsyncConversation, drafts: Sequence[Draft], *, emit: Emit | None = None,
        queue: bool = False,
    ) -> Report:  # fmt: skip
        self.asked.append("queue" if queue else "say")
        done = await conv.append(drafts)
        if done.queued:
            return Report(turn=None, state="queued")
        return await self._answer(conv)

    async def go_on(self, conv: AsyncConversation, *, emit: Emit | None = None) -> Report | None:
        self.asked.append("go_on")
        return await self._answer(conv)

    async def _answer(self, conv: AsyncConversation) -> Report:
        last = (await conv.log(limit=1, order="newest")).items[0]
        text = f"answer to {last.text}"
        done = await conv.append([clew.assistant(text)])
        return Report(turn=1, state="done", text=text, seqs=done.seqs)

    async def stop(self, conv: AsyncConversation) -> bool:
        self.asked.append("stop")
        return self.running

    async def answer(
        self, conv: AsyncConversation, call_id: str, allow: bool, *, always: bool = False,
        by: str | None = None,
    ) -> bool:  # fmt: skip
        self.asked.append(f"answer {call_id} {allow} {always}")
        return True

    async def compact(self, conv: AsyncConversation, *, emit: Emit | None = None) -> Outcome:
        return await AsyncCompactor(Compactor(SMALL)).compact(conv)

    async def context(self, conv: AsyncConversation) -> Context:
        return await AsyncCompactor(Compactor(SMALL)).peek(conv)

    async def model_of(self, conv: AsyncConversation) -> Model:
        return self.model

    async def use_model(self, conv: AsyncConversation, name: str) -> Model:
        found = [model for model in MODELS if model.shown == name]
        if not found:
            raise clew.InputError(f"there is no model {name!r}")
        self.model = found[0]
        return self.model

    async def models(self) -> tuple[Model, ...]:
        return MODELS

    async def tools(self, conv: AsyncConversation) -> tuple[dict[str, Any], ...]:
        return TOOLS

    async def reload_tools(self, conv: AsyncConversation) -> tuple[str, ...]:
        self.asked.append("reload")
        return ("recall", "git_push")

    async def recover(self, *, emit: Emit | None = None) -> int:
        return 0

    async def close(self) -> None: ...


class FakeChat:
    """What a command sees; `said` is what the person read since it was last asked."""

    def __init__(self, profile: AsyncProfile, conv: AsyncConversation) -> None:
        self.profile, self.conv = profile, conv
        self.host = FakeHost()
        self.settings, self.config, self.place = Settings(), Config(model="local/large"), "here"
        self.lines: list[str] = []
        self.typed: str | None = None
        """What the person makes of a text that is to be changed."""
        self.agrees = True
        self.left = False
        self.offered: list[str] = []

    async def open(self, conv: AsyncConversation, *, recap: bool = True) -> None:
        self.conv = conv

    async def say(self, drafts: Sequence[Draft]) -> None:
        await self.host.say(self.conv, drafts)

    async def go_on(self) -> None:
        await self.host.go_on(self.conv)

    def write(self, *pieces: Piece | str) -> None:
        self.lines.append("".join(p if isinstance(p, str) else p[0] for p in pieces))

    def table(self, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        for row in rows:
            assert len(row) == len(titles)
            self.lines.append("  ".join(row))

    def markdown(self, text: str) -> None:
        self.lines.append(text)

    async def page(self, text: str) -> None:
        self.lines.append(text)

    async def confirm(self, question: str) -> bool:
        return self.agrees

    async def edit(self, text: str) -> str | None:
        self.offered.append(text)
        return self.typed

    def quit(self) -> None:
        self.left = True

    # ------------------------------------------------------------------ for tests

    async def run(self, line: str) -> str:
        """Run a line such as "/title x"; gives what the person read."""
        self.lines.clear()
        name, _, given = line.partition(" ")
        command = registry.find(name)
        assert command is not None, registry.unknown(name)
        await command.run(self, given.strip())
        return "\n".join(self.lines)

    async def texts(self) -> list[str]:
        """What is shown of the conversation."""
        return [message.text async for message in self.conv.messages()]


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[FakeChat]:
    """A chat in a new conversation; every invariant holds at the end."""
    async with clew.aio.open(path / "chat.db") as store:
        profile = store.profile("default")
        yield FakeChat(profile, await profile.create(source="chat"))
        assert await store.verify() == []


def in_chat(path: Path, test: Callable[[FakeChat], Coroutine[Any, Any, None]]) -> None:
    """Run a test in a chat."""

    async def main() -> None:
        async with opened(path) as chat:
            await test(chat)

    asyncio.run(asyncio.wait_for(main(), 60))
