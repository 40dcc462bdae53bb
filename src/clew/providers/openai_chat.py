"""Models behind Chat Completions: OpenAI's own, and every server that speaks it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import cast

from clew.config.values import ProviderConfig
from clew.context.lawful import tool_name
from clew.providers.api import Body, Model, Reply, Request, StreamEvent
from clew.providers.errors import NotConfigured
from clew.providers.openai_client import Connection
from clew.providers.openai_describe import description, names_of
from clew.providers.openai_errors import malformed, refusal_of, told_in
from clew.providers.openai_fields import Json
from clew.providers.openai_stream import Answer

PATH = "/chat/completions"
RESERVED = ("model", "messages", "input", "instructions", "tools", "stream", "stream_options")
"""What settings may not say: it is made of the conversation."""
UNSEEN = "[image: this model takes none]"
"""In the place of an image, for a model without eyes."""


class OpenAIChat:
    """A Provider. `key` None: the server wants none."""

    def __init__(self, name: str, config: ProviderConfig, key: str | None) -> None:
        self.name = name
        self._connection = Connection(name, config, key)

    def render(self, request: Request) -> Body:
        """As Provider. Raises NotConfigured without what the server must have."""
        self._connection.check()
        check_settings(request, self.name)
        payload: Json = {
            "model": request.model.name,
            "messages": self._messages(request),
        }
        if request.tools and request.model.tools:
            payload["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool_name(tool.name),
                        "description": tool.description,
                        "parameters": tool.parameters,
                    },
                }
                for tool in request.tools
            ]
        payload |= {"stream": True, "stream_options": {"include_usage": True}}
        if (scope := self._connection.scope(request)) is not None:
            payload["prompt_cache_key"] = scope
        payload |= self._limited(request)
        return Body(self._connection.accepted(payload), headers=self._connection.headers(request))

    def _messages(self, request: Request) -> list[Json]:
        messages = request.context.chat(request.blob)
        return messages if request.model.images else [_unseen(message) for message in messages]

    def _limited(self, request: Request) -> Json:
        """The settings, and the room for the reply under the name that the server knows: OpenAI's
        models that think refuse the old one, and most others know no other."""
        settings = dict(request.settings)
        given = [settings.pop(name, None) for name in ("max_completion_tokens", "max_tokens")]
        limit: object = request.max_tokens or next((each for each in given if each), None)
        name = "max_completion_tokens" if self._connection.is_official else "max_tokens"
        return {**({} if limit is None else {name: limit}), **settings}

    async def stream(self, body: Body) -> AsyncIterator[StreamEvent]:
        """As Provider."""
        answer = Answer(str(body.payload["model"]))
        done = False
        async with aclosing(self._connection.events(PATH, body)) as chunks:
            async for chunk in chunks:
                done = done or not chunk
                for event in answer.add(chunk):
                    yield event
        if not answer.begun:
            raise malformed(self._connection.place, "is empty")
        yield self._checked(answer, done)

    async def complete(self, body: Body) -> Reply:
        """As Provider."""
        whole = await self._connection.answer(PATH, body)
        if whole.get("error"):  # OpenRouter: with status 200
            place = self._connection.place
            raise refusal_of(told_in(whole["error"], None), place, lambda: str(body.payload))
        answer = Answer(str(body.payload["model"]))
        for _ in answer.add(whole):
            pass
        if not answer.begun:
            raise malformed(self._connection.place, "has no choices")
        return self._checked(answer, done=True)

    def _checked(self, answer: Answer, done: bool) -> Reply:
        """The reply, if it is all there: a server, or what stands before it, may just stop."""
        if answer.finish is None and not done:
            raise malformed(self._connection.place, "was cut off")
        if answer.finish == "error":  # OpenRouter: the provider behind it failed
            raise malformed(self._connection.place, "ended in an error")
        return answer.reply()

    async def count(self, body: Body) -> int | None:
        """As Provider: this API has no way to say."""
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


def check_settings(request: Request, provider: str) -> None:
    """Raise NotConfigured for a setting that is not the model's to have."""
    for name in RESERVED:
        if name in request.settings:
            raise NotConfigured(
                f'the settings of [models."{request.model.shown}"] name {name!r}, which is made of '
                f"the conversation; take it out (`clew config edit`)",
                provider=provider,
            )


def _unseen(message: Json) -> Json:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    pieces = [
        {"type": "text", "text": UNSEEN} if piece.get("type") == "image_url" else piece
        for piece in cast(list[Json], content)
    ]
    return {**message, "content": pieces}
