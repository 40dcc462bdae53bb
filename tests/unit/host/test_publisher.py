"""Publishing: replies leave the outbox by channels."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import clew
import clew.aio
from clew.host.points import POINTS
from clew.host.publisher import Channel, NotSent, Publisher, Undeliverable
from clew.store.aio.profile import AsyncProfile
from clew.testing.clock import FakeClock

MINUTE = 60_000_000


class Sent:
    """A channel that keeps what it sent; raises the errors it was given, in turn, before that."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.sent: list[tuple[str, Any, str]] = []

    async def send(self, route: str, payload: Any, key: str) -> None:
        await asyncio.sleep(0)
        if self.errors:
            raise self.errors.pop(0)
        self.sent.append((route, payload, key))


@asynccontextmanager
async def replies(
    folder: Path, clock: FakeClock, *talks: tuple[str, Sequence[Any]]
) -> AsyncGenerator[AsyncProfile]:
    """A profile whose conversations c1, c2, ... have these replies to send by these routes."""
    async with clew.aio.open(folder / "store.db", clock=clock) as store:
        profile = store.profile("me")
        for at, (route, payloads) in enumerate(talks, 1):
            conv = await profile.create(id=f"c{at}")
            turn = await conv.begin_turn([clew.user("hello")])
            assert isinstance(turn, clew.aio.AsyncTurn)
            deliveries = [clew.Delivery(route, payload) for payload in payloads]
            await turn.finish([clew.assistant("hi")], deliveries=deliveries)
        yield profile


def test_replies_go_to_the_channel_of_their_route(fast_dir: Path) -> None:
    """In order; the channel gets its own address, and a key that is always the same."""

    async def test() -> None:
        tg, web, seen = Sent(), Sent(), list[str]()
        talks = ("tg:4:chat2:42", ["a", "b"]), ("web:", [{"x": 1}]), ("other:1", ["c"])
        async with replies(fast_dir, FakeClock(step=0), *talks) as profile:
            publisher = Publisher(profile, {"tg": tg, "web": web}, seen.append)
            assert await publisher.publish() == 3
            assert await publisher.publish() == 0
            assert [row.payload for row in await profile.deliveries("pending")] == ["c"]
        assert tg.sent == [("4:chat2:42", "a", "c1:1"), ("4:chat2:42", "b", "c1:2")]
        assert web.sent == [("", {"x": 1}, "c2:1")]
        assert sorted(seen) == sorted(["publishing", "sent", "published"] * 3)
        assert set(seen) <= set(POINTS)

    asyncio.run(test())


def test_what_fails_is_tried_again_and_costs_no_other_channel(fast_dir: Path) -> None:
    async def test() -> None:
        clock, tg, web = FakeClock(step=0), Sent(NotSent("the server is away")), Sent()
        talks = ("tg:1", ["a", "b"]), ("web:1", ["c"])
        async with replies(fast_dir, clock, *talks) as profile:
            publisher = Publisher(profile, {"tg": tg, "web": web})
            assert await publisher.publish() == 1
            errors = [row.error for row in await profile.deliveries("pending")]
            assert errors == ["NotSent: the server is away", None]
            clock.advance(MINUTE)
            assert await publisher.publish() == 2
        assert [payload for _, payload, _ in tg.sent] == ["a", "b"]

    asyncio.run(test())


def test_what_is_undeliverable_is_given_up(fast_dir: Path) -> None:
    async def test() -> None:
        tg = Sent(Undeliverable("the chat is gone"))
        async with replies(fast_dir, FakeClock(step=0), ("tg:1", ["a", "b"])) as profile:
            assert await Publisher(profile, {"tg": tg}).publish() == 1
            failed = await profile.deliveries("failed")
            assert [(row.payload, row.error) for row in failed] == [
                ("a", "Undeliverable: the chat is gone")
            ]
        assert [payload for _, payload, _ in tg.sent] == ["b"]

    asyncio.run(test())


def test_the_text_of_a_foreign_error_is_not_kept(fast_dir: Path) -> None:
    """It may hold a token as part of an address."""

    async def test() -> None:
        tg = Sent(OSError("https://api/bot12345:SECRET/send refused"))
        async with replies(fast_dir, FakeClock(step=0), ("tg:1", ["a"])) as profile:
            assert await Publisher(profile, {"tg": tg}).publish() == 0
            assert [row.error for row in await profile.deliveries()] == ["OSError"]

    asyncio.run(test())


def test_a_cancelled_publisher_has_it_due_again(fast_dir: Path) -> None:
    """It does not know whether it was sent: again, by the same key."""

    async def test() -> None:
        clock, started = FakeClock(step=0), asyncio.Event()

        class Hanging:
            async def send(self, route: str, payload: Any, key: str) -> None:
                started.set()
                await asyncio.Event().wait()

        async with replies(fast_dir, clock, ("tg:1", ["a"])) as profile:
            hanging: Channel = Hanging()
            task = asyncio.create_task(Publisher(profile, {"tg": hanging}).publish())
            await asyncio.wait_for(started.wait(), 60)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            tg = Sent()
            publisher = Publisher(profile, {"tg": tg})
            assert await publisher.publish() == 0
            clock.advance(MINUTE)
            assert await publisher.publish() == 1
        assert tg.sent == [("1", "a", "c1:1")]

    asyncio.run(test())


def test_a_channel_sends_no_more_than_the_limit(fast_dir: Path) -> None:
    async def test() -> None:
        tg = Sent()
        async with replies(fast_dir, FakeClock(step=0), ("tg:1", ["a", "b", "c"])) as profile:
            assert await Publisher(profile, {"tg": tg}).publish(2) == 2
        assert len(tg.sent) == 2

    asyncio.run(test())


def test_a_publisher_runs_until_it_is_cancelled(fast_dir: Path) -> None:
    async def test() -> None:
        done = asyncio.Event()

        class Telling:
            async def send(self, route: str, payload: Any, key: str) -> None:
                done.set()

        async with replies(fast_dir, FakeClock(step=0), ("tg:1", ["a"])) as profile:
            running = asyncio.create_task(Publisher(profile, {"tg": Telling()}).run(0.01))
            await asyncio.wait_for(done.wait(), 60)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

    asyncio.run(test())


WORKER = """
import asyncio, os, sys
import clew.aio
from clew.host.publisher import Publisher
from clew.testing.clock import FakeClock
place, log, point, start = sys.argv[1:]

class Log:
    async def send(self, route, payload, key):
        with open(log, "a") as file:
            file.write(f"{key} {payload}\\n")

def watch(at):
    if at == point:
        os.kill(os.getpid(), 9)

async def main():
    clock = FakeClock(int(start), 0)
    async with clew.aio.open(place, clock=clock) as store:
        await Publisher(store.profile("me"), {"tg": Log()}, watch).publish()

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("point", "lines"),
    [
        ("publishing", ["c1:1 a", "c1:2 b"]),
        ("sent", ["c1:1 a", "c1:1 a", "c1:2 b"]),  # what nobody could note is sent again
        ("published", ["c1:1 a", "c1:2 b"]),
    ],
)
def test_a_killed_publisher_loses_nothing(fast_dir: Path, point: str, lines: list[str]) -> None:
    """kill -9 at each point of a publishing: the reply arrives, and twice only by the same key."""
    clock, log = FakeClock(step=0), fast_dir / "log"

    async def prepare() -> None:
        async with replies(fast_dir, clock, ("tg:1", ["a", "b"])):
            pass

    def publish(at: str) -> int:
        words = [str(fast_dir / "store.db"), str(log), at, str(clock.now())]
        return subprocess.run([sys.executable, "-c", WORKER, *words], timeout=120).returncode

    asyncio.run(prepare())
    assert publish(point) == -9
    clock.advance(MINUTE)
    assert publish("never") == 0
    assert log.read_text().splitlines() == lines


@pytest.mark.parametrize("name", ["", "a:b"])
def test_a_channel_needs_a_name_that_a_route_can_begin_with(fast_dir: Path, name: str) -> None:
    async def test() -> None:
        async with replies(fast_dir, FakeClock(step=0)) as profile:
            with pytest.raises(clew.InputError):
                Publisher(profile, {name: Sent()})

    asyncio.run(test())
