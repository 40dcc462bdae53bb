"""The Responses API against the scripted server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest

from clew.config.values import ProviderConfig
from clew.domain.parts import Image, Reasoning, Text, ToolCall
from clew.domain.turns import Usage
from clew.providers.api import CallDelta, ReasoningDelta, Reply, TextDelta
from clew.providers.errors import (
    NotConfigured,
    Overflow,
    ProviderError,
    RateLimited,
    ServerFailed,
    TimedOut,
    Unreachable,
)
from clew.providers.openai_events import Events
from clew.providers.openai_responses import OpenAIResponses
from provider_server import FAIL, HANG, Failure, ProviderServer, call, refuse, say, use
from provider_server.answers import Call
from provider_server.asking import SEARCH, asked, assistant, result, step, streamed, user

WAIT = 20.0


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server
        server.check()


def provider(server: ProviderServer, **more: Any) -> OpenAIResponses:
    return OpenAIResponses("test", ProviderConfig(base_url=server.base_url, **more), "sk-x")


def ask(made: OpenAIResponses, request: Any = None, plain: bool = False) -> Any:
    async def run() -> Any:
        try:
            body = made.render(request or asked())
            return await (made.complete(body) if plain else streamed(made, body))
        finally:
            await made.close()

    return asyncio.run(run())


def test_what_is_sent(server: ProviderServer) -> None:
    """Nothing is stored, the prompt is `instructions`, thinking comes back encrypted."""
    server.script = [say("ok")]
    settings = {"reasoning_effort": "low", "verbosity": "high", "temperature": 1, "max_tokens": 9}
    ask(provider(server), asked(user("Hi"), tools=(SEARCH,), affinity="s", settings=settings))
    assert server.requests[0].path == "/v1/responses"
    assert server.requests[0].json == {
        "model": "test-model", "instructions": "Be brief.",
        "input": [{"type": "message", "role": "user",
                   "content": [{"type": "input_text", "text": "Hi"}]}],
        "tools": [{"type": "function", "name": "search", "description": "Finds notes.",
                   "parameters": SEARCH.parameters, "strict": False}],
        "store": False, "stream": True, "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "s", "max_output_tokens": 9, "temperature": 1,
        "reasoning": {"effort": "low"}, "text": {"verbosity": "high"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("model", "thinks"),
    [("gpt-4.1", False), ("openai/gpt-4o", False), ("gpt-5-chat-latest", False), ("gpt-5.2", True),
     ("o4-mini", True), ("gpt-oss-120b", True)],
)  # fmt: skip
def test_thinking_is_asked_of_models_that_think(
    server: ProviderServer, model: str, thinks: bool
) -> None:
    payload = provider(server).render(asked(model=model)).payload
    assert ("include" in payload) is thinks


def test_a_model_that_does_not_think_after_all(server: ProviderServer) -> None:
    text = "Encrypted content is not supported with this model."
    server.script = [Failure(400, {"error": {"message": text}}), say("ok")]
    assert ask(provider(server))[1].parts == (Text("ok"),)
    assert [request.json.get("include") is None for request in server.requests] == [False, True]


@pytest.mark.parametrize("plain", [False, True])
def test_thinking_text_and_calls(server: ProviderServer, plain: bool) -> None:
    odd = '{"q" : "straße"}'
    made = [call("search", odd, id="a"), call("search", "not json", id="b")]
    server.script = [use(*made, text="I look.", reasoning="Where?", encrypted="gAAA", cached=3)]
    answer = ask(provider(server), asked(tools=(SEARCH,)), plain)
    reply: Reply = answer if plain else answer[1]
    assert reply.parts == (
        Reasoning("Where?", model="test-model", data="gAAA", id="rs_r0"), Text("I look."),
        ToolCall("a", "search", odd), ToolCall("b", "search", "not json"),
    )  # fmt: skip
    assert (reply.stop, reply.id, reply.model) == ("tool_calls", "r0", "test-model")
    sent = server.requests[0].tokens
    assert reply.usage == Usage(input=sent, output=8, cached=3, reasoning=1)
    if not plain:
        calls = [event for event in answer[0] if isinstance(event, CallDelta)]
        assert [(c.index, c.id, c.name) for c in calls if c.id] == [
            (0, "a", "search"), (1, "b", "search"),
        ]  # fmt: skip
        assert "".join(c.arguments for c in calls if c.index == 1) == "not json"
        assert ReasoningDelta("Where?") in answer[0]


def test_thinking_goes_back_as_it_came(server: ProviderServer) -> None:
    """And the request that follows begins with the one before."""
    server.script = [use(call("search", id="a"), encrypted="gAAA"), say("Done.")]
    made = provider(server)

    async def run() -> None:
        first = [user("Hi")]
        _, reply = await streamed(made, made.render(asked(*first, tools=(SEARCH,), affinity="s")))
        later = [*first, assistant(*reply.parts), result("a", "Found.")]
        await streamed(made, made.render(asked(*later, tools=(SEARCH,), affinity="s")))
        await made.close()

    asyncio.run(run())
    kinds = [item["type"] for item in server.requests[1].messages]
    assert kinds == ["message", "reasoning", "function_call", "function_call_output"]
    thought = server.requests[1].messages[1]
    assert (thought["id"], thought["encrypted_content"]) == ("rs_r0", "gAAA")
    server.check(breaks=0)


@pytest.mark.parametrize("plain", [False, True])
def test_calls_that_share_an_id_or_have_none(server: ProviderServer, plain: bool) -> None:
    server.script = [use(Call("one", "{}", "x"), Call("two", "{}", "x"), Call("three", "{}", None))]
    answer = ask(provider(server), asked(tools=(SEARCH,)), plain)
    parts = (answer if plain else answer[1]).parts
    assert [part.name for part in parts] == ["one", "two", "three"]
    assert len({part.id for part in parts}) == 3
    if not plain:
        told = [event.id for event in answer[0] if isinstance(event, CallDelta) and event.id]
        assert told == [part.id for part in parts]


@pytest.mark.parametrize("plain", [False, True])
def test_a_refusal(server: ProviderServer, plain: bool) -> None:
    server.script = [refuse("I cannot.")]
    answer = ask(provider(server), plain=plain)
    reply: Reply = answer if plain else answer[1]
    assert (reply.parts, reply.stop) == ((Text("I cannot."),), "refusal")
    if not plain:
        assert answer[0] == [TextDelta("I cannot"), TextDelta(".")]


@pytest.mark.parametrize(
    ("finish", "stop"), [("length", "length"), ("content_filter", "content_filter")]
)
def test_an_answer_that_is_incomplete(server: ProviderServer, finish: str, stop: str) -> None:
    server.script = [say("So far", finish=finish)]
    assert ask(provider(server))[1].stop == stop


@pytest.mark.parametrize("fault", ["cut", "no-finish", "malformed", "empty", "error", "html"])
def test_a_stream_that_breaks(server: ProviderServer, fault: Any) -> None:
    server.script = [say("Half of what I wanted to say.", fault=fault)]
    with pytest.raises((ServerFailed, Unreachable)):
        ask(provider(server))


@pytest.mark.parametrize("fault", ["cut", "malformed", "empty", "error", "html"])
def test_a_plain_answer_that_breaks(server: ProviderServer, fault: Any) -> None:
    server.script = [say("Half of what I wanted to say.", fault=fault)]
    with pytest.raises((ServerFailed, Unreachable)):
        ask(provider(server), plain=True)


def test_silence_is_given_up(server: ProviderServer) -> None:
    server.script = [HANG]
    with pytest.raises(TimedOut):
        ask(provider(server, timeout=0.2))


def test_closing_the_iterator_ends_the_request(server: ProviderServer) -> None:
    server.script = [say("Once upon a time", gate=threading.Event(), hold_at=4)]
    made = provider(server)

    async def run() -> list[Any]:
        seen: list[Any] = []
        async with aclosing(made.stream(made.render(asked()))) as stream:  # type: ignore[type-var]
            async for event in stream:
                seen.append(event)
                break
        assert await asyncio.to_thread(server.requests[0].aborted.wait, WAIT)
        await made.close()
        return seen

    assert asyncio.run(run()) == [TextDelta("Once upo")]


@pytest.mark.parametrize(
    ("code", "kind"),
    [("rate_limit_exceeded", RateLimited), ("server_error", ServerFailed),
     ("context_length_exceeded", Overflow)],
)  # fmt: skip
def test_a_response_that_failed(code: str, kind: type[ProviderError]) -> None:
    """Its error stands in the last event."""
    made = OpenAIResponses("test", ProviderConfig(base_url="http://127.0.0.1:9/v1"), None)
    body = made.render(asked())
    events = Events()
    failed = {"status": "failed", "error": {"code": code, "message": "no"}, "output": []}
    assert [*events.add({"type": "response.failed", "response": failed})] == []
    with pytest.raises(kind):
        made._reply(events.response(), body)  # pyright: ignore[reportPrivateUsage]


def test_the_items_of_a_server_that_does_not_repeat_them() -> None:
    events = Events()
    item = {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}
    assert [*events.add({"type": "response.output_item.done", "item": item})] == []
    assert [*events.add({"type": "response.completed", "response": {"status": "completed"}})] == []
    assert events.response()["output"] == [item]


def test_images_only_for_models_that_see(server: ProviderServer) -> None:
    server.script = [say("a cat"), say("what cat?")]
    picture = user("What is it?", Image(url="https://example.org/cat.png"))
    for sees in (True, False):
        ask(provider(server), asked(picture, images=sees))
    kinds = [[p["type"] for p in r.messages[-1]["content"]] for r in server.requests]
    assert kinds == [["input_text", "input_image"], ["input_text", "input_text"]]


def test_a_long_talk_stays_valid_and_cached(server: ProviderServer) -> None:
    server.script = lambda request: say("Well.")
    made = provider(server)

    async def run() -> list[int]:
        talk, cached = [user("Hi")], []
        for number in range(12):
            _, reply = await streamed(
                made, made.render(asked(*talk, tools=(SEARCH,), affinity="s"))
            )
            cached.append(reply.usage.cached)
            talk += [*step(f"c{number}"), assistant("Well."), user(f"And {number}?")]
        await made.close()
        return cached

    cached = asyncio.run(run())
    assert cached == sorted(cached)
    assert cached[-1] > 0
    server.check(breaks=0)


def test_settings_that_are_the_conversations(server: ProviderServer) -> None:
    with pytest.raises(NotConfigured, match="'input'"):
        provider(server).render(asked(settings={"input": []}))


def test_a_failure_before_the_stream(server: ProviderServer) -> None:
    server.script = [FAIL["overflow-responses"]]
    with pytest.raises(Overflow):
        ask(provider(server))
