"""What each failure of a server becomes, and what it tells people to do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from clew.config.values import ProviderConfig
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
    TryAgain,
)
from clew.providers.openai_chat import OpenAIChat
from clew.providers.openai_errors import Place, refusal_of, told_in
from clew.providers.openai_overflow import is_overflow
from clew.providers.openai_responses import OpenAIResponses
from provider_server import FAIL, Failure, ProviderServer
from provider_server.asking import asked, streamed

PLACE = Place(provider="test", url="http://host/v1")


@pytest.fixture(scope="module")
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server
        server.check()


def error(
    server: ProviderServer,
    failure: Failure,
    kind: type[Any] = OpenAIChat,
    plain: bool = False,
    **more: Any,
) -> ProviderError:
    """What a failure of the server is raised as."""
    server.script = [failure]
    config = ProviderConfig(base_url=server.base_url, key_env="MY_KEY", **more)
    made = kind("test", config, "sk-secret7890")

    async def run() -> None:
        try:
            body = made.render(asked())
            await (made.complete(body) if plain else streamed(made, body))
        finally:
            await made.close()

    with pytest.raises(ProviderError) as caught:
        asyncio.run(run())
    assert caught.value.provider == "test"
    assert "test" in str(caught.value)
    return caught.value


WANTED: dict[str, tuple[type[ProviderError], float | None, str]] = {
    "429": (RateLimited, 7.0, "Wait"),
    "429-ms": (RateLimited, 1.5, "Wait"),
    "429-bare": (RateLimited, None, "Wait"),
    "429-now": (RateLimited, 0.01, "Wait"),
    "429-text": (RateLimited, 62.5, "Wait"),
    "429-large": (Overflow, None, "clew compact"),
    "quota": (OutOfCredit, None, "/model"),
    "402": (OutOfCredit, None, "/model"),
    "500": (ServerFailed, None, "again"),
    "503": (ServerFailed, 3.0, "again"),
    "html": (ServerFailed, None, "again"),
    "401": (BadKey, None, "MY_KEY"),
    "403": (BadKey, None, "MY_KEY"),
    "404": (NoModel, None, "/model"),
    "404-page": (NotConfigured, None, "base_url"),
    "400": (BadRequest, None, "settings"),
    "400-cache-key": (BadRequest, None, "settings"),
} | {name: (Overflow, None, "clew compact") for name in FAIL if name.startswith("overflow")}


def test_every_failure_of_the_server_is_tried() -> None:
    assert FAIL.keys() == WANTED.keys()


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("kind", [OpenAIChat, OpenAIResponses])
@pytest.mark.parametrize("name", WANTED)
def test_each_failure(server: ProviderServer, name: str, kind: type[Any], plain: bool) -> None:
    """Its class says what helps, its text what to do; whatever the API, streamed or not."""
    wanted, after, remedy = WANTED[name]
    found = error(server, FAIL[name], kind, plain)
    assert type(found) is wanted
    assert found.status == FAIL[name].status
    assert found.retry_after == after
    assert remedy in str(found)
    assert found.retryable == isinstance(found, TryAgain)
    assert "<html>" not in str(found)
    assert "7890" not in str(found)


@pytest.mark.parametrize("plain", [False, True])
def test_an_error_whose_text_never_comes(server: ProviderServer, plain: bool) -> None:
    failure = Failure(500, FAIL["500"].body, {"content-length": "99999"})
    found = error(server, failure, plain=plain, timeout=0.2)
    assert type(found) is TimedOut


@pytest.mark.parametrize(
    ("headers", "after"),
    [
        ({"retry-after": "0"}, 0.0), ({"retry-after": "-3"}, 0.0), ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "soon"}, None), ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None), ({"retry-after-ms": "x", "retry-after": "2"}, 2.0),
        ({"retry-after": "Mon, 30 Nov 2026 00:00:30 GMT",
          "date": "Mon, 30 Nov 2026 00:00:00 GMT"}, 30.0),
        ({"retry-after": "Mon, 30 Nov 2026 00:00:30 GMT"}, None),
    ],
)  # fmt: skip
def test_retry_after(server: ProviderServer, headers: dict[str, str], after: float | None) -> None:
    """A date is compared with the server's own clock."""
    assert error(server, Failure(429, FAIL["429"].body, headers)).retry_after == after


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ({"message": "Please try again in 20s."}, 20.0),
        ({"message": "Please try again in 450ms."}, 0.45),
        ({"message": "Try again in 2h3m"}, 7380.0),
        ({"message": "please retry after 6 seconds"}, 6.0),
        ({"message": "quota", "details": [{"retryDelay": "32s"}]}, 32.0),
        ({"message": "Try again in a while"}, None),
    ],
)
def test_a_delay_in_words(body: dict[str, Any], after: float | None) -> None:
    found = refusal_of(told_in(body, 429), PLACE, str)
    assert isinstance(found, RateLimited)
    assert found.retry_after == after


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 9001",
        "Your input exceeds the context window of this model.",
        "This endpoint's maximum context length is 8192 tokens. However, you requested about 9001",
        "Please reduce the length of the messages or completion.",
        "The decoder prompt (length 9001) is longer than the maximum model length of 8192.",
        "request (9001 tokens) exceeds the available context size (8192 tokens), try increasing it",
        "The number of tokens to keep from the initial prompt is greater than the context length",
        "the input length exceeds the context length",
        "prompt exceeds maximum context length",
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000",
        "prompt is too long: 213462 tokens > 200000 maximum",
        "Input is too long for requested model.",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "Prompt contains 40960 tokens ... too large for model with 32768 maximum context length",
        "prompt token count of 128001 exceeds the limit of 128000",
        "Invalid request: Your request exceeded model token limit: 8192",
        "invalid params, context window exceeds limit",
        "Range of input length should be [1, 98304]",
    ],
)
def test_an_overflow_in_the_words_of_each_server(text: str) -> None:
    assert is_overflow(text)
    assert isinstance(refusal_of(told_in({"message": text}, 400), PLACE, str), Overflow)


@pytest.mark.parametrize(
    "text",
    ["max_tokens is too large: 99999", "Rate limit reached: try again in 20s", "",
     "Unknown parameter: 'context_length'", "Too many requests"],
)  # fmt: skip
def test_what_is_no_overflow(text: str) -> None:
    assert not is_overflow(text)


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({"message": "nope is not a valid model ID", "code": 400}, 400, NoModel),
        ({"message": 'model "nope" not found, try pulling it first'}, 404, NoModel),
        ({"detail": "Not Found"}, 404, NotConfigured),
        ({"message": "API key not valid. Please pass a valid API key."}, 400, BadKey),
        ({"message": "Your credit balance is too low"}, 400, OutOfCredit),
        ({"message": "Conflict"}, 409, ServerFailed),
        ({"message": "Overloaded", "type": "overloaded_error"}, 529, ServerFailed),
        ({"message": "Provider returned error", "code": 502}, None, ServerFailed),
        ({"message": "slow down", "code": "rate_limit_exceeded"}, None, RateLimited),
        ({"message": "slow down", "code": 429}, None, RateLimited),
        ({"message": "too long", "code": "context_length_exceeded"}, None, Overflow),
        ("something", None, ServerFailed), (None, 500, ServerFailed), ([1], 422, BadRequest),
        ([{"error": {"message": "input token count (9) exceeds the maximum", "code": 400}}], 400,
         Overflow),
        ([{"error": {"message": "You exceeded your current quota, check your plan", "code": 429,
                     "status": "RESOURCE_EXHAUSTED"}}], 429, RateLimited),
        ({"message": [{"loc": ["body"], "msg": "Field required"}]}, 422, BadRequest),
    ],
)  # fmt: skip
def test_errors_of_other_forms(body: Any, status: int | None, kind: type[ProviderError]) -> None:
    """A status in a stream stands in the code, as OpenRouter has it."""
    assert type(refusal_of(told_in(body, status), PLACE, str)) is kind


def test_a_key_as_servers_repeat_it() -> None:
    told = told_in({"message": "Incorrect key: org-x****************7890, or so"}, 401)
    assert "Incorrect key: [key] or so" in str(refusal_of(told, PLACE, str))


def test_words_that_repeat_the_request_are_left_out() -> None:
    said = "the launch code is 0000-1111"
    told = told_in({"message": f"bad input: {said!r} \x1b[31m at 3"}, 400)
    text = str(refusal_of(told, PLACE, lambda: f'{{"content": "{said}"}}'))
    assert "0000" not in text
    assert "bad input" in text
    assert "\x1b" not in text
