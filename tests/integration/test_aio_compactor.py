"""Compaction from asyncio: awaited, and stopped with its task."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

import clew
import clew.aio
from clew.testing.summarizer import Gate, ScriptedSummarizer

BUDGET = clew.Budget(window=8_000)


def talk() -> list[clew.Draft]:
    return [
        draft for n in range(120) for draft in (
            clew.user(f"What does part {n} do, and who calls it from outside?"),
            clew.assistant(
                f"Part {n} reads what the part before it wrote, adds a line of its own and "
                "passes it on. Nothing calls it from outside; it may move when we like."
            ),
        )
    ]  # fmt: skip


def run(folder: Path, body: Any) -> None:
    async def main() -> None:
        async with clew.aio.open(folder / "a.db") as store:
            conv = await store.profile("me").create()
            await conv.append(talk())
            await body(conv)

    asyncio.run(main())


def test_a_context_fits(fast_dir: Path) -> None:
    async def body(conv: clew.aio.AsyncConversation) -> None:
        engine = clew.aio.AsyncCompactor(clew.Compactor(BUDGET))
        context = await engine.context(conv)
        assert context.generation == 1
        assert context.tokens <= context.limit
        assert (await engine.peek(conv)).tokens == context.tokens
        picture = clew.Image(data=b"\x89PNG" + bytes(40), width=8, height=8)
        await conv.append([clew.Draft(role=clew.Role.USER, parts=(clew.Text("this"), picture))])
        context = await engine.peek(conv)
        for rendered in (
            await engine.chat(conv, context), await engine.responses(conv, context),
            await engine.anthropic(conv, context),
        ):  # fmt: skip
            assert "base64" in str(rendered[-1])

    run(fast_dir, body)


def test_a_person_compacts_looks_and_undoes(fast_dir: Path) -> None:
    async def body(conv: clew.aio.AsyncConversation) -> None:
        engine = clew.aio.AsyncCompactor(clew.Compactor(BUDGET))
        planned = await engine.plan(conv)
        done = await engine.compact(conv)
        assert done.compaction is not None
        assert done.compaction.body == planned.draft.body
        assert (await engine.cancel(conv)) == []
        assert (await engine.undo(conv)).undone_at is not None

    run(fast_dir, body)


def test_cancelling_the_task_stops_the_compaction(fast_dir: Path) -> None:
    """S17.1: the loop goes on meanwhile, and nothing was changed."""

    async def body(conv: clew.aio.AsyncConversation) -> None:
        gate = Gate()
        model = ScriptedSummarizer(gate)
        engine = clew.aio.AsyncCompactor(clew.Compactor(BUDGET, summarizer=model))
        task = asyncio.create_task(_within(engine.compact(conv, target=3_000)))
        assert await asyncio.to_thread(gate.asked.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.open.set()
        assert [row.state for row in await conv.attempts()] == ["cancelled"]
        assert await conv.compactions() == ()

    run(fast_dir, body)


async def _within(work: Coroutine[Any, Any, Any]) -> Any:
    return await asyncio.wait_for(work, 30)
