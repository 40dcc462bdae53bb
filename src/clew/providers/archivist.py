"""The provider that is there when nothing else is: no model, no key, no network. It answers the
newest message of a person from the store, by quoting what was said about it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from clew.config.values import ProviderConfig
from clew.domain.messages import Message, Role
from clew.domain.parts import Text
from clew.domain.turns import Usage
from clew.providers.api import Body, Model, Price, Reply, Request, StreamEvent
from clew.providers.archivist_answer import SIGN, answer
from clew.providers.errors import BadRequest
from clew.providers.pieces import pieces

NAME = "archivist"
WINDOW = 1_000_000
"""Tokens; it reads the store, not its context, so that it never asks for a compaction."""


class Archivist:
    """Looks things up. Deterministic: the same question of the same store has the same answer."""

    def __init__(self, name: str, config: ProviderConfig, key: str | None) -> None:
        self.name = name

    def render(self, request: Request) -> Body:
        """The question; where it is answered from travels beside it."""
        asked = [{"role": "user", "content": question_of(request)}]
        return Body({"model": request.model.name, "messages": asked}, request=request)

    async def stream(self, body: Body) -> AsyncIterator[StreamEvent]:
        """The answer, in pieces of a word."""
        for event in pieces(await self.complete(body)):
            await asyncio.sleep(0)  # whoever stops it is heard between two words
            yield event

    async def complete(self, body: Body) -> Reply:
        """The answer. Reads the store in a thread."""
        request = body.request
        if request is None:
            raise BadRequest(
                "the archivist answers what it has rendered itself; ask through the host",
                provider=self.name,
            )
        text = await asyncio.to_thread(_answered, request)
        return Reply(parts=(Text(text),), stop="stop", usage=Usage(), model=NAME, cost=0.0)

    async def count(self, body: Body) -> int | None:
        """It has no tokens."""
        return 0

    async def models(self) -> tuple[str, ...]:
        """Itself."""
        return (NAME,)

    async def describe(self, model: str) -> Model | None:
        """Itself."""
        return Model(
            name=model, provider=self.name, window=WINDOW, price=Price(input=0, output=0),
            tools=False, images=False, source="server",
        )  # fmt: skip

    async def close(self) -> None:
        """Nothing is open."""


def question_of(request: Request) -> str:
    """The words of the newest message of a person, without what stands beside them."""
    return "\n".join(message.text for message in _asking(request)).strip()


def _asking(request: Request) -> tuple[Message, ...]:
    for item in reversed(request.context.items):
        if item.entry.role is Role.USER and item.entry.messages:
            return item.entry.messages
    return ()


def _answered(request: Request) -> str:
    asked = {message.seq for message in _asking(request)}
    return answer(
        question_of(request), asked, request.reader, request.profile, first=_is_first(request)
    )


def _is_first(request: Request) -> bool:
    """Whether it has not spoken here yet, as far as its context goes."""
    return not any(
        item.entry.role is Role.ASSISTANT
        and any(isinstance(part, Text) and part.text.startswith(SIGN) for part in item.entry.parts)
        for item in request.context.items
    )
