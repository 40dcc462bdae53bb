"""Models behind the Responses API. Nothing is kept by the server (`store` is false): the log is
here, and each request has all of it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import cast

from clew.config.values import ProviderConfig
from clew.context.lawful import tool_name
from clew.providers.api import Body, Model, Reply, Request, StreamEvent
from clew.providers.openai_chat import UNSEEN, check_settings
from clew.providers.openai_client import Connection
from clew.providers.openai_describe import description, names_of
from clew.providers.openai_errors import malformed, refusal_of, told_in
from clew.providers.openai_events import Events, reply_of
from clew.providers.openai_fields import Json

PATH = "/responses"
ENCRYPTED = "reasoning.encrypted_content"
_NO_THINKING = re.compile(r"(?:.*/)?(?:gpt-[34]|chatgpt|.*-chat\b)")
"""Models that have no thinking to give back."""


class OpenAIResponses:
    """A Provider. `key` None: the server wants none."""

    def __init__(self, name: str, config: ProviderConfig, key: str | None) -> None:
        self.name = name
        self._connection = Connection(name, config, key)

    def render(self, request: Request) -> Body:
        """As Provider. Raises NotConfigured without what the server must have."""
        self._connection.check()
        check_settings(request, self.name)
        payload: Json = {"model": request.model.name}
        if request.context.prompt is not None:
            payload["instructions"] = request.context.prompt
        items = request.context.responses(request.blob)
        payload["input"] = items if request.model.images else [_unseen(item) for item in items]
        if request.tools and request.model.tools:
            payload["tools"] = [
                {
                    "type": "function",
                    "name": tool_name(tool.name),
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": False,
                }
                for tool in request.tools
            ]
        payload |= {"store": False, "stream": True}
        if not _NO_THINKING.match(request.model.name):
            payload["include"] = [ENCRYPTED]
        if (scope := self._connection.scope(request)) is not None:
            payload["prompt_cache_key"] = scope
        payload |= settings_of(request)
        return Body(self._connection.accepted(payload), "input", self._connection.headers(request))

    async def stream(self, body: Body) -> AsyncIterator[StreamEvent]:
        """As Provider."""
        events = Events()
        async with aclosing(self._connection.events(PATH, body)) as found:
            async for event in found:
                for piece in events.add(event):
                    yield piece
                if events.error is not None:
                    self._refuse(events.error, body)
        if events.last is None:
            what = "was cut off" if events.items else "is empty, or was cut off"
            raise malformed(self._connection.place, what)
        yield self._reply(events.response(), body)

    async def complete(self, body: Body) -> Reply:
        """As Provider."""
        whole = await self._connection.answer(PATH, body)
        if not whole.get("error") and not isinstance(whole.get("output"), list):
            raise malformed(self._connection.place, "has no output")
        return self._reply(whole, body)

    def _reply(self, response: Json, body: Body) -> Reply:
        if response.get("error"):
            self._refuse(response["error"], body)
        if response.get("status") in ("failed", "cancelled"):
            raise malformed(self._connection.place, f"has the status {response['status']}")
        if response.get("status") == "completed" and not response.get("output"):
            raise malformed(self._connection.place, "is empty")
        return reply_of(response, str(body.payload["model"]))

    def _refuse(self, error: object, body: Body) -> None:
        place = self._connection.place
        raise refusal_of(told_in(error, None), place, lambda: str(body.payload))

    async def count(self, body: Body) -> int | None:
        """As Provider: not asked for; the counts of the context are near enough."""
        return None

    async def models(self) -> tuple[str, ...]:
        """As Provider."""
        return await names_of(self._connection)

    async def describe(self, model: str) -> Model | None:
        """As Provider."""
        return await description(self._connection, self.name, model)

    async def close(self) -> None:
        """As Provider."""
        await self._connection.close()


def settings_of(request: Request) -> Json:
    """The settings in the words of this API: those of Chat Completions are taken as well."""
    settings = dict(request.settings)
    names = ("max_output_tokens", "max_completion_tokens", "max_tokens")
    given = [settings.pop(name, None) for name in names]
    limit: object = request.max_tokens or next((each for each in given if each), None)
    if limit is not None:
        settings["max_output_tokens"] = limit
    for old, group, new in (("reasoning_effort", "reasoning", "effort"),
                            ("verbosity", "text", "verbosity")):  # fmt: skip
        if (value := settings.pop(old, None)) is not None:
            settings[group] = {new: value, **(settings.get(group) or {})}
    return settings


def _unseen(item: Json) -> Json:
    """An item without images, in a message or in the output of a tool."""
    for name in ("content", "output"):
        if isinstance(item.get(name), list):
            pieces = [
                {"type": "input_text", "text": UNSEEN} if p.get("type") == "input_image" else p
                for p in cast(list[Json], item[name])
            ]
            item = {**item, name: pieces}
    return item
