"""Anthropic through the real SDK, against a scripted server: what is sent, what becomes of each
answer, and of each failure."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from anthropic_server import Answer, Server, block, ended, failed, said, serving, start, text
from clew.config.values import ProviderConfig
from clew.domain.messages import Message, Role
from clew.domain.parts import Reasoning, Text, ToolCall
from clew.domain.turns import Usage
from clew.providers.anthropic import Anthropic
from clew.providers.api import CallDelta, Model, Price, ReasoningDelta, Reply, Request, TextDelta
from clew.providers.errors import (
    BadKey,
    BadRequest,
    NoModel,
    NotConfigured,
    OutOfCredit,
    Overflow,
    ProviderError,
    RateLimited,
    ServerFailed,
    TimedOut,
    Unreachable,
)
from provider_server.asking import SEARCH, asked, assistant, step, streamed, user
from renderings import check_anthropic

T = TypeVar("T")
KEY = "sk-ant-secret-0123456789"
WAIT = 20.0


def use(
    doing: Callable[[Anthropic, Server], Awaitable[T]], *answers: Answer, **more: Any
) -> tuple[T, Server]:
    """Do something with a provider and a server that gives these answers."""

    async def run() -> tuple[T, Server]:
        async with serving(*answers) as server:
            config = ProviderConfig(kind="anthropic", base_url=server.url, **more)
            made = Anthropic("claude", config, KEY)
            try:
                async with asyncio.timeout(WAIT):
                    return await doing(made, server), server
            finally:
                await made.close()

    return asyncio.run(run())


def ask(*answers: Answer, request: Request | None = None, **more: Any) -> Any:
    """(events, reply, what the server was asked)."""

    async def doing(made: Anthropic, server: Server) -> Any:
        return await streamed(made, made.render(request or asked()))

    (events, reply), server = use(doing, *answers, **more)
    return events, reply, server.asked[0]


def failure(answer: Answer, request: Request | None = None, **more: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        ask(answer, request=request, **more)
    assert KEY not in str(caught.value)
    assert caught.value.provider == "claude"
    return caught.value


# ---------------------------------------------------------------------- answers


def test_a_text_comes_in_pieces_and_whole() -> None:
    events, reply, sent = ask(said("Hello ", "there."))
    assert events == [TextDelta("Hello "), TextDelta("there.")]
    assert reply.parts == (Text("Hello there."),)
    assert (reply.stop, reply.model, reply.id) == ("stop", "claude-x-20260101", "msg_1")
    assert reply.usage == Usage(input=10, output=7)
    assert (sent.method, sent.path) == ("POST", "/v1/messages")
    assert any(KEY in value for value in sent.headers.values())
    assert sent.body["stream"] is True


def test_thinking_text_and_calls_in_order() -> None:
    """The thinking is that of the model asked, signed; arguments stay the model's own text."""
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    _, reply, _ = ask(Answer([
        start(),
        *block(0, thinking, {"type": "thinking_delta", "thinking": "Let me "},
               {"type": "thinking_delta", "thinking": "see."},
               {"type": "signature_delta", "signature": "c2ln"}),
        *block(1, {"type": "redacted_thinking", "data": "ZGF0YQ"}),
        *text(2, "I look."),
        *block(3, {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {}},
               {"type": "input_json_delta", "partial_json": ""},
               {"type": "input_json_delta", "partial_json": '{"q": "a'},
               {"type": "input_json_delta", "partial_json": 'bc"}'}),
        *block(4, {"type": "tool_use", "id": "toolu_2", "name": "search", "input": {}}),
        *ended("tool_use"),
    ]))  # fmt: skip
    assert reply.parts == (
        Reasoning("Let me see.", "test-model", "c2ln"),
        Reasoning(model="test-model", data="ZGF0YQ"),
        Text("I look."),
        ToolCall("toolu_1", "search", '{"q": "abc"}'),
        ToolCall("toolu_2", "search", "{}"),
    )
    assert reply.stop == "tool_calls"


def test_pieces_of_thinking_and_calls_are_told_as_they_come() -> None:
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    events, _, _ = ask(Answer([
        start(), *block(0, thinking, {"type": "thinking_delta", "thinking": "Hm."}),
        *block(1, {"type": "tool_use", "id": "a", "name": "search", "input": {}},
               {"type": "input_json_delta", "partial_json": "{}"}),
        *block(2, {"type": "tool_use", "id": "b", "name": "search", "input": {}}),
        *ended("tool_use"),
    ]))  # fmt: skip
    assert events == [
        ReasoningDelta("Hm."), CallDelta(0, "a", "search"), CallDelta(0, arguments="{}"),
        CallDelta(1, "b", "search"),
    ]  # fmt: skip


def test_thinking_goes_back_to_the_model_that_made_it() -> None:
    mine = Reasoning("Hm.", "test-model", "c2ln")
    others = Reasoning("Ho.", "other-model", "b3Ro")
    call = ToolCall("a", "search", "{}")
    request = asked(user("Go."), assistant(mine, others, "I look.", call), step("a")[1])
    _, _, sent = ask(said("x"), request=request)
    blocks = sent.body["messages"][1]["content"]
    assert [each["type"] for each in blocks] == ["thinking", "text", "tool_use"]
    assert (blocks[0]["thinking"], blocks[0]["signature"]) == ("Hm.", "c2ln")


def test_usage_counts_what_the_cache_held_and_took_as_input() -> None:
    """Cached tokens are read back; what the cache takes in costs more, and the cost has it."""
    answer = Answer([
        start(cache_read_input_tokens=900, cache_creation_input_tokens=100),
        *text(0, "x"), *ended(output=50),
    ])  # fmt: skip
    request = asked()
    priced = Model(
        name="m", provider="claude", window=8000, price=Price(input=4.0, output=20.0, cached=0.4)
    )
    _, reply, _ = ask(answer, request=replace(request, model=priced))
    assert reply.usage == Usage(input=1010, output=50, cached=900)
    assert reply.cost == pytest.approx((10 * 4 + 100 * 1.25 * 4 + 900 * 0.4 + 50 * 20) / 1e6)
    assert ask(answer)[1].cost is None


@pytest.mark.parametrize(
    ("word", "stop"),
    [("end_turn", "stop"), ("stop_sequence", "stop"), ("max_tokens", "length"),
     ("model_context_window_exceeded", "length"), ("news", "other")],
)  # fmt: skip
def test_why_it_stopped(word: str, stop: str) -> None:
    assert ask(Answer([start(), *text(0, "So"), *ended(word)]))[1].stop == stop


def test_a_refusal_is_a_text() -> None:
    details = {"type": "refusal", "category": "bio", "explanation": "Not that."}
    _, reply, _ = ask(Answer([start(), *ended("refusal", stop_details=details)]))
    assert (reply.parts, reply.stop) == ((Text("Not that."),), "refusal")
    _, reply, _ = ask(Answer([start(), *text(0, "I will not."), *ended("refusal")]))
    assert reply.parts == (Text("I will not."),)
    _, reply, _ = ask(Answer([start(), *ended("refusal")]))
    assert "refused" in reply.parts[0].text


def test_a_whole_answer_is_the_same() -> None:
    async def doing(made: Anthropic, server: Server) -> Reply:
        return await made.complete(made.render(asked()))

    assert use(doing, said("a", "b"))[0].parts == (Text("ab"),)


def test_pings_and_news_are_passed_over() -> None:
    news = {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta"}}
    events = [{"type": "ping"}, start(), *text(0, "x"), news, {"type": "weather"}, *ended()]
    assert ask(Answer(events))[1].parts == (Text("x"),)


def test_stopping_ends_the_request() -> None:
    """Whoever closes the stream frees the connection at once."""

    async def doing(made: Anthropic, server: Server) -> str:
        stream: Any = made.stream(made.render(asked()))
        async with aclosing(stream):
            first = await anext(stream)
            await server.held.wait()
        await server.left.wait()
        return first.text

    answer = Answer([start(), *text(0, "Once upon")], end="hold")
    assert use(doing, answer)[0] == "Once upon"


# ---------------------------------------------------------------------- what is sent


def test_what_is_sent() -> None:
    request = asked(
        user("Find it."), *step("a"), user("And?"), tools=(SEARCH,), affinity="scope-1",
        settings={"temperature": 0.5, "stop_sequences": ["END"]},
    )  # fmt: skip
    _, _, sent = ask(said("x"), request=request)
    check_anthropic(sent.body["messages"])
    assert sent.body["system"] == [
        {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    ]
    assert sent.body["tools"] == [{
        "name": "search", "description": SEARCH.description, "input_schema": SEARCH.parameters,
    }]  # fmt: skip
    assert sent.body["metadata"] == {"user_id": "scope-1"}
    assert (sent.body["temperature"], sent.body["stop_sequences"]) == (0.5, ["END"])
    assert sent.body["max_tokens"] == 7000  # what the context leaves of the window


@pytest.mark.parametrize(
    ("more", "most"),
    [({"max_tokens": 50}, 50),
     ({"settings": {"thinking": {"type": "enabled", "budget_tokens": 2000}}}, 7000),
     ({"max_tokens": 500,
       "settings": {"thinking": {"type": "enabled", "budget_tokens": 2000}}}, 2500)],
)  # fmt: skip
def test_room_for_the_reply(more: dict[str, Any], most: int) -> None:
    assert ask(said("x"), request=asked(**more))[2].body["max_tokens"] == most


def test_a_conversation_made_for_another_names_that_one() -> None:
    """S45.9: what a request is counted for, and where it is routed, are two things."""
    request = asked(affinity="own", attribution="origin")
    assert ask(said("x"), request=request)[2].body["metadata"] == {"user_id": "origin"}
    assert "metadata" not in ask(said("x"), request=request, affinity=False)[2].body
    headers = ask(said("x"), request=asked(affinity="own"), affinity_header="x-session-id")[2]
    assert headers.headers["x-session-id"] == "own"


def test_equal_requests_have_equal_bytes_and_grow_at_their_end() -> None:
    """Request n+1 begins with request n up to its last message. Marks are no part of that:
    they say where the cache looks, not what it reads."""
    entries = [user("Find it."), *step("a"), user("And?")]
    provider = Anthropic("claude", ProviderConfig(kind="anthropic"), KEY)
    first = provider.render(asked(*entries, tools=(SEARCH,)))
    again = provider.render(asked(*entries, tools=(SEARCH,)))
    later = provider.render(asked(*entries, assistant("So."), user("On."), tools=(SEARCH,)))
    assert first == again
    assert "cache_control" not in json.dumps(first.payload)
    before, after = first.payload["messages"], later.payload["messages"]
    assert after[: len(before)] == before
    rest = [{k: v for k, v in b.payload.items() if k != "messages"} for b in (first, later)]
    assert rest[0] == rest[1]


def test_what_stands_beside_the_conversation_is_behind_the_mark() -> None:
    """Todos and notices change; the cache must not be told to keep them."""
    said_before = Message.of(
        seq=1, uid="0" * 32, role=Role.USER, parts=(Text("Hello."),), created_at=0
    )
    entry = user("Hello.", Text("<notes>\nGoal: x\n</notes>"))._replace(messages=(said_before,))
    _, _, sent = ask(said("x"), request=asked(entry))
    hello, notes = sent.body["messages"][0]["content"]
    assert "cache_control" in hello
    assert "cache_control" not in notes


# ---------------------------------------------------------------------- failures

FAILURES: list[tuple[Answer, type[ProviderError], str]] = [
    (failed(400, "invalid_request_error", "temperature: must be 1"), BadRequest, "temperature"),
    (failed(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
     Overflow, "clew compact"),
    (failed(400, "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 9 + 9 > 10"),
     Overflow, "clew compact"),
    (failed(413, "request_too_large", "Request exceeds the maximum size"), Overflow, "compact"),
    (Answer(body="<html>too large</html>", status=413), Overflow, "compact"),
    (failed(400, "invalid_request_error", "Your credit balance is too low to access"),
     OutOfCredit, "Add credit"),
    (failed(402, "billing_error", "Payment"), OutOfCredit, "Add credit"),
    (failed(401, "authentication_error", f"invalid x-api-key {KEY}"), BadKey, "export"),
    (failed(403, "permission_error", "Not allowed"), BadKey, "console.anthropic.com"),
    (failed(404, "not_found_error", "model: claude-nope"), NoModel, "/model"),
    (failed(404, "not_found_error", "Not found"), NotConfigured, "base_url"),
    (failed(429, "rate_limit_error", "Slow down"), RateLimited, "Wait"),
    (failed(500, "api_error", "Internal server error"), ServerFailed, "later"),
    (failed(529, "overloaded_error", "Overloaded"), ServerFailed, "Overloaded"),
    (Answer(body="<html>Bad gateway</html>", status=502), ServerFailed, "502"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "kind", "words"), FAILURES)
def test_each_failure_has_its_class_and_its_remedy(
    answer: Answer, kind: type[ProviderError], words: str
) -> None:
    error = failure(answer)
    assert type(error) is kind
    assert words in str(error)
    assert error.status == answer.status


def test_when_to_come_again() -> None:
    slow = failure(failed(429, "rate_limit_error", "Slow down", retry_after="12"))
    assert slow.retry_after == 12.0
    assert failure(failed(529, "overloaded_error", "x", retry_after="soon")).retry_after is None


def test_an_error_in_the_stream_counts_by_its_type() -> None:
    """The status of HTTP was sent before; what was said before it is no answer."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    found = failure(Answer([start(), *text(0, "So"), error]))
    assert (type(found), found.status) == (ServerFailed, 529)
    error["error"] = {"type": "invalid_request_error", "message": "prompt is too long"}
    assert type(failure(Answer([start(), error]))) is Overflow


@pytest.mark.parametrize(
    "answer",
    [Answer([start(), *text(0, "So")]),
     Answer([start(), *text(0, "So")], end="cut"),
     Answer([start(), "event: message_delta\ndata: {broken\n\n"]),
     Answer([start(), "event: content_block_start\ndata: 7\n\n", *ended()]),
     Answer(body={"odd": True})],
)  # fmt: skip
def test_an_answer_that_is_cut_or_malformed_is_no_answer(answer: Answer) -> None:
    assert type(failure(answer)) is ServerFailed


def test_no_room_for_a_single_word_is_an_overflow() -> None:
    full = Answer([start(), *ended("model_context_window_exceeded")])
    assert type(failure(full)) is Overflow


def test_silence_and_no_server() -> None:
    assert type(failure(Answer([start()], end="hold"), timeout=0.2)) is TimedOut

    async def nobody() -> None:
        config = ProviderConfig(kind="anthropic", base_url="http://127.0.0.1:1")
        made = Anthropic("claude", config, KEY)
        with pytest.raises(Unreachable):
            await made.complete(made.render(asked()))
        await made.close()

    asyncio.run(nobody())


def test_an_error_repeats_neither_the_conversation_nor_a_key() -> None:
    secret = "the launch code is 0000-1111-2222"
    echoed = failed(400, "invalid_request_error", f"messages.0: {secret} is bad")
    error = failure(echoed, request=asked(user(f"Remember: {secret}.")))
    assert "0000" not in str(error)
    header = failure(
        failed(400, "invalid_request_error", "bad token abc-def-ghi"),
        headers={"authorization": "abc-def-ghi"},
    )
    assert "abc-def" not in str(header)
    assert KEY not in repr(Anthropic("claude", ProviderConfig(), KEY))


def test_without_a_key_it_says_which_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK would look for keys and profiles by itself; clew's are those of its configuration."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-somebody")

    async def run() -> None:
        made = Anthropic("claude", ProviderConfig(kind="anthropic"), None)
        with pytest.raises(NotConfigured, match="export ANTHROPIC_API_KEY"):
            await made.complete(made.render(asked()))

    asyncio.run(run())


# ---------------------------------------------------------------------- besides


def test_counting_sends_what_counts() -> None:
    async def doing(made: Anthropic, server: Server) -> int | None:
        return await made.count(made.render(asked(tools=(SEARCH,), settings={"temperature": 1})))

    count, server = use(doing, Answer(body={"input_tokens": 123}))
    assert count == 123
    assert server.asked[0].path == "/v1/messages/count_tokens"
    assert set(server.asked[0].body) == {"model", "system", "tools", "messages"}


def test_models_and_what_the_server_says_of_one() -> None:
    row = {"id": "claude-9", "type": "model", "display_name": "Claude 9",
           "created_at": "2026-01-01T00:00:00Z"}  # fmt: skip

    async def listed(made: Anthropic, server: Server) -> tuple[str, ...]:
        return await made.models()

    page = {"data": [row], "has_more": False, "first_id": "claude-9", "last_id": "claude-9"}
    assert use(listed, Answer(body=page))[0] == ("claude-9",)

    async def described(made: Anthropic, server: Server) -> Model | None:
        return await made.describe("claude-9")

    full = row | {"max_input_tokens": 300_000, "max_tokens": 64_000}
    assert use(described, Answer(body=full))[0] == Model(
        name="claude-9", provider="claude", window=300_000, reply=64_000, source="server"
    )
    assert use(described, Answer(body=row))[0] is None
