"""Titles by the model: after the first exchange, beside the conversation, below a person's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import clew
import clew.aio
from clew.domain.turns import Usage
from clew.host.titles import LONGEST, clean, first_exchange, give_title
from clew.providers.api import Body, Model, Price, Reply, Request
from clew.providers.errors import RateLimited
from clew.store.aio.conversation import AsyncConversation
from clew.testing.provider import Hold, ScriptedProvider

MODEL = Model(name="m", provider="scripted", window=8_000, price=Price(input=1.0, output=2.0))


@asynccontextmanager
async def talk(folder: Path, *texts: str) -> AsyncGenerator[AsyncConversation]:
    """A conversation of a person and a model by turns."""
    roles = clew.user, clew.assistant
    async with clew.aio.open(folder / "store.db") as store:
        conv = await store.profile("me").create()
        if texts:
            await conv.append([roles[at % 2](text) for at, text in enumerate(texts)])
        yield conv


def test_a_title_is_given_after_the_first_exchange(fast_dir: Path) -> None:
    """S34.1: above the derived one; the call is noted with its usage and cost."""

    async def test() -> None:
        reply = Reply(
            parts=(clew.Text('"Sourdough starters"'),), stop="stop", usage=Usage(input=90, output=5)
        )
        provider = ScriptedProvider(reply)
        async with talk(fast_dir, "How do I begin a sourdough?", "With flour.") as conv:
            assert (await conv.info()).title_origin == "derived"
            assert await give_title(provider, MODEL, conv) == "Sourdough starters"
            info = await conv.info()
            assert (info.title, info.title_origin) == ("Sourdough starters", "llm")
            (call,) = await conv.calls()
        assert (call.purpose, call.state, call.turn) == ("title", "done", None)
        assert (call.model, call.usage) == ("m", Usage(input=90, output=5))
        assert call.cost == pytest.approx(100 / 1e6)
        (body,) = provider.requests
        system, asked = body.payload["messages"]
        assert system["role"] == "system"
        assert "How do I begin" in asked["content"]
        assert "With flour." in asked["content"]
        assert "tools" not in body.payload

    asyncio.run(test())


def test_it_is_asked_for_once(fast_dir: Path) -> None:
    async def test() -> None:
        provider = ScriptedProvider("First", "Second")
        async with talk(fast_dir, "a", "b") as conv:
            assert await give_title(provider, MODEL, conv) == "First"
            assert await give_title(provider, MODEL, conv) is None
        assert len(provider.requests) == 1

    asyncio.run(test())


def test_s34_1_a_person_s_title_stays(fast_dir: Path) -> None:
    """Given before, or while the model thinks."""

    async def test() -> None:
        hold = Hold("Theirs")
        provider = ScriptedProvider(hold)
        async with talk(fast_dir, "a", "b") as conv:
            work = asyncio.create_task(give_title(provider, MODEL, conv))
            await hold.reached.come()
            await conv.set_title("Mine")
            hold.let_go()
            assert await work is None
            assert (await conv.info()).title == "Mine"
            assert await give_title(provider, MODEL, conv) is None
        assert len(provider.requests) == 1

    asyncio.run(test())


def test_s34_3_a_locked_title_is_not_asked_for(fast_dir: Path) -> None:
    async def test() -> None:
        provider = ScriptedProvider("Theirs")
        async with talk(fast_dir, "a", "b") as conv:
            await conv.lock_title("Home")
            await conv.set_title(None, "llm")
            assert await give_title(provider, MODEL, conv) is None
            assert (await conv.info()).title == "Home"
            assert await conv.calls() == ()
        assert provider.requests == []

    asyncio.run(test())


def test_there_is_none_before_the_first_answer(fast_dir: Path) -> None:
    async def test() -> None:
        provider = ScriptedProvider("T")
        async with talk(fast_dir, "hello") as conv:
            assert await give_title(provider, MODEL, conv) is None
            call = clew.Draft(
                role=clew.Role.ASSISTANT,
                parts=(clew.Text("I look."), clew.ToolCall("1", "look")),
            )
            await conv.append([call])
            assert await give_title(provider, MODEL, conv) is None
        assert provider.requests == []

    asyncio.run(test())


def test_the_archivist_gives_no_titles(fast_dir: Path) -> None:
    class Archivist(ScriptedProvider):
        def render(self, request: Request) -> Body:
            return Body({"messages": []}, request=request)

    async def test() -> None:
        provider = Archivist("T")
        async with talk(fast_dir, "a", "b") as conv:
            assert await give_title(provider, MODEL, conv) is None
            assert await conv.calls() == ()
        assert provider.requests == []

    asyncio.run(test())


def test_a_failure_is_silent_and_noted(fast_dir: Path) -> None:
    async def test() -> None:
        provider = ScriptedProvider(RateLimited("too many requests", provider="scripted"))
        async with talk(fast_dir, "a", "b") as conv:
            assert await give_title(provider, MODEL, conv) is None
            (call,) = await conv.calls()
            assert (call.state, call.error) == ("failed", "too many requests")
            assert (await conv.info()).title_origin == "derived"

    asyncio.run(test())


def test_a_stopped_call_is_noted(fast_dir: Path) -> None:
    async def test() -> None:
        hold = Hold("T")
        provider = ScriptedProvider(hold)
        async with talk(fast_dir, "a", "b") as conv:
            work = asyncio.create_task(give_title(provider, MODEL, conv))
            await hold.reached.come()
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work
            (call,) = await conv.calls()
            assert call.state == "failed"

    asyncio.run(test())


@pytest.mark.parametrize("stop", ["refusal", "content_filter", "length"])
def test_an_answer_that_is_none_gives_no_title(fast_dir: Path, stop: str) -> None:
    async def test() -> None:
        reply = Reply(parts=(clew.Text("I cannot"),), stop=stop)  # pyright: ignore[reportArgumentType]
        async with talk(fast_dir, "a", "b") as conv:
            assert await give_title(ScriptedProvider(reply), MODEL, conv) is None
            (call,) = await conv.calls()
            assert call.state == "done"

    asyncio.run(test())


def test_what_the_model_is_shown_is_bounded(fast_dir: Path) -> None:
    async def test() -> None:
        provider = ScriptedProvider("T")
        async with talk(fast_dir, "a" * 100_000, "b" * 100_000) as conv:
            assert await give_title(provider, MODEL, conv) == "T"
        assert len(provider.requests[0].payload["messages"][1]["content"]) < 5_000

    asyncio.run(test())


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Plans for Lisbon", "Plans for Lisbon"),
        ('  "Plans for Lisbon."\n', "Plans for Lisbon"),
        ("**Title:** Plans for Lisbon", "Plans for Lisbon"),
        ("# Plans\nfor Lisbon", "Plans"),
        ("Title: „Pläne für Lissabon“", "Pläne für Lissabon"),
        ("\n\n---\nPlans", "Plans"),
        ("a\x1b[31mb\x07\u202ec\td", "a[31mbc d"),
        ("里斯本计划", "里斯本计划"),
        ("A family 👨\u200d👩\u200d👧 trip", "A family 👨\u200d👩\u200d👧 trip"),
        ("How to use C#", "How to use C#"),
        ("", None),
        ("...", None),
        ("I am sorry, but " + "I cannot do that " * 20, None),
    ],
)
def test_an_answer_is_cleaned(answer: str, title: str | None) -> None:
    assert clean(answer) == title


@given(st.text())
def test_a_title_is_one_short_line_that_can_be_seen(answer: str) -> None:
    title = clean(answer)
    if title is not None:
        assert 0 < len(title) <= LONGEST
        assert not any(ord(letter) < 32 or letter in "\x7f\u202e\n" for letter in title)
        assert clean(title) is not None


def test_the_first_exchange_leaves_steps_out(fast_dir: Path) -> None:
    async def test() -> None:
        async with talk(fast_dir, "one", "two", "three", "four") as conv:
            messages = (await conv.log()).items
        assert first_exchange(messages) == "Person:\none\n\nAnswer:\ntwo"
        assert first_exchange(messages[1:]) == "Person:\nthree\n\nAnswer:\nfour"
        assert first_exchange(messages[:1]) is None

    asyncio.run(test())
