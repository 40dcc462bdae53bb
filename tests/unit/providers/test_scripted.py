"""The scripted provider of clew.testing."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from typing import Any

import pytest

from clew.domain.parts import Reasoning, Text, ToolCall
from clew.domain.turns import Usage
from clew.providers.api import CallDelta, Model, ReasoningDelta, Reply, TextDelta
from clew.providers.errors import RateLimited, ServerFailed
from clew.testing import Hold, ScriptedProvider, Signal
from provider_server.asking import SEARCH, asked, streamed, user

WAIT = 20.0


def say(provider: ScriptedProvider, *texts: str) -> list[Any]:
    async def run() -> list[Any]:
        async with asyncio.timeout(WAIT):
            return [await streamed(provider, provider.render(asked(user(text)))) for text in texts]

    return asyncio.run(run())


def test_answers_in_turn_the_last_for_ever() -> None:
    provider = ScriptedProvider("One two.", Reply(parts=(Text("Three."),), stop="length"))
    (events, first), (_, second), (_, third) = say(provider, "a", "b", "c")
    assert events == [TextDelta("One "), TextDelta("two.")]
    assert (first.parts, first.stop) == ((Text("One two."),), "stop")
    assert first.usage == Usage(input=9, output=2)
    assert second.parts == third.parts == (Text("Three."),)
    said = [body.payload["messages"][-1]["content"] for body in provider.requests]
    assert said == ["a", "b", "c"]


def test_thinking_and_calls_are_streamed_too() -> None:
    parts = (Reasoning("Hm."), Text("I look."), ToolCall("a", "search", '{"q": 1}'))
    [(events, reply)] = say(ScriptedProvider(Reply(parts=parts, stop="tool_calls")), "x")
    assert events == [
        ReasoningDelta("Hm."), TextDelta("I "), TextDelta("look."), CallDelta(0, "a", "search"),
        CallDelta(0, arguments='{"q": 1}'),
    ]  # fmt: skip
    assert reply.parts == parts


def test_events_as_they_are_and_their_reply() -> None:
    listed = [
        TextDelta("a"),
        TextDelta("b"),
        CallDelta(0, "i", "t", "{"),
        CallDelta(0, arguments="}"),
    ]
    [(events, reply)] = say(ScriptedProvider(listed), "x")
    assert events == listed
    assert reply.parts == (Text("ab"), ToolCall("i", "t", "{}"))
    assert reply.stop == "tool_calls"


def test_errors_at_once_and_in_the_middle() -> None:
    slow = RateLimited("slow", provider="scripted", retry_after=1.0)
    with pytest.raises(RateLimited):
        say(ScriptedProvider(slow, "x"), "x")

    provider = ScriptedProvider([TextDelta("So"), ServerFailed("cut", provider="scripted")])
    seen: list[Any] = []

    async def listen() -> None:
        async for event in provider.stream(provider.render(asked())):
            seen.append(event)

    with pytest.raises(ServerFailed):
        asyncio.run(listen())
    assert (seen, provider.open) == ([TextDelta("So")], 0)


def test_a_script_may_look_at_the_request() -> None:
    provider = ScriptedProvider(lambda body: body.payload["messages"][-1]["content"].upper())
    assert say(provider, "loud")[0][1].parts == (Text("LOUD"),)


def test_a_held_answer_goes_on_when_it_is_let_go() -> None:
    """From another thread, as a test of a program in a process of its own thread does."""
    hold = Hold("Once ", "upon ", then="a time.")

    def let_go() -> None:
        assert hold.reached.wait(WAIT)
        hold.let_go()

    thread = threading.Thread(target=let_go)
    thread.start()
    [(events, reply)] = say(ScriptedProvider(hold), "x")
    thread.join(WAIT)
    assert "".join(event.text for event in events) == "Once upon a time."
    assert reply.parts == (Text("Once upon a time."),)
    assert hold.ended.is_set()


def test_a_held_answer_that_is_closed_ends_at_once() -> None:
    async def run() -> list[str]:
        hold, seen = Hold("Once ", "upon"), list[str]()
        provider = ScriptedProvider(hold)

        async def listen() -> None:
            stream: Any = provider.stream(provider.render(asked()))
            async with aclosing(stream):
                async for event in stream:
                    seen.append(event.text)

        task = asyncio.create_task(listen())
        await hold.reached.come(WAIT)
        assert provider.open == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await hold.ended.come(WAIT)
        assert provider.open == 0
        return seen

    assert asyncio.run(run()) == ["Once ", "upon"]


def test_a_held_answer_may_end_in_an_error() -> None:
    hold = Hold("So", then=ServerFailed("cut", provider="scripted"))
    hold.let_go()
    with pytest.raises(ServerFailed):
        say(ScriptedProvider(hold), "x")


def test_what_is_rendered_is_a_chat_payload_and_equal_for_equals() -> None:
    provider = ScriptedProvider(model=Model(name="m", provider="mine", window=16_000), name="mine")
    request = asked(user("Hi"), tools=(SEARCH,), model="m", settings={"temperature": 0})
    body = provider.render(request)
    assert body == provider.render(request)
    assert list(body.payload) == ["model", "messages", "tools", "temperature"]
    assert body.payload["messages"][0] == {"role": "system", "content": "Be brief."}
    assert body.payload["tools"][0]["function"]["name"] == "search"


def test_what_it_is() -> None:
    async def run() -> None:
        provider = ScriptedProvider()
        assert await provider.models() == ("scripted",)
        assert await provider.describe("scripted") == provider.model
        assert await provider.describe("other") is None
        body = provider.render(asked())
        assert await provider.count(body) == 9
        assert (await provider.complete(body)).parts == (Text("Understood."),)
        await provider.close()
        assert provider.closed

    asyncio.run(run())


def test_a_signal_that_never_comes_is_not_waited_for_for_ever() -> None:
    signal = Signal()
    assert not signal.wait(0)
    with pytest.raises(TimeoutError):
        asyncio.run(signal.come(0))
    signal.set()
    asyncio.run(signal.come(0))
    assert signal.wait(0)
