"""A provider as the summariser of a compaction."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import clew
import clew.aio
from clew.compaction.summarize import SummaryRequest, SummaryStalled, SummaryStopped
from clew.context.budget import Budget
from clew.host.summarizer import ModelSummarizer
from clew.providers.api import Model, Price, Request, ToolSpec
from clew.providers.errors import ServerFailed
from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.handles import blocking
from clew.testing.provider import Hold, ScriptedProvider

MODEL = Model(name="m", provider="scripted", window=8_000, price=Price(input=1.0, output=1.0))
TOOLS = (ToolSpec("look", "Look at it.", {"type": "object", "properties": {}}),)
BUDGET = Budget(window=8_000)
ANSWER = json.dumps({"narrative": "They spoke of bread."})


@asynccontextmanager
async def talk(folder: Path, turns: int) -> AsyncGenerator[AsyncConversation]:
    async with clew.aio.open(folder / "store.db") as store:
        conv = await store.profile("me").create(prompt="Be brief.")
        for n in range(turns):
            await conv.append([clew.user(f"question {n}"), clew.assistant(f"bread {n} " * 60)])
        yield conv


def asked(conv: AsyncConversation) -> Request:
    """What the host would ask next."""
    mine = blocking(conv)
    context = clew.Compactor(BUDGET, model="m").peek(mine)
    return Request(model=MODEL, context=context, blob=mine.blob, tools=TOOLS, affinity="scope")


def summarizer(provider: ScriptedProvider, conv: AsyncConversation) -> ModelSummarizer:
    loop = asyncio.get_running_loop()
    return ModelSummarizer(provider, MODEL, loop, lambda: asked(conv))


def request(stop: threading.Event | None = None, patience: float = 60.0) -> SummaryRequest:
    return SummaryRequest(
        messages=[{"role": "user", "content": "Sum it up."}], tools=None, max_tokens=99,
        patience=patience, cancelled=(stop or threading.Event()).is_set,
    )  # fmt: skip


def test_a_compaction_asks_with_the_conversation_s_own_beginning(fast_dir: Path) -> None:
    """S45: all but the instruction is what the next request would be; the provider's cache holds
    it."""

    async def test() -> None:
        provider = ScriptedProvider(ANSWER)
        async with talk(fast_dir, 20) as conv:
            own = provider.render(await asyncio.to_thread(asked, conv)).payload
            engine = clew.Compactor(BUDGET, model="m", summarizer=summarizer(provider, conv))
            outcome = await clew.aio.AsyncCompactor(engine).compact(conv)
            assert outcome.state == "committed"
            assert "They spoke of bread." in str(await conv.context())
            (call,) = await conv.calls()
        assert (call.purpose, call.model, call.state) == ("summary", "m", "done")
        assert call.cost
        (body,) = provider.requests
        sent = dict(body.payload)
        messages: list[dict[str, Any]] = sent.pop("messages")
        assert messages[:-1] == own.pop("messages")
        assert "Write what helps you" in messages[-1]["content"]
        assert sent.pop("max_tokens") > 0
        assert sent == own

    asyncio.run(test())


def test_the_answer_comes_back_with_its_cost(fast_dir: Path) -> None:
    async def test() -> None:
        async with talk(fast_dir, 1) as conv:
            one = summarizer(ScriptedProvider("done"), conv)
            assert one.model == "m"
            reply = await asyncio.to_thread(one, request())
        assert (reply.text, reply.finish) == ("done", "stop")
        assert reply.usage.output == 1
        assert reply.cost == pytest.approx((reply.usage.input + 1) / 1e6)

    asyncio.run(test())


def test_another_model_is_asked_in_its_own_way(fast_dir: Path) -> None:
    """Settings are those of the conversation's model, and it may take no tools."""

    async def test() -> None:
        provider = ScriptedProvider("done")
        other = Model(name="other", provider="scripted", window=8_000, tools=False)
        async with talk(fast_dir, 1) as conv:
            own = replace(await asyncio.to_thread(asked, conv), settings={"effort": "high"})
            for model in (MODEL, other):
                loop = asyncio.get_running_loop()
                one = ModelSummarizer(provider, model, loop, lambda: own)
                await asyncio.to_thread(one, request())
        same, another = (body.payload for body in provider.requests)
        assert (same["model"], same["effort"], len(same["tools"])) == ("m", "high", 1)
        assert another["model"] == "other"
        assert not {"effort", "tools"} & another.keys()
        assert another["messages"] == same["messages"]

    asyncio.run(test())


def test_an_error_of_the_provider_passes(fast_dir: Path) -> None:
    async def test() -> None:
        error = ServerFailed("it broke", provider="scripted")
        async with talk(fast_dir, 1) as conv:
            with pytest.raises(ServerFailed):
                await asyncio.to_thread(summarizer(ScriptedProvider(error), conv), request())
            timeout = ScriptedProvider(TimeoutError("theirs"))
            with pytest.raises(TimeoutError, match="theirs"):
                await asyncio.to_thread(summarizer(timeout, conv), request())

    asyncio.run(test())


def test_s17_a_stop_ends_the_call(fast_dir: Path) -> None:
    async def test() -> None:
        hold, stop = Hold("so far"), threading.Event()
        async with talk(fast_dir, 1) as conv:
            one = summarizer(ScriptedProvider(hold), conv)
            work = asyncio.create_task(asyncio.to_thread(one, request(stop)))
            await hold.reached.come()
            stop.set()
            with pytest.raises(SummaryStopped):
                await work
            await hold.ended.come()

    asyncio.run(test())


def test_patience_ends_the_call(fast_dir: Path) -> None:
    async def test() -> None:
        hold = Hold("so far")
        async with talk(fast_dir, 1) as conv:
            one = summarizer(ScriptedProvider(hold), conv)
            with pytest.raises(SummaryStalled):
                await asyncio.to_thread(one, request(patience=0.2))

    asyncio.run(test())


def test_a_host_that_is_closed_is_not_asked(fast_dir: Path) -> None:
    async def test() -> ModelSummarizer:
        async with talk(fast_dir, 1) as conv:
            found = asked(conv)
        return ModelSummarizer(ScriptedProvider(), MODEL, asyncio.get_running_loop(), lambda: found)

    one = asyncio.run(test())
    with pytest.raises(clew.ClewError, match="closed"):
        one(request())
