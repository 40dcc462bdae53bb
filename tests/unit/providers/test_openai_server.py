"""The scripted server itself: what it must see, or nobody would."""

from __future__ import annotations

import asyncio
import http.client
import json
from typing import Any

import openai
import pytest

from clew.config.values import ProviderConfig
from clew.domain.parts import Text
from clew.providers.openai_chat import OpenAIChat
from provider_server import ProviderServer, call, refuse, say, use
from provider_server.asking import SEARCH, asked, assistant, streamed, user

USER = {"role": "user", "content": "Hi"}
CALL = {
    "role": "assistant", "content": None,
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}  # fmt: skip


def post(server: ProviderServer, body: dict[str, Any], path: str = "/chat/completions") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("POST", f"/v1{path}", json.dumps(body))
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"messages": [USER]}, "no model"),
        ({"model": "m", "messages": []}, "no messages"),
        ({"model": "m", "messages": [USER], "max_output_tokens": 9}, "unknown fields"),
        ({"model": "m", "messages": [USER, CALL, USER]}, "messages"),
        ({"model": "m", "messages": [USER, {"role": "tool", "content": "x", "tool_call_id": "a"}]},
         "messages"),
        ({"model": "m", "messages": [USER, {"role": "assistant", "content": ""}, USER]},
         "messages"),
        ({"model": "m", "messages": [{"role": "user"}]}, "none of the SDK's types"),
        ({"model": "m", "messages": [USER, {"role": "assistant", "content": "x"}]}, "last message"),
        ({"model": "m", "messages": [USER], "tools": []}, "tools is empty"),
        ({"model": "m", "messages": [USER], "tool_choice": "auto"}, "without tools"),
        ({"model": "m", "messages": [USER], "tools": [
            {"type": "function", "function": {"name": "a.b", "parameters": {"type": "object"}}}]},
         "not allowed"),
        ({"model": "m", "messages": [USER], "tools": [
            {"type": "function", "function": {"name": "f", "parameters": {}}}]}, "no schema"),
        ({"model": "m", "messages": [USER], "stream_options": {"include_usage": True}},
         "without stream"),
    ],
)  # fmt: skip
def test_a_request_that_is_not_valid(body: dict[str, Any], told: str) -> None:
    with ProviderServer([say("x")]) as server:
        assert post(server, body) == 200
        with pytest.raises(AssertionError, match=told):
            server.check()


def test_a_response_that_would_be_stored() -> None:
    items = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}]
    with ProviderServer([say("x")]) as server:
        post(server, {"model": "m", "input": items}, "/responses")
        with pytest.raises(AssertionError, match="store"):
            server.check()


def test_a_script_that_is_over() -> None:
    with ProviderServer() as server:
        assert post(server, {"model": "m", "messages": [USER]}) == 500
        with pytest.raises(AssertionError, match="over"):
            server.check()


def test_a_broken_prefix_is_seen() -> None:
    """Another beginning, other tools, another prompt; not another end, and not another scope."""
    first, said = user("Hi"), assistant(Text("Well."))
    later = [
        (asked(first, said, user("A?")), None),
        (asked(first, said, user("B?")), None),
        (asked(user("No"), said, user("B?")), "message 1"),
        (asked(user("No"), said, user("B?"), tools=(SEARCH,)), "tools"),
        (asked(user("No"), said, user("B?"), tools=(SEARCH,), prompt="Else."), "message 0"),
        (asked(user("No"), tools=(SEARCH,), prompt="Else."), "instead of"),
    ]
    with ProviderServer(lambda request: say("Well.")) as server:
        made = OpenAIChat("test", ProviderConfig(base_url=server.base_url), None)

        async def run() -> None:
            for request, _ in [(asked(first), None), *later]:
                for scope in ("s", None):
                    given = type(request)(
                        **{n: getattr(request, n) for n in request.__struct_fields__}
                        | {"affinity": scope}
                    )
                    await streamed(made, made.render(given))
            await made.close()

        asyncio.run(run())
        wanted = [what for _, what in later if what is not None]
        assert len(server.breaks) == len(wanted)
        for found, what in zip(server.breaks, wanted, strict=True):
            assert what in found.what
        with pytest.raises(AssertionError, match="broken prefixes"):
            server.check()
        server.expect_break(4)
        server.check()
        server.check(breaks=4)
        with pytest.raises(AssertionError, match="broken prefixes"):
            server.check(breaks=3)


def test_pause_and_resume() -> None:
    with ProviderServer([say("x")]) as server:
        server.pause()
        with pytest.raises(ConnectionError):
            post(server, {"model": "m", "messages": [USER]})
        server.resume()
        assert post(server, {"model": "m", "messages": [USER]}) == 200


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_what_it_answers_is_what_the_sdk_knows(api: str, stream: bool) -> None:
    """Every piece passes the SDK's own validation, which is stricter than what anybody uses."""
    answers = [
        say("Hello there."), use(call("f", {"a": 1}), call("g"), text="I look.", reasoning="Hm."),
        refuse("I cannot."), say("So far", finish="length"),
    ]  # fmt: skip
    items: Any = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}
    ]

    async def run(server: ProviderServer) -> int:
        seen = 0
        async with openai.AsyncOpenAI(
            base_url=server.base_url, api_key="x", max_retries=0, _strict_response_validation=True
        ) as client:
            for _ in answers:
                made: Any = (
                    await client.chat.completions.create(
                        model="m", messages=[USER], stream=stream, **usage
                    )
                    if api == "chat"
                    else await client.responses.create(
                        model="m", input=items, store=False, stream=stream
                    )
                )
                if not stream:
                    seen += 1
                    continue
                async for _ in made:
                    seen += 1
        return seen

    usage: Any = {"stream_options": {"include_usage": True}} if stream else {}
    with ProviderServer(answers) as server:
        seen = asyncio.run(run(server))
        server.check()
    assert (seen > 20) is stream
    assert seen >= 4
