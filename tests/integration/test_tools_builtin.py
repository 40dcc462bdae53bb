"""recall, search, todo and goal, called as a model calls them, on a real store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import clew
import clew.aio
from clew.config.values import ToolsConfig
from clew.domain.notes import Todo
from clew.domain.parts import ToolCall
from clew.store.aio.conversation import AsyncConversation
from clew.tools.api import ToolCallContext
from clew.tools.toolbox import Toolbox

Call = Callable[[str, str], Awaitable[tuple[str, bool]]]
Test = Callable[[Call, AsyncConversation], Awaitable[None]]


def run(fast_dir: Path, test: Test) -> None:
    async def body() -> None:
        store = await clew.aio.open(fast_dir / "tools.db")
        profile = store.profile("default")
        conv = await profile.create()
        await conv.append([clew.user("Which port?"), clew.assistant("We take port 8443.")])
        box = Toolbox(ToolsConfig())

        async def call(name: str, arguments: str) -> tuple[str, bool]:
            where = ToolCallContext(conv, profile, asyncio.Event())
            result = await box.call(ToolCall("call-1", name, arguments), where)
            return str(result.content), result.is_error

        await test(call, conv)
        await box.close()
        assert await store.verify() == []
        await store.close()

    asyncio.run(asyncio.wait_for(body(), 60))


def test_messages_are_read_back_and_found(fast_dir: Path) -> None:
    async def body(call: Call, conv: AsyncConversation) -> None:
        text, wrong = await call("recall", '{"ref": "2"}')
        assert "We take port 8443." in text
        assert not wrong
        text, wrong = await call("search", '{"query": "which port"}')
        assert "[@2]" in text
        assert not wrong
        text, wrong = await call("recall", "{}")
        assert text.startswith("Error: ref is missing")
        assert wrong

    run(fast_dir, body)


def test_many_searches_at_once_all_end(fast_dir: Path) -> None:
    """More than there are threads, in a conversation that is long enough to ask the index."""

    async def body(call: Call, conv: AsyncConversation) -> None:
        for _ in range(3):
            await conv.append([clew.user(f"message {n}") for n in range(900)])
        found = await asyncio.gather(*(call("search", '{"query": "port 8443"}') for _ in range(40)))
        assert all("[@2]" in text and not wrong for text, wrong in found)

    run(fast_dir, body)


def test_todos_are_set_as_a_whole_and_twice_is_once(fast_dir: Path) -> None:
    """A call that is repeated after a crash changes nothing."""

    async def body(call: Call, conv: AsyncConversation) -> None:
        items = '{"items": [{"text": "read", "state": "done"}, {"text": " write "}, "send"]}'
        for _ in range(2):
            text, wrong = await call("todo", items)
            assert (text, wrong) == ("The list has 3 items: 2 pending, 1 done.", False)
            assert await conv.todos() == (Todo("read", "done"), Todo("write"), Todo("send"))
        assert await call("todo", '{"items": []}') == ("The list is empty.", False)
        assert await conv.todos() == ()

    run(fast_dir, body)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("{}", "items is no list"),
        ('{"items": [{"text": ""}]}', "items.0 has no text"),
        ('{"items": [{"text": "a"}, {"text": "b", "state": "late"}]}', "items.1.state is 'late'"),
        ('{"items": [' + ", ".join(['"x"'] * 101) + "]}", "the limit is 100"),
        ('{"items": ["' + "x" * 2000 + '"]}', "the limit is 1,000"),
    ],
)
def test_a_wrong_list_is_told_and_changes_nothing(
    arguments: str, told: str, fast_dir: Path
) -> None:
    async def body(call: Call, conv: AsyncConversation) -> None:
        await call("todo", '{"items": ["stays"]}')
        text, wrong = await call("todo", arguments)
        assert told in text
        assert wrong
        assert await conv.todos() == (Todo("stays"),)

    run(fast_dir, body)


def test_a_goal_is_set_done_and_cleared(fast_dir: Path) -> None:
    async def body(call: Call, conv: AsyncConversation) -> None:
        for _ in range(2):
            text, wrong = await call("goal", '{"action": "set", "text": "ship it"}')
            assert (text, wrong) == ("The goal is set: ship it", False)
        goal = await conv.goal()
        assert goal is not None
        assert (goal.number, goal.text) == (1, "ship it")
        assert (await call("goal", '{"action": "done"}'))[0] == "The goal is done."
        assert (await call("goal", '{"action": "done"}')) == (
            "There is no goal now; none was active.", False,
        )  # fmt: skip
        assert await conv.goal() is None
        text, wrong = await call("goal", '{"action": "set"}')
        assert (text.startswith("Error: text is missing"), wrong) == (True, True)
        text, wrong = await call("goal", '{"action": "win"}')
        assert "give one of set, done, clear" in text

    run(fast_dir, body)
