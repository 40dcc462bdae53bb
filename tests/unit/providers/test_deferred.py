"""A provider that is loaded when it is first used is the one that it stands for."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from typing import Any

import pytest

from clew.config.values import ProviderConfig
from clew.domain.parts import Text
from clew.providers.deferred import Deferred, Maker
from clew.providers.errors import NotConfigured
from clew.testing import Hold, ScriptedProvider
from provider_server.asking import asked, streamed

made: list[Made] = []


class Made(ScriptedProvider):
    """As providers are made; notes in which thread."""

    def __init__(self, name: str, config: ProviderConfig, key: str | None) -> None:
        self.hold = Hold("Once ", then="more.")
        super().__init__("Yes.", self.hold, name=name)
        self.thread = threading.current_thread()
        assert (config.timeout, key) == (5.0, "k")
        made.append(self)


@pytest.fixture
def deferred() -> Deferred:
    made.clear()
    return Deferred(Maker(__name__, "Made"), "mine", ProviderConfig(timeout=5.0), "k")


def test_it_is_made_once_and_not_in_the_loop(deferred: Deferred) -> None:
    async def run() -> None:
        assert await deferred.models() == ("scripted",)
        body = await asyncio.to_thread(deferred.render, asked())
        _, reply = await streamed(deferred, body)
        assert reply.parts == (Text("Yes."),)
        assert await deferred.count(body) == 9
        assert await deferred.describe("scripted") == made[0].model
        await deferred.close()

    asyncio.run(run())
    [one] = made
    assert one.thread is not threading.main_thread()
    assert (one.name, one.closed) == ("mine", True)


def test_closing_a_stream_closes_the_one_behind_it(deferred: Deferred) -> None:
    async def run() -> None:
        body = deferred.render(asked())
        await deferred.complete(body)
        stream: Any = deferred.stream(body)
        async with aclosing(stream):
            await anext(stream)
        assert made[0].open == 0
        assert made[0].hold.ended.is_set()

    asyncio.run(run())


def test_one_that_was_never_used_is_not_made_to_be_closed(deferred: Deferred) -> None:
    asyncio.run(deferred.close())
    assert made == []


def test_what_is_not_installed_is_said() -> None:
    maker = Maker("clew.nowhere", "Nothing", "surely_not_installed", "extra")
    nothing = Deferred(maker, "mine", ProviderConfig(), None)
    with pytest.raises(NotConfigured, match=r"pip install 'clew\[extra\]'"):
        nothing.render(asked())
