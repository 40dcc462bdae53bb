"""Conversations that other tools began go on here: each sample is imported and continued.

What they end with (calls without a result, thinking of models that are not asked, system messages,
a compaction), and what is said about them (ended, archived, read-only, tools that are not here),
must not keep a person from going on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import clew
import clew.aio
from clew.cli.chat.commands.reaching import find, ready
from clew.config.values import ChatConfig, Config
from clew.context.tokens import count_text
from clew.domain.conversations import ConversationSummary, ListFilter
from clew.host.host import Host
from clew.providers.api import Model, Reply
from clew.providers.registry import Providers
from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.profile import AsyncProfile
from clew.testing.provider import Answer, ScriptedProvider
from clew.tools.toolbox import Toolbox
from imports import SAMPLES, import_into, samples
from renderings import check_chat

TOOLS = ("claude-code", "codex", "hermes")
MOST = 8
"""Conversations of one file that are gone on with."""
BUILT_IN = {"recall", "search", "todo", "goal"}


def imported(path: Path, sample: str) -> None:
    """A store with one sample in it."""
    with clew.open(path) as store:
        report = import_into(store.profile("p"), SAMPLES / sample)
        assert report.totals.conversations > 0


@asynccontextmanager
async def hosted(
    path: Path, *answers: Answer, window: int = 128_000
) -> AsyncGenerator[tuple[AsyncProfile, Host, ScriptedProvider], None]:
    """A host of the store; every invariant holds at the end."""
    async with clew.aio.open(path) as store:
        model = Model(name="scripted", provider="scripted", window=window)
        provider = ScriptedProvider(*answers, model=model)
        config = Config(chat=ChatConfig(titles=False))
        providers = Providers(config, lambda name, section: None)
        providers.add(provider)
        profile = store.profile("p")
        async with Host(profile, providers, Toolbox(config.tools), config) as host:
            yield profile, host, provider
        assert await store.verify() == []


async def listed(profile: AsyncProfile) -> list[ConversationSummary]:
    """The newest, archived ones too."""
    pages = [await profile.list(ListFilter(archived=each), limit=MOST) for each in (False, True)]
    return [info for page in pages for info in page.items][:MOST]


async def go_on(host: Host, conv: AsyncConversation) -> None:
    """Say something, and have it answered at the end of the log."""
    before = await conv.info()
    report = await host.say(conv, [clew.user("Please go on.")])
    assert report.state == "done", report
    newest = (await conv.log(limit=2, order="newest")).items
    assert [m.text for m in newest] == ["Understood.", "Please go on."]
    after = await conv.info()
    assert (after.head, after.turn, after.waiting) == (before.head + 2, None, 0)


def said(content: Any) -> str:
    """The text of a message as it is sent."""
    if isinstance(content, str):
        return content
    return "".join(str(piece.get("text", "")) for piece in content or ())


@pytest.mark.parametrize("window", [128_000, 16_000])
@pytest.mark.parametrize("sample", [s for s in samples() if s.split("/")[0] in TOOLS])
def test_it_goes_on(sample: str, window: int, tmp_path: Path) -> None:
    """Each request is one that a strict provider takes, within its window; twice, since the second
    goes on from what the first has left."""
    imported(tmp_path / "s.db", sample)

    async def main() -> None:
        async with hosted(tmp_path / "s.db", window=window) as (profile, host, provider):
            for info in await listed(profile):
                conv, _ = await ready(await profile.open(info.id))
                for _ in range(2):
                    await go_on(host, conv)
            for request in provider.requests:
                messages = request.payload["messages"]
                check_chat(messages)
                assert said(messages[-1]["content"]).endswith("Please go on.")
                assert messages[0]["role"] == "system"
                assert count_text(str(messages)) < 2 * window

    asyncio.run(asyncio.wait_for(main(), 120))


@pytest.mark.parametrize("sample", [s for s in samples() if s.split("/")[0] not in TOOLS])
def test_so_do_those_of_all_other_tools(sample: str, tmp_path: Path) -> None:
    imported(tmp_path / "s.db", sample)

    async def main() -> None:
        async with hosted(tmp_path / "s.db") as (profile, host, provider):
            for info in (await listed(profile))[:3]:
                conv, _ = await ready(await profile.open(info.id))
                await go_on(host, conv)
            for request in provider.requests:
                check_chat(request.payload["messages"])

    asyncio.run(asyncio.wait_for(main(), 120))


def test_by_the_id_of_the_other_tool(tmp_path: Path) -> None:
    """As a person knows it there: `clew chat --resume` and /resume take it."""
    imported(tmp_path / "s.db", "codex/redacted-real-rollout.jsonl")

    async def main() -> None:
        async with hosted(tmp_path / "s.db") as (profile, host, _):
            (info,) = await listed(profile)
            (alias, *_) = await (await profile.open(info.id)).aliases()
            found = await find(profile, alias.foreign_id[:13])
            assert found.conv is not None
            assert found.conv.id == info.id
            await go_on(host, found.conv)

    asyncio.run(asyncio.wait_for(main(), 60))


def open_call(path: Path, *flags: str) -> str:
    """A conversation as an import leaves it: it ended in the middle of a call of a tool that is
    not here, after thinking of a model that nobody asks here."""
    with clew.open(path) as store:
        conv = store.profile("p").create(
            source="claude-code", model="claude-opus-4-1", prompt="You are in another program.",
            archived="archived" in flags,
            toolset=({"name": "Bash", "input_schema": {"type": "object"}},),
        )  # fmt: skip
        thinking = clew.Reasoning("First look.", model="claude-opus-4-1", signature="c2ln")
        conv.append([
            clew.user("Fix the test."),
            clew.Draft(role=clew.Role.ASSISTANT, parts=(thinking, clew.ToolCall("c1", "Bash"))),
        ])  # fmt: skip
        conv.mark(read_only="read_only" in flags)
        if "ended" in flags:
            conv.end("imported")
        return conv.id


@pytest.mark.parametrize(
    "flags", [(), ("ended",), ("archived",), ("read_only",), ("ended", "archived")]
)
def test_what_is_open_and_what_is_said_about_it(flags: tuple[str, ...], tmp_path: Path) -> None:
    id = open_call(tmp_path / "s.db", *flags)

    async def main() -> None:
        async with hosted(tmp_path / "s.db") as (profile, host, provider):
            conv, notes = await ready(await profile.open(id))
            assert len(notes) == len(flags)
            assert (conv.id == id) == ("read_only" not in flags)
            await go_on(host, conv)
            (request,) = provider.requests
            messages = request.payload["messages"]
            check_chat(messages)
            roles = [m["role"] for m in messages]
            assert roles[:4] == ["system", "user", "assistant", "tool"]
            assert roles[-1] == "user"
            assert "First look" not in str(messages)
            assert "another program" in messages[0]["content"]
            assert (await (await profile.open(id)).log()).items[1].parts[1].id == "c1"

    asyncio.run(asyncio.wait_for(main(), 60))


def test_tools_that_are_not_here_answer_with_an_error(tmp_path: Path) -> None:
    """The set of the other tool stays, so that its calls can be read; a call of it is answered.
    What clew has comes with /tools reload."""
    id = open_call(tmp_path / "s.db")
    call = Reply(parts=(clew.ToolCall("c2", "Bash", '{"command": "ls"}'),), stop="tool_calls")

    async def main() -> None:
        async with hosted(tmp_path / "s.db", call, "Understood.") as (profile, host, provider):
            conv = await profile.open(id)
            report = await host.say(conv, [clew.user("Please go on.")])
            assert (report.state, report.text) == ("done", "Understood.")
            result = (await conv.message(report.seqs[2])).parts[0]
            assert isinstance(result, clew.ToolResult)
            assert result.is_error
            assert "Bash" in str(result.content)
            names = {tool["function"]["name"] for tool in provider.requests[0].payload["tools"]}
            assert names == {"Bash"}
            assert set(await host.reload_tools(conv)) >= BUILT_IN

    asyncio.run(asyncio.wait_for(main(), 60))
