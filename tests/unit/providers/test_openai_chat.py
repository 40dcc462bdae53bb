"""Chat Completions against the scripted server: what is sent, and what becomes of each answer."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest

from clew.config.values import ProviderConfig
from clew.domain.parts import Image, Reasoning, Text, ToolCall
from clew.domain.turns import Usage
from clew.providers import openai_stream
from clew.providers.api import CallDelta, ReasoningDelta, Reply, TextDelta
from clew.providers.errors import (
    BadRequest,
    NotConfigured,
    ProviderError,
    ServerFailed,
    TimedOut,
    Unreachable,
)
from clew.providers.openai_chat import OpenAIChat
from provider_server import FAIL, HANG, Failure, ProviderServer, Recorded, call, refuse, say, use
from provider_server.answers import Answer, Call
from provider_server.asking import SEARCH, asked, assistant, step, streamed, user

WAIT = 20.0


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server
        server.check()


def provider(server: ProviderServer, key: str | None = "sk-test-key", **more: Any) -> OpenAIChat:
    return OpenAIChat("test", ProviderConfig(base_url=server.base_url, **more), key)


def ask(made: OpenAIChat, request: Any = None, plain: bool = False) -> Any:
    """The events and the reply, or the reply of an answer that is not streamed."""

    async def run() -> Any:
        try:
            body = made.render(request or asked())
            return await (made.complete(body) if plain else streamed(made, body))
        finally:
            await made.close()

    return asyncio.run(run())


# ---------------------------------------------------------------------- answers


def test_a_text_comes_in_pieces_and_whole(server: ProviderServer) -> None:
    server.script = [say("Hello there, friend.", usage=None, cached=2)]
    events, reply = ask(provider(server))
    assert [type(event) for event in events] == [TextDelta] * 3
    assert "".join(event.text for event in events) == "Hello there, friend."
    assert reply.parts == (Text("Hello there, friend."),)
    sent = server.requests[0].tokens
    assert (reply.stop, reply.usage) == ("stop", Usage(input=sent, output=6, cached=2))
    assert (reply.model, reply.id) == ("test-model", "r0")


@pytest.mark.parametrize("plain", [False, True])
def test_thinking_text_and_calls_in_order(server: ProviderServer, plain: bool) -> None:
    """The thinking is that of the model asked; arguments stay the model's own text."""
    odd = '{"q" : "straße",\n "n": 1e3 }'
    made = [call("search", odd, id="a"), call("search", "not json", id="b")]
    server.script = [use(*made, text="I look.", reasoning="Where could it be?")]
    answer = ask(provider(server), asked(tools=(SEARCH,)), plain)
    reply = answer if plain else answer[1]
    assert reply.parts == (
        Reasoning("Where could it be?", model="test-model"), Text("I look."),
        ToolCall("a", "search", odd), ToolCall("b", "search", "not json"),
    )  # fmt: skip
    assert reply.stop == "tool_calls"
    assert reply.usage.reasoning == 4
    if not plain:
        calls = [event for event in answer[0] if isinstance(event, CallDelta)]
        assert [(c.index, c.id, c.name) for c in calls if c.id] == [
            (0, "a", "search"), (1, "b", "search"),
        ]  # fmt: skip
        assert "".join(c.arguments for c in calls if c.index == 0) == odd
        assert ReasoningDelta("Where co") in answer[0]


def test_thinking_belongs_to_the_model_that_was_asked(server: ProviderServer) -> None:
    """However the server names what answered: by that name it is sent back."""
    server.script = [say("4", reasoning="2 + 2", model="test-model-2026-11-30")]
    reply = ask(provider(server))[1]
    assert reply.parts[0] == Reasoning("2 + 2", model="test-model")
    assert reply.model == "test-model-2026-11-30"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text"])
def test_the_thinking_of_each_kind_of_server(server: ProviderServer, field: str) -> None:
    server.script = [say("4", reasoning="2 + 2", reasoning_field=field)]
    assert ask(provider(server))[1].parts == (Reasoning("2 + 2", model="test-model"), Text("4"))


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("ids", [(None, None), ("x", "x"), ("", "")])
def test_ids_of_calls_that_lack_or_repeat_one(
    server: ProviderServer, ids: tuple[Any, Any], plain: bool
) -> None:
    server.script = [use(Call("one", "{}", ids[0]), Call("two", '{"a": 1}', ids[1]))]
    answer = ask(provider(server), asked(tools=(SEARCH,)), plain)
    first, second = (answer if plain else answer[1]).parts
    assert (first.name, second.name, second.arguments) == ("one", "two", '{"a": 1}')
    assert first.id
    assert second.id
    assert first.id != second.id


def test_what_a_provider_wants_back_with_a_call(server: ProviderServer) -> None:
    """Gemini's thought signatures are sent again in the place where they stood."""
    signed = {"google": {"thought_signature": "c2ln"}}
    server.script = [use(call("search", "{}", id="a", extra_content=signed)), say("Done.")]
    made = provider(server)

    async def run() -> None:
        body = made.render(asked(tools=(SEARCH,)))
        _, reply = await streamed(made, body)
        found = reply.parts[0]
        assert isinstance(found, ToolCall)
        assert found.extra == {"extra_content": signed}
        later = asked(user("Hello?"), assistant(found), *step("a")[1:], tools=(SEARCH,))
        await streamed(made, made.render(later))
        await made.close()

    asyncio.run(run())
    assert server.requests[1].messages[-2]["tool_calls"][0]["extra_content"] == signed


def test_calls_that_all_have_the_index_0_or_none() -> None:
    """As Gemini sends them: whole, each with an id of its own."""
    for index in ({"index": 0}, {}):
        answer = openai_stream.Answer("m")
        for id in ("a", "b"):
            piece = {"id": id, "function": {"name": "f", "arguments": "{}"}, **index}
            list(answer.add({"choices": [{"delta": {"tool_calls": [piece]}}]}))
        assert [part.id for part in answer.reply().parts if isinstance(part, ToolCall)] == [
            "a",
            "b",
        ]


def test_a_refusal_is_a_text(server: ProviderServer) -> None:
    server.script = [refuse("I cannot help with that."), refuse("No.")]
    made = provider(server)

    async def run() -> list[Reply]:
        body = made.render(asked())
        found = [(await streamed(made, body))[1], await made.complete(body)]
        await made.close()
        return found

    replies = asyncio.run(run())
    assert [reply.stop for reply in replies] == ["refusal", "refusal"]
    assert [reply.parts for reply in replies] == [
        (Text("I cannot help with that."),), (Text("No."),),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("finish", "stop"),
    [("length", "length"), ("content_filter", "content_filter"), ("stop", "stop"),
     ("model_length", "length"), ("eos", "stop"), ("weird", "other")],
)  # fmt: skip
def test_why_it_stopped(server: ProviderServer, finish: str, stop: str) -> None:
    server.script = [say("So", finish=finish)]
    assert ask(provider(server))[1].stop == stop


def test_calls_of_a_server_that_says_stop(server: ProviderServer) -> None:
    """Several local servers do."""
    server.script = [use(call("search"), finish="stop")]
    assert ask(provider(server), asked(tools=(SEARCH,)))[1].stop == "tool_calls"


@pytest.mark.parametrize(
    ("usage", "wanted"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2, "prompt_cache_hit_tokens": 8},
         Usage(input=10, output=2, cached=8)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "cached_tokens": 7},
         Usage(input=10, output=2, cached=7)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 20,
          "completion_tokens_details": {"reasoning_tokens": 8}},
         Usage(input=10, output=10, reasoning=8)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": None},
         Usage(input=10, output=2)),
        ({"prompt_tokens": "?", "completion_tokens": None}, Usage()),
    ],
)  # fmt: skip
def test_usage_as_each_server_counts(
    server: ProviderServer, usage: dict[str, Any], wanted: Usage
) -> None:
    """DeepSeek, Moonshot, xAI, vLLM, and nonsense."""
    server.script = [say("x", usage=usage)]
    assert ask(provider(server))[1].usage == wanted


def test_a_cost_that_the_server_says(server: ProviderServer) -> None:
    server.script = [say("x", cost=0.0125)]
    assert ask(provider(server))[1].cost == 0.0125


# ---------------------------------------------------------------------- broken answers


@pytest.mark.parametrize("fault", ["cut", "no-finish", "malformed", "empty", "error", "html"])
def test_a_stream_that_breaks(server: ProviderServer, fault: Any) -> None:
    """What came before is passed on; the end is an error that waiting may help against."""
    server.script = [say("Half of what I wanted to say.", fault=fault)]
    with pytest.raises((ServerFailed, Unreachable)) as caught:
        ask(provider(server))
    assert caught.value.retryable
    assert "test" in str(caught.value)


@pytest.mark.parametrize("fault", ["cut", "malformed", "empty", "error", "html"])
def test_a_plain_answer_that_breaks(server: ProviderServer, fault: Any) -> None:
    server.script = [say("Half of what I wanted to say.", fault=fault)]
    with pytest.raises((ServerFailed, Unreachable)):
        ask(provider(server), plain=True)


def test_a_stream_cut_behind_its_finish_reason_lost_nothing_but_the_usage(
    server: ProviderServer,
) -> None:
    """Nothing says how much was used; an answer that is whole is not asked for twice... unless the
    connection broke, which is an error like any other."""
    server.script = [say("All of it.", fault="cut-done")]
    with pytest.raises(Unreachable):
        ask(provider(server))


def test_done_without_a_finish_reason_is_an_end(server: ProviderServer) -> None:
    server.script = [say("All of it.", fault="done-only")]
    reply = ask(provider(server))[1]
    assert (reply.parts, reply.stop) == ((Text("All of it."),), "stop")


@pytest.mark.parametrize("answer", [HANG, say("Half of it", fault="silent")])
def test_silence_is_given_up(server: ProviderServer, answer: Any) -> None:
    server.script = [answer]
    with pytest.raises(TimedOut, match=r"0\.2 seconds.*timeout in \[providers\.test\]"):
        ask(provider(server, timeout=0.2))


def test_no_connection(server: ProviderServer) -> None:
    server.pause()
    with pytest.raises(Unreachable, match=f"{server.port}.*base_url"):
        ask(provider(server))


def test_closing_the_iterator_ends_the_request(server: ProviderServer) -> None:
    """A stop of the person ends the call at once, and what was streamed stays."""
    gate = threading.Event()
    server.script = [say("Once upon a time", gate=gate, hold_at=2)]
    made = provider(server)

    async def run() -> list[str]:
        seen: list[str] = []
        async with aclosing(made.stream(made.render(asked()))) as stream:  # type: ignore[type-var]
            async for event in stream:
                assert isinstance(event, TextDelta)
                seen.append(event.text)
                break
        assert await asyncio.to_thread(server.requests[0].aborted.wait, WAIT)
        await made.close()
        return seen

    assert asyncio.run(run()) == ["Once upo"]


def test_cancelling_the_task_ends_the_request(server: ProviderServer) -> None:
    server.script = [HANG]
    made = provider(server)

    async def run() -> None:
        task = asyncio.create_task(streamed(made, made.render(asked())))
        await asyncio.to_thread(server.wait_for, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.requests[0].aborted.wait, WAIT)
        await made.close()

    asyncio.run(run())


def test_no_proxy_for_this_machine(server: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    server.script = [say("Direct.")]
    assert ask(provider(server))[1].parts == (Text("Direct."),)


# ---------------------------------------------------------------------- requests


def test_what_is_sent(server: ProviderServer) -> None:
    server.script = [say("ok")]
    made = provider(server, headers={"x-team": "blue"})
    ask(made, asked(user("Hi"), tools=(SEARCH,), max_tokens=50, settings={"temperature": 0.5}))
    request = server.requests[0]
    assert request.json == {
        "model": "test-model",
        "messages": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"},
        ],
        "tools": [
            {"type": "function", "function": {
                "name": "search", "description": "Finds notes.", "parameters": SEARCH.parameters}},
        ],
        "stream": True, "stream_options": {"include_usage": True},
        "max_tokens": 50, "temperature": 0.5,
    }  # fmt: skip
    assert request.headers["authorization"] == "Bearer sk-test-key"
    assert request.headers["x-team"] == "blue"


def test_equal_requests_are_equal_bytes(server: ProviderServer) -> None:
    server.script = [say("ok"), say("ok")]
    talk = [user("Hi"), *step("a"), user("And?")]
    for _ in range(2):
        ask(provider(server), asked(*talk, tools=(SEARCH,), affinity="s", settings={"seed": 1}))
    assert server.requests[0].raw == server.requests[1].raw


def test_the_next_request_begins_with_the_one_before(server: ProviderServer) -> None:
    """S45.9 The scope is in the body and in the header that the configuration names; the server's
    cache finds what was there before."""
    server.script = [use(call("search", id="a")), say("Done."), say("Yes.")]
    made = provider(server, affinity_header="x-session-id")

    async def run() -> list[Usage]:
        talk = [user("Hi" * 40)]
        used: list[Usage] = []
        for more in (step("a"), [assistant("Done."), user("Sure?")], []):
            _, reply = await streamed(
                made, made.render(asked(*talk, tools=(SEARCH,), affinity="scope-1"))
            )
            used.append(reply.usage)
            talk += more
        await made.close()
        return used

    first, second, third = asyncio.run(run())
    assert first.cached == 0 < second.cached < third.cached
    assert {r.json["prompt_cache_key"] for r in server.requests} == {"scope-1"}
    assert {r.headers["x-session-id"] for r in server.requests} == {"scope-1"}
    server.check(breaks=0)


def test_the_scope_of_a_delegate(server: ProviderServer) -> None:
    """S45.13 A conversation made on another's behalf keeps that one's scope, unless it has one."""
    server.script = [say("1"), say("2"), say("3"), say("4")]
    server.expect_break(4)
    for given in (
        {"attribution": "parent"}, {"affinity": "own", "attribution": "parent"}, {},
        {"affinity": "x" * 65},
    ):  # fmt: skip
        ask(provider(server), asked(**given))
    keys = [request.json.get("prompt_cache_key") for request in server.requests]
    assert keys[:3] == ["parent", "own", None]
    assert len(keys[3]) == 64


def test_no_scope_where_none_is_wanted(server: ProviderServer) -> None:
    server.script = [say("ok")]
    ask(provider(server, affinity=False, affinity_header="x-session-id"), asked(affinity="s"))
    assert "prompt_cache_key" not in server.requests[0].json
    assert "x-session-id" not in server.requests[0].headers


def test_a_server_that_refuses_a_field_is_asked_without_it(server: ProviderServer) -> None:
    """Once: from then on the field is left out."""
    server.script = [FAIL["400-cache-key"], say("ok"), say("again")]
    made = provider(server)

    async def run() -> None:
        for _ in range(2):
            await streamed(made, made.render(asked(affinity="scope")))
        await made.close()

    asyncio.run(run())
    sent = ["prompt_cache_key" in request.json for request in server.requests]
    assert sent == [True, False, False]


def test_a_server_that_is_known_to_refuse_it(server: ProviderServer) -> None:
    made = OpenAIChat("groq", ProviderConfig(base_url="https://api.groq.com/openai/v1"), "gsk-x")
    assert "prompt_cache_key" not in made.render(asked(affinity="scope")).payload


def test_a_refusal_in_a_list(server: ProviderServer) -> None:
    """As Gemini has it."""
    text = 'Invalid JSON payload received. Unknown name "prompt_cache_key": Cannot find field.'
    server.script = [Failure(400, [{"error": {"code": 400, "message": text}}]), say("ok")]
    assert ask(provider(server), asked(affinity="scope"))[1].parts == (Text("ok"),)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("Unsupported parameter: 'max_tokens' is not supported with this model. "
         "Use 'max_completion_tokens' instead.", "max_tokens"),
        ("Unrecognized request argument supplied: stream_options", "stream_options"),
        ("Unknown parameter: 'messages[1].reasoning_content'.", "reasoning_content"),
    ],
)  # fmt: skip
def test_fields_that_a_server_may_refuse(server: ProviderServer, text: str, field: str) -> None:
    server.script = [Failure(400, {"error": {"message": text}}), say("ok")]
    thought = assistant(Reasoning("Hm.", model="test-model"), Text("Well."))
    ask(provider(server), asked(user("Hi"), thought, user("So?"), max_tokens=9))
    first, second = (request.raw.decode() for request in server.requests)
    assert f'"{field}"' in first
    assert f'"{field}"' not in second
    assert ('"max_completion_tokens":9' in second) is (field == "max_tokens")


def test_thinking_is_not_sent_to_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its Chat Completions have no place for it."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    made = OpenAIChat("openai", ProviderConfig(), "sk-x")
    thought = assistant(Reasoning("Hm.", model="gpt-5"), Text("Well."))
    messages = made.render(asked(user("Hi"), thought, user("So?"), model="gpt-5")).payload[
        "messages"
    ]
    assert messages[2] == {"role": "assistant", "content": "Well."}


def test_a_refusal_that_stays_ends_at_once(server: ProviderServer) -> None:
    server.script = [FAIL["400-cache-key"]] * 3
    with pytest.raises(BadRequest):
        ask(provider(server), asked(affinity="scope"))
    assert len(server.requests) == 2


def test_images_only_for_models_that_see(server: ProviderServer) -> None:
    server.script = [say("a cat"), say("what cat?")]
    picture = user("What is it?", Image(url="https://example.org/cat.png"))
    for sees in (True, False):
        ask(provider(server), asked(picture, images=sees))
    kinds = [[p["type"] for p in r.messages[-1]["content"]] for r in server.requests]
    assert kinds == [["text", "image_url"], ["text", "text"]]


def test_no_tools_for_models_that_call_none(server: ProviderServer) -> None:
    server.script = [say("ok")]
    ask(provider(server), asked(tools=(SEARCH,), can_call=False))
    assert "tools" not in server.requests[0].json


def test_without_a_key_none_is_sent(
    server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variables of OpenAI are for OpenAI alone, whatever the SDK would do."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sk-env\nx-gate: secret")
    server.script = [say("ok"), say("ok")]
    ask(provider(server, key=None))
    ask(provider(server, key="sk-own"))
    for request in server.requests:
        told = json.dumps(dict(request.headers))
        assert not [
            word for word in ("sk-of-openai", "org-mine", "sk-env", "secret") if word in told
        ]
    assert "authorization" not in server.requests[0].headers
    assert server.requests[1].headers["authorization"] == "Bearer sk-own"


@pytest.mark.parametrize(
    ("config", "key", "told"),
    [
        (ProviderConfig(), None, "OPENAI_API_KEY"),
        (ProviderConfig(key_env="MY_KEY"), None, "set MY_KEY"),
        (ProviderConfig(base_url="localhost:80/v1"), "k", "http://host/v1"),
        (ProviderConfig(base_url="http://[::1/v1"), "k", "http://host/v1"),
        (ProviderConfig(base_url="http://host:port/v1"), "k", "http://host/v1"),
        (ProviderConfig(base_url="ftp://host/v1"), "k", "http://host/v1"),
        (ProviderConfig(), "“sk-quoted”", "characters that no key has"),
    ],
)
def test_what_cannot_be_sent_is_told_before(
    monkeypatch: pytest.MonkeyPatch, config: ProviderConfig, key: str | None, told: str
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(NotConfigured, match=told) as caught:
        OpenAIChat("mine", config, key).render(asked())
    assert "sk-quoted" not in str(caught.value)


def test_settings_that_are_the_conversations(server: ProviderServer) -> None:
    with pytest.raises(NotConfigured, match="'messages'"):
        provider(server).render(asked(settings={"messages": []}))


def test_the_name_of_the_limit_on_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenAI's models that think refuse max_tokens."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    made = OpenAIChat("openai", ProviderConfig(), "sk-x")
    payload = made.render(asked(settings={"max_tokens": 9})).payload
    assert payload["max_completion_tokens"] == 9
    assert "max_tokens" not in payload


def test_no_secret_in_an_error_or_a_repr(server: ProviderServer) -> None:
    """Neither the key, nor what was said, however the server repeats it."""
    secret, said = "sk-0123456789", "my password is hunter2, keep it"

    def echo(request: Recorded) -> Answer | Any:
        text = f"bad key {secret} in input {request.messages[-1]['content']!r}"
        return type(FAIL["400"])(400, {"error": {"message": text}})

    server.script = echo
    made = provider(server, key=secret)
    with pytest.raises(ProviderError) as caught:
        ask(made, asked(user(said)))
    shown = f"{caught.value} {caught.value!r} {made!r} {vars(caught.value)}"
    assert secret not in shown
    assert "hunter2" not in shown
    assert "bad key [key]" in shown


def test_a_model_that_is_asked_twice_at_once(server: ProviderServer) -> None:
    server.script = lambda request: say(request.messages[-1]["content"])
    made = provider(server)

    async def run() -> list[str]:
        bodies = [made.render(asked(user(f"number {n}"))) for n in range(8)]
        replies = await asyncio.gather(*(streamed(made, body) for body in bodies))
        await made.close()
        return [part.text for _, reply in replies for part in reply.parts if isinstance(part, Text)]

    assert asyncio.run(run()) == [f"number {n}" for n in range(8)]
