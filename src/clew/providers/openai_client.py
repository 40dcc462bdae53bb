"""The connection to one server: the official client, what every request carries, and its errors.

The host tries again, so the client never does. The one exception: a server that refuses a field
which it need not know (`OPTIONAL`) is asked once more without it, and the field is left out from
then on.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, cast
from urllib.parse import urlsplit

import openai

from clew.config.secrets import variables
from clew.config.values import ProviderConfig
from clew.providers.api import Body, Request
from clew.providers.errors import NotConfigured, ProviderError
from clew.providers.openai_errors import FAILURES, Place, error_of, malformed, told_by
from clew.providers.openai_fields import Json

OFFICIAL = "api.openai.com"
OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "prompt_cache_key": ("prompt_cache_key",),
    "stream_options": ("stream_options",),
    "include": ("reasoning.encrypted_content", "encrypted content is not supported"),
    "reasoning_content": ("reasoning_content",),
    "max_tokens": ("use 'max_completion_tokens'", "max_completion_tokens instead"),
}
"""Fields that a request can do without, or under another name, and words by which a server refuses
them. `reasoning_content` stands in messages."""
STRICT = ("api.groq.com", "api.cerebras.ai", "generativelanguage.googleapis.com")
"""Hosts that are known to refuse prompt_cache_key, so that no process has to learn it (reports of
2025 and 2026: zed-industries/zed#36215, liliMozi/openhanako#2494)."""
LONGEST_SCOPE = 64
"""Characters of a prompt_cache_key."""
CONNECT = 10.0
"""Seconds that a connection may take."""
_IN_HEADER = re.compile(r"[\x21-\x7e]+")


class Events(openai.AsyncStream[object]):
    """The events of a stream, as they come; knows whether the server said that it was all."""

    done = False

    async def _iter_events(self) -> AsyncIterator[Any]:
        async for event in super()._iter_events():
            self.done = self.done or event.data.startswith("[DONE]")
            yield event


class Connection:
    """One configured server. `refused`: optional fields that it does not take, as learned."""

    def __init__(self, name: str, config: ProviderConfig, key: str | None) -> None:
        self._name, self._config = name, config
        self._key = key.strip() if key else None
        base = config.base_url or os.environ.get("OPENAI_BASE_URL") or f"https://{OFFICIAL}/v1"
        self.url = base.rstrip("/")
        host = _host(self.url)
        self.is_official = host == OFFICIAL or host.endswith((".openai.com", ".openai.azure.com"))
        self.is_loopback = _is_loopback(host)
        known = {"reasoning_content"} if self.is_official else set[str]()
        self.refused = frozenset(known | ({"prompt_cache_key"} if host in STRICT else set()))
        self.place = Place(
            provider=name, url=_without_secrets(self.url),
            variable=next(iter(variables(name, config)), None), timeout=config.timeout,
            hide=tuple(v for v in (self._key, *config.headers.values()) if v and len(v) > 5),
        )  # fmt: skip

    def check(self) -> None:
        """Raise NotConfigured for what no request could be sent with."""
        if not _host(self.url):
            self._missing("its base_url is no address; give one like http://host/v1")
        if self._key is not None and not _IN_HEADER.fullmatch(self._key):
            self._missing(f"its key has characters that no key has; to give another, "
                          f"{self.place.key}")  # fmt: skip
        if self._key is None and self.is_official and not self._has_authorization:
            self._missing(f"it has no key; {self.place.key}")

    def _missing(self, what: str) -> None:
        raise NotConfigured(f"provider {self._name} cannot be used: {what}.", provider=self._name)

    @property
    def _has_authorization(self) -> bool:
        names = {name.lower() for name in self._config.headers}
        return not names.isdisjoint(("authorization", "api-key"))

    # ------------------------------------------------------------------ what requests carry

    def scope(self, request: Request) -> str | None:
        """The scope of the prompt cache: the conversation's own, or that of the one on whose
        behalf it was made. As no server can mistake it: short, and of plain characters."""
        scope = request.affinity if request.affinity is not None else request.attribution
        if not scope or not self._config.affinity:
            return None
        plain = len(scope) <= LONGEST_SCOPE and _IN_HEADER.fullmatch(scope)
        return scope if plain else hashlib.sha256(scope.encode("utf-8", "replace")).hexdigest()

    def headers(self, request: Request) -> dict[str, str]:
        """Headers of this request alone."""
        name, scope = self._config.affinity_header, self.scope(request)
        return {} if name is None or scope is None else {name: scope}

    def accepted(self, payload: Json) -> Json:
        """The payload without what the server refused before."""
        return payload if not self.refused else _without(payload, self.refused)

    # ------------------------------------------------------------------ asking

    async def answer(self, path: str, body: Body) -> Json:
        """The answer to a request that is not streamed."""
        payload = {k: v for k, v in body.payload.items() if k not in ("stream", "stream_options")}
        with self._mapped(payload):
            found = await self._post(path, payload, body.headers, stream=False)
        if not isinstance(found, dict):
            raise malformed(self.place, "is no JSON object")
        return cast(Json, found)

    async def events(self, path: str, body: Body) -> AsyncGenerator[Json]:
        """The events of a streamed answer; an empty one where the server says that it is done.
        Closing the iterator ends the request."""
        with self._mapped(body.payload):
            stream = cast(Events, await self._post(path, body.payload, body.headers, stream=True))
            kind = stream.response.headers.get("content-type", "")
            try:
                if kind.startswith("text/html"):
                    raise malformed(self.place, "is a web page")
                async for event in stream:
                    if not isinstance(event, dict):
                        raise malformed(self.place, "has a piece that is no object")
                    yield cast(Json, event)
                if stream.done:
                    yield {}
            finally:
                await stream.close()

    async def get(self, path: str) -> object:
        """What the server says at a path of the API, or at an address of its own."""
        with self._mapped({}):
            return await self._client.get(path, cast_to=object, options=self._options({}))

    async def ask(self, url: str, payload: Json | None = None) -> object:
        """The same of what it may not know: None when it does not answer."""
        options: Any = {**self._options({}), "timeout": CONNECT}
        try:
            if payload is None:
                return await self._client.get(url, cast_to=object, options=options)
            return await self._client.post(url, cast_to=object, body=payload, options=options)
        except (*FAILURES, ValueError):
            return None

    async def close(self) -> None:
        """Close the connections, if there are any."""
        if "_client" in self.__dict__:
            await self._client.close()

    async def _post(
        self, path: str, payload: Json, headers: Mapping[str, str], *, stream: bool
    ) -> object:
        tried = self.refused
        while True:
            sent = _without(payload, tried)
            try:
                return await self._client.post(
                    path, cast_to=object, body=sent, options=self._options(headers),
                    stream=cast(Any, stream), stream_cls=Events,
                )  # fmt: skip
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                new = _refused(sent, error) - tried
                if not new:
                    raise
                tried = self.refused = tried | new

    def _options(self, headers: Mapping[str, str]) -> Any:
        return {"headers": {**self._omitted, **headers}}

    @cached_property
    def _omitted(self) -> dict[str, Any]:
        """Headers that the client would take from the environment, and that are not for this
        server: the variables OPENAI_* are about OpenAI."""
        names: set[str] = set()
        if not self.is_official:
            names |= {"openai-organization", "openai-project"}
            lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines()
            names |= {line.partition(":")[0].strip().lower() for line in lines if ":" in line}
        names.discard("authorization")
        if self._key is None:
            names.add("authorization")
        own = {name.lower() for name in self._config.headers}
        return {name: openai.Omit() for name in names - own}

    @cached_property
    def _client(self) -> openai.AsyncOpenAI:
        self.check()
        seconds = self._config.timeout
        timeout = openai.Timeout(seconds, connect=min(CONNECT, seconds))
        given: dict[str, str] = {}
        if self._key is not None and not self._has_authorization:
            given = {"Authorization": f"Bearer {self._key}"}  # before one of the environment
        return openai.AsyncOpenAI(
            api_key=self._key or "none", base_url=self.url, max_retries=0, timeout=timeout,
            default_headers={**given, **self._config.headers}, http_client=self._local(timeout),
        )  # fmt: skip

    def _local(self, timeout: openai.Timeout) -> Any:
        """What reaches this machine: past any proxy, and without reading certificates."""
        if not self.is_loopback:
            return None
        secured = self.url.startswith("https:")
        return openai.DefaultAsyncHttpxClient(
            trust_env=False, timeout=timeout, verify=secured, follow_redirects=False
        )

    @contextmanager
    def _mapped(self, payload: Json) -> Generator[None]:
        """Errors of the client as ours. What they hold (the request, its headers) stays behind."""
        try:
            yield
        except ProviderError:
            raise
        except FAILURES as error:
            found = error_of(error, self.place, lambda: json.dumps(payload, ensure_ascii=False))
        except UnicodeEncodeError:
            found = NotConfigured(
                f"the request to {self._name} has text that is no Unicode, in a prompt, a tool or "
                f"a setting; take lone surrogates out of it.",
                provider=self._name,
            )
        except ValueError:  # of reading JSON, or UTF-8
            found = malformed(self.place, "is malformed")
        else:
            return
        raise found from None


def _refused(payload: Json, error: openai.APIStatusError) -> frozenset[str]:
    """The optional fields of a payload that an error names."""
    text = told_by(error).text.lower()
    text += json.dumps(error.body, default=str).lower()
    return frozenset(
        name
        for name, words in OPTIONAL.items()
        if _has(payload, name) and any(word in text for word in words)
    )


def _has(payload: Json, name: str) -> bool:
    if name != "reasoning_content":
        return name in payload
    return any(name in message for message in payload.get("messages", ()))


def _without(payload: Json, names: frozenset[str]) -> Json:
    if not names:
        return payload
    kept = {name: value for name, value in payload.items() if name not in names}
    if "reasoning_content" in names and "messages" in kept:
        kept["messages"] = [
            {name: value for name, value in message.items() if name != "reasoning_content"}
            for message in kept["messages"]
        ]
    if "max_tokens" in names and "max_tokens" in payload:
        kept["max_completion_tokens"] = payload["max_tokens"]
    return kept


def _host(url: str) -> str:
    """The host of an address; empty when it is none."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and (parts.port is None or parts.port > 0)
    except ValueError:
        return ""
    return (parts.hostname or "") if usable else ""


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _without_secrets(url: str) -> str:
    """An address as an error may show it: no user, password or query."""
    if not _host(url):
        return "no address"
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
