"""Claude, through Anthropic's own SDK (the extra `anthropic`). The host tries again; the SDK never
does. Thinking goes back with its signature to the model that made it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing, contextmanager
from functools import cached_property
from typing import Any, cast
from urllib.parse import urlsplit

import anthropic
from anthropic.types import Message, RawMessageStreamEvent

from clew.config.values import ProviderConfig
from clew.providers.anthropic_answer import Answer
from clew.providers.anthropic_errors import FAILURES, Place, cut, error_of, too_long
from clew.providers.anthropic_marks import aside, marked
from clew.providers.api import Body, Model, Price, Reply, Request, StreamEvent
from clew.providers.errors import NotConfigured, ProviderError, ServerFailed

Json = dict[str, Any]
REPLY = 8_192
"""Tokens of a reply, of a model of which nobody knows more."""
CONNECT = 10.0
"""Seconds that a connection may take."""
LONGEST_USER = 256
"""Characters of metadata.user_id."""
CACHE_TTL = "cache_ttl"
"""A setting of clew's own: "1h" has the cache keep a request for an hour, not five minutes."""
_COUNTED = ("model", "messages", "system", "tools", "tool_choice", "thinking")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class AnthropicBody(Body, frozen=True):
    """The payload without its cache marks, which are set when it is sent (anthropic_marks.py).
    `beside`: blocks at its end that no message of the log holds."""

    beside: int = 0
    ttl: str | None = None
    price: Price | None = None


class Anthropic:
    """A Provider for the Messages API."""

    def __init__(self, name: str, config: ProviderConfig, key: str | None) -> None:
        self.name = name
        self._config, self._key = config, key.strip() if key else None
        self._place = Place(
            provider=name, key_env=config.key_env or "ANTHROPIC_API_KEY", timeout=config.timeout,
            hide=tuple(filter(None, (self._key, *config.headers.values()))),
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def render(self, request: Request) -> Body:
        """As the Messages API takes it."""
        settings = dict(request.settings)
        ttl = settings.pop(CACHE_TTL, None)
        payload: Json = {"model": request.model.name, "max_tokens": _most(request)}
        if request.context.prompt and request.context.prompt.strip():
            payload["system"] = [{"type": "text", "text": request.context.prompt}]
        if request.tools:
            payload["tools"] = [
                {"name": each.name, "description": each.description,
                 "input_schema": each.parameters}
                for each in request.tools
            ]  # fmt: skip
        behalf = request.attribution or request.affinity
        if behalf and self._config.affinity:
            payload["metadata"] = {"user_id": behalf[:LONGEST_USER]}
        payload |= {"messages": request.context.anthropic(request.blob)} | settings
        headers = self._headers(request.affinity or request.attribution)
        return AnthropicBody(
            payload, headers=headers, beside=aside(request.context.items), ttl=ttl,
            price=request.model.price,
        )  # fmt: skip

    async def stream(self, body: Body) -> AsyncGenerator[StreamEvent]:
        """Send, and give the pieces, a Reply last."""
        known = body if isinstance(body, AnthropicBody) else AnthropicBody(body.payload)
        answer = Answer(str(body.payload["model"]), known.price)
        payload = marked(body.payload, known.beside, known.ttl) | {"stream": True}
        with self._mapped(body.payload):
            stream = await self._client.post(
                "/v1/messages", body=payload, cast_to=Message, stream=True,
                stream_cls=anthropic.AsyncStream[RawMessageStreamEvent],
                options={"headers": body.headers},
            )  # fmt: skip
            async with stream:
                async for event in stream:
                    for piece in answer.take(event):
                        yield piece
        if not answer.complete:
            raise cut(self._place)
        if answer.stop == "model_context_window_exceeded" and not answer.parts:
            raise too_long(self._place)
        yield answer.reply()

    async def complete(self, body: Body) -> Reply:
        """The same, the last event alone: a long answer that is not streamed may be cut off."""
        async with aclosing(self.stream(body)) as events:
            async for event in events:
                if isinstance(event, Reply):
                    return event
        raise cut(self._place)

    async def count(self, body: Body) -> int | None:
        """Input tokens, as Anthropic counts them. Costs nothing."""
        wanted = {name: body.payload[name] for name in _COUNTED if name in body.payload}
        with self._mapped(body.payload):
            found = await self._client.post(
                "/v1/messages/count_tokens", body=wanted, cast_to=object,
                options={"headers": body.headers},
            )  # fmt: skip
        count = cast(Json, found).get("input_tokens") if isinstance(found, dict) else None
        return count if isinstance(count, int) else None

    async def models(self) -> tuple[str, ...]:
        """Those that the key may use, the newest first."""
        with self._mapped({}):
            page = await self._client.models.list(limit=100)
        return tuple(model.id for model in page.data)

    async def describe(self, model: str) -> Model | None:
        """What the server says of a model: the tokens that it takes, and those it gives."""
        with self._mapped({}):
            found: Any = await self._client.models.retrieve(model)
        window = getattr(found, "max_input_tokens", None)
        if not isinstance(window, int):
            return None
        able = getattr(getattr(found, "capabilities", None), "image_input", None)
        return Model(
            name=model, provider=self.name, window=window,
            reply=getattr(found, "max_tokens", None) or 0,
            images=bool(getattr(able, "supported", True)), source="server",
        )  # fmt: skip

    async def close(self) -> None:
        """Close connections."""
        if "_client" in self.__dict__:
            await self._client.close()

    # ------------------------------------------------------------------ the connection

    @cached_property
    def _client(self) -> anthropic.AsyncAnthropic:
        headers = {name.lower(): value for name, value in self._config.headers.items()}
        own = not headers.keys().isdisjoint(("x-api-key", "authorization"))
        if self._key is None and not own and self._config.base_url is None:
            raise NotConfigured(
                f"{self.name} has no key; run: export {self._place.key_env}=...",
                provider=self.name,
            )
        timeout = anthropic.Timeout(
            self._config.timeout, connect=min(CONNECT, self._config.timeout)
        )
        host = urlsplit(self._config.base_url or "").hostname
        local = (
            anthropic.DefaultAsyncHttpxClient(trust_env=False, timeout=timeout)
            if host in _LOOPBACK
            else None
        )
        return anthropic.AsyncAnthropic(
            api_key=self._key or "none", base_url=self._config.base_url, max_retries=0,
            timeout=timeout, default_headers=self._config.headers, http_client=local,
        )  # fmt: skip

    def _headers(self, scope: str | None) -> dict[str, str]:
        header = self._config.affinity_header
        return {header: scope} if header and scope and self._config.affinity else {}

    @contextmanager
    def _mapped(self, payload: Mapping[str, Any]) -> Generator[None]:
        """Errors of the SDK as ours. What they hold (the request, its headers) stays behind."""
        try:
            yield
        except ProviderError:
            raise
        except FAILURES as error:
            found = error_of(
                error, self._place, lambda: json.dumps(payload, ensure_ascii=False, default=str)
            )
        except (AttributeError, TypeError) as error:  # events that have not what they must
            found = ServerFailed(
                f"the answer of {self.name} is malformed ({type(error).__name__}). Try again.",
                provider=self.name,
            )
        else:
            return
        raise found from None


def _most(request: Request) -> int:
    """Tokens of the reply, which the API wants to know: what the context leaves free for it, so
    that it is the same in each request of a conversation; more than thinking may take."""
    model, thinking = request.model, request.settings.get("thinking")
    free = max(model.window - request.context.limit, 1_024)
    most = request.max_tokens or min(free, model.reply or REPLY)
    budget = cast(Json, thinking).get("budget_tokens", 0) if isinstance(thinking, dict) else 0
    return most if most > budget else most + budget
