"""The commands of `clew chat` that have a turn run, with a real host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.config.values import ChatConfig, Config
from clew.host.host import Host
from clew.providers.api import Model, Reply, ToolSpec
from clew.providers.registry import Providers
from clew.testing.provider import Answer, Hold, ScriptedProvider
from clew.tools.api import Tool, ToolCallContext, ToolOutput, Verdict
from clew.tools.toolbox import Toolbox

from .fake_chat import FakeChat, opened


class Push:
    """A tool that a person must allow; it is its own source."""

    spec = ToolSpec("git_push", "Push.", {"type": "object", "properties": {}})
    read_only = False
    default: Verdict = "ask"
    origin = name = "git"

    def __init__(self) -> None:
        self.calls = 0

    async def tools(self) -> Sequence[Tool]:
        return [self]

    async def call(self, arguments: Mapping[str, Any], where: ToolCallContext) -> ToolOutput:
        self.calls += 1
        return ToolOutput("pushed")

    async def close(self) -> None: ...


def push(id: str) -> Reply:
    return Reply(parts=(clew.ToolCall(id, "git_push", "{}"),), stop="tool_calls")


Test = Callable[[FakeChat, ScriptedProvider, Push], Coroutine[Any, Any, None]]


def hosted(path: Path, test: Test, *answers: Answer) -> None:
    """Run a test in a chat with a host of its own."""

    async def main() -> None:
        async with opened(path) as chat:
            config, tool = Config(chat=ChatConfig(titles=False)), Push()
            model = Model(name="scripted", provider="scripted", window=16_000)
            provider = ScriptedProvider(*answers, model=model)
            providers = Providers(config, lambda name, section: None)
            providers.add(provider)
            toolbox = Toolbox(config.tools, sources=[tool])
            async with Host(chat.profile, providers, toolbox, config) as host:
                chat.host = host
                await test(chat, provider, tool)

    asyncio.run(asyncio.wait_for(main(), 60))


def roles(provider: ScriptedProvider) -> list[str]:
    """Of the last request, behind the system prompt."""
    return [m["role"] for m in provider.requests[-1].payload["messages"][1:]]


def test_retry_and_edit_ask_for_the_same_place_again(tmp_path: Path) -> None:
    async def test(chat: FakeChat, provider: ScriptedProvider, tool: Push) -> None:
        await chat.say([clew.user("one")])
        await chat.run("/retry")
        assert await chat.texts() == ["one", "Second."]
        assert roles(provider) == ["user"]
        await chat.run("/edit uno")
        assert await chat.texts() == ["uno", "Third."]
        await chat.run("/undo")
        await chat.run("/undo")
        assert await chat.texts() == []
        await chat.say([clew.user("two")])
        assert roles(provider) == ["user"]

    hosted(tmp_path, test, "First.", "Second.", "Third.")


@pytest.mark.parametrize(("word", "calls"), [("allow", 1), ("deny", 0)])
def test_a_call_that_waits_is_answered_and_gone_on_with(
    word: str, calls: int, tmp_path: Path
) -> None:
    async def test(chat: FakeChat, provider: ScriptedProvider, tool: Push) -> None:
        await chat.say([clew.user("push it")])
        assert "turn 1 is open" in await chat.run("/status")
        assert "git_push  git  asked about" in await chat.run("/tools")
        await chat.run(f"/tools {word} git_push")
        assert tool.calls == calls
        assert (await chat.texts())[-1] == "Done."
        assert (await chat.conv.info()).turn is None

    hosted(tmp_path, test, push("c1"), "Done.")


def test_what_was_allowed_is_allowed_from_then_on(tmp_path: Path) -> None:
    async def test(chat: FakeChat, provider: ScriptedProvider, tool: Push) -> None:
        await chat.say([clew.user("push it")])
        await chat.run("/tools allow git_push")
        await chat.say([clew.user("and again")])
        assert tool.calls == 2
        assert "git_push  git  allowed" in await chat.run("/tools")

    hosted(tmp_path, test, push("c1"), "Done.", push("c2"), "Done.")


def test_undo_while_a_turn_waits_for_a_person(tmp_path: Path) -> None:
    """The turn is ended, its call is hidden with it, and what comes next is a valid request."""

    async def test(chat: FakeChat, provider: ScriptedProvider, tool: Push) -> None:
        await chat.say([clew.user("push it")])
        assert "Turn 1 was open; it is ended." in await chat.run("/undo")
        assert await chat.texts() == []
        assert "no call of git_push waits" in (await chat.run("/tools allow git_push")).lower()
        await chat.say([clew.user("never mind")])
        assert roles(provider) == ["user"]
        assert tool.calls == 0

    hosted(tmp_path, test, push("c1"), "Fine.")


def test_stop_and_queue_while_a_turn_runs(tmp_path: Path) -> None:
    hold = Hold("I think ", "that")

    async def test(chat: FakeChat, provider: ScriptedProvider, tool: Push) -> None:
        turn = asyncio.create_task(chat.say([clew.user("long one")]))
        await hold.reached.come()
        assert "For the next turn: later" in await chat.run("/queue later")
        assert "waits    later" in await chat.run("/status")
        assert "tokens" in await chat.run("/context")
        assert await chat.run("/stop") == "Stopped."
        await turn
        for _ in range(2):  # what waited is answered next, by whoever is there
            await chat.host.go_on(chat.conv)
        assert await chat.texts() == ["long one", "I think that", "later", "Then."]
        assert "Took out 2 messages" in await chat.run("/undo")
        assert "Took out 2 messages" in await chat.run("/undo")

    hosted(tmp_path, test, hold, "Then.")


def test_compact_and_context(tmp_path: Path) -> None:
    async def test(chat: FakeChat, provider: ScriptedProvider, tool: Push) -> None:
        for i in range(12):
            await chat.say([clew.user(f"question {i}: {'pears and plums ' * 60}")])
        assert "Compacted" in await chat.run("/compact")
        assert "stands for" in await chat.run("/context")
        assert "Undid compaction 1" in await chat.run("/compact undo")
        assert "Nothing is compacted" in await chat.run("/context")

    hosted(tmp_path, test, "yes " * 200)
