"""Side work: nothing waits for it, nothing fails with it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import clew
import clew.aio
from clew.host.background import KEPT, MOST, SideFailure, SideWork
from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.reader import AsyncConversationReader


async def fail() -> None:
    raise ValueError("what was said")


def test_one_of_a_name_runs_at_once() -> None:
    async def test() -> None:
        side, gate, done = SideWork(), asyncio.Event(), list[str]()

        async def work(name: str) -> None:
            await gate.wait()
            done.append(name)

        assert side.start("title c1", work("first"))
        assert not side.start("title c1", work("second"))
        assert side.start("title c2", work("third"))
        assert side.running == ("title c1", "title c2")
        gate.set()
        await side.wait()
        assert sorted(done) == ["first", "third"]
        assert side.running == ()
        assert side.start("title c1", work("again"))
        await side.wait()

    asyncio.run(test())


def test_there_are_only_so_many() -> None:
    async def test() -> None:
        side = SideWork()
        begun = [side.start(str(n), asyncio.sleep(3600)) for n in range(MOST + 1)]
        assert begun == [True] * MOST + [False]
        await side.close(0)
        assert side.running == ()

    asyncio.run(test())


def test_a_failure_is_kept_and_told_without_its_text() -> None:
    async def test() -> None:
        told: list[SideFailure] = []
        side = SideWork(told.append)
        for n in range(KEPT + 5):
            side.start(f"w{n}", fail())
            await side.wait()
        assert told[0] == SideFailure("w0", "ValueError")
        assert len(told) == KEPT + 5
        assert len(side.failures) == KEPT

    asyncio.run(test())


def test_close_lets_work_end_and_then_ends_it() -> None:
    async def test() -> None:
        side, gate, done = SideWork(), asyncio.Event(), list[str]()

        async def quick() -> None:
            await gate.wait()
            done.append("quick")

        async def slow() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                done.append("stopped")

        side.start("quick", quick())
        side.start("slow", slow())
        asyncio.get_running_loop().call_soon(gate.set)
        await side.close(0.2)
        assert done == ["quick", "stopped"]
        assert list(side.failures) == []
        assert not side.start("late", slow())
        await side.close()

    asyncio.run(test())


def test_s28_a_review_cannot_write(fast_dir: Path) -> None:
    """S28.1, S28.2: what it is given has no method that appends, compacts or begins a turn; and it
    sees what was there when it began."""

    async def test() -> None:
        async with clew.aio.open(fast_dir / "store.db") as store:
            conv = await store.profile("me").create()
            await conv.append([clew.user("one")])
            side, seen, gate = SideWork(), list[str](), asyncio.Event()
            handles: list[AsyncConversationReader] = []

            async def review(reader: AsyncConversationReader) -> None:
                await gate.wait()
                handles.append(reader)
                seen.extend([message.text async for message in reader.messages()])

            assert await side.review("review", conv, review)
            await conv.append([clew.assistant("two")])
            gate.set()
            await side.wait()
        assert seen == ["one"]
        (reader,) = handles
        assert type(reader) is AsyncConversationReader
        writers = set(dir(AsyncConversation)) - set(dir(AsyncConversationReader))
        assert {"append", "begin_turn", "open_attempt", "set_title", "plan_call"} <= writers
        assert not any(hasattr(reader, name) for name in writers)

    asyncio.run(test())
