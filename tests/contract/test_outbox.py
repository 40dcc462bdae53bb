"""The outbox: replies are sent at least once, in order within a conversation, under one key."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from talk import HOLDER, begun

import clew
import clew.aio
from clew.testing.clock import FakeClock

SECOND, MINUTE, HOUR = 1_000_000, 60_000_000, 3_600_000_000
PAUSES = (5 * SECOND, 30 * SECOND, 5 * MINUTE, HOUR, HOUR)


def replied(conv: clew.Conversation, *payloads: Any, route: str = "web:1") -> None:
    """A turn that ends with these deliveries."""
    turn = begun(conv.begin_turn([clew.user("hello")], holder=HOLDER))
    turn.finish([clew.assistant("hi")], deliveries=[clew.Delivery(route, p) for p in payloads])


def take(profile: clew.Profile, routes: str | None = None) -> clew.Delivered:
    taken = profile.take_delivery(routes)
    assert taken is not None
    return taken


def sent(profile: clew.Profile, routes: str | None = None) -> list[Any]:
    """Send all that is due; gives the payloads."""
    found: list[Any] = []
    while (taken := profile.take_delivery(routes)) is not None:
        assert profile.settle_delivery(taken) is not None
        found.append(taken.payload)
    return found


def names(rows: Sequence[clew.Delivered]) -> list[tuple[Any, str]]:
    return [(row.payload, row.state) for row in rows]


def test_a_reply_is_taken_and_sent(profile: clew.Profile, clock: FakeClock) -> None:
    conv = profile.create(id="c")
    replied(conv, {"text": "hi"}, route="web:1")
    taken = take(profile)
    assert taken == clew.Delivered(
        conversation="c", number=1, turn=1, route="web:1", payload={"text": "hi"},
        state="pending", attempts=1, next_at=clock.now() + MINUTE,
    )  # fmt: skip
    assert taken.key == "c:1"
    assert profile.take_delivery() is None
    clock.advance(SECOND)
    done = profile.settle_delivery(taken)
    assert done is not None
    assert (done.state, done.attempts, done.next_at) == ("sent", 1, clock.now())
    assert profile.deliveries() == conv.deliveries(1) == (done,)
    clock.advance(24 * HOUR)
    assert profile.take_delivery() is None


def test_replies_of_a_conversation_go_out_in_order(profile: clew.Profile) -> None:
    """Over turns; and those of another do not wait for them."""
    conv, other = profile.create(), profile.create()
    replied(conv, "a", "b")
    replied(conv, "c")
    replied(other, "x")
    first, beside = take(profile), take(profile)
    assert (first.payload, beside.payload) == ("a", "x")
    assert profile.take_delivery() is None
    profile.settle_delivery(first)
    assert sent(profile) == ["b", "c"]


def test_what_failed_comes_due_later_each_time(profile: clew.Profile, clock: FakeClock) -> None:
    """And what is behind it in its conversation waits."""
    conv = profile.create()
    replied(conv, "a", "b")
    for count, pause in enumerate(PAUSES, 1):
        taken = take(profile)
        assert (taken.payload, taken.attempts) == ("a", count)
        failed = profile.settle_delivery(taken, "no network")
        assert failed is not None
        assert (failed.state, failed.error) == ("pending", "no network")
        assert failed.next_at == clock.now() + pause
        assert profile.settle_delivery(taken) is None  # it was settled
        clock.advance(pause - 1)
        assert profile.take_delivery() is None
        clock.advance(1)
    assert sent(profile) == ["a", "b"]
    assert [row.error for row in profile.deliveries()] == [None, None]


def test_what_cannot_be_sent_is_given_up_and_the_next_goes_out(profile: clew.Profile) -> None:
    replied(profile.create(), "a", "b")
    failed = profile.settle_delivery(take(profile), "no such chat", give_up=True)
    assert failed is not None
    assert (failed.state, failed.error) == ("failed", "no such chat")
    assert sent(profile) == ["b"]
    assert names(profile.deliveries()) == [("b", "sent"), ("a", "failed")]
    assert names(profile.deliveries("failed")) == [("a", "failed")]
    assert profile.deliveries("pending") == ()
    with pytest.raises(clew.InputError):
        profile.settle_delivery(failed, give_up=True)


def test_who_takes_and_dies_has_it_for_a_minute(profile: clew.Profile, clock: FakeClock) -> None:
    """A crash between the sending and the note of it: sent again, by the same key."""
    replied(profile.create(id="c"), "a", "b")
    lost = take(profile)
    clock.advance(MINUTE - 1)
    assert profile.take_delivery() is None
    clock.advance(1)
    again = take(profile)
    assert (again.key, again.payload, again.attempts) == (lost.key, "a", 2)


def test_a_late_taker_does_not_speak_for_the_one_after_it(
    profile: clew.Profile, clock: FakeClock
) -> None:
    replied(profile.create(), "a", "b")
    late = take(profile)
    clock.advance(MINUTE)
    mine = take(profile)
    assert profile.settle_delivery(late) is None
    assert profile.settle_delivery(late, "no network") is None
    assert names(profile.deliveries("pending")) == [("a", "pending"), ("b", "pending")]
    assert profile.settle_delivery(mine) is not None
    assert profile.settle_delivery(mine) is None
    assert sent(profile) == ["b"]


def test_only_wanted_routes_are_taken(profile: clew.Profile) -> None:
    """By their beginning, exactly; the order of a conversation holds over its routes."""
    conv, other = profile.create(), profile.create()
    replied(conv, "a", route="tg:1")
    replied(conv, "b", route="web:1")
    replied(other, "c", route="tg%:é")
    assert sent(profile, "web:") == []
    assert sent(profile, "TG:") == []
    assert sent(profile, "tg%:é") == ["c"]
    assert sent(profile, "tg:") == ["a"]
    assert sent(profile, "web:") == ["b"]
    for bad in ("", "a\0"):
        with pytest.raises(clew.InputError):
            profile.take_delivery(bad)


def test_profiles_have_their_own(store: clew.Store, profile: clew.Profile) -> None:
    other = store.profile("other")
    replied(other.create(), "theirs")
    assert profile.take_delivery() is None
    assert profile.deliveries() == ()
    taken = take(other)
    assert profile.settle_delivery(taken) is None
    assert other.settle_delivery(taken) is not None


def test_a_deletion_takes_what_was_not_sent_with_it(profile: clew.Profile) -> None:
    conv, other = profile.create(), profile.create()
    replied(conv, "a", "b")
    replied(other, "c")
    taken = take(profile)
    profile.delete(conv.id)
    assert profile.settle_delivery(taken) is None
    assert sent(profile) == ["c"]


def test_a_clock_that_was_set_back_keeps_nothing_waiting(
    profile: clew.Profile, clock: FakeClock
) -> None:
    replied(profile.create(), "a")
    profile.settle_delivery(take(profile), "no network")
    clock.advance(-24 * HOUR)
    assert sent(profile) == ["a"]


def test_a_list_of_deliveries_has_a_limit(profile: clew.Profile) -> None:
    replied(profile.create(), "a", "b", "c")
    assert len(profile.deliveries(limit=2)) == 2
    with pytest.raises(clew.InputError):
        profile.deliveries(limit=0)
    with pytest.raises(clew.InputError):
        profile.deliveries("lost")  # pyright: ignore[reportArgumentType]


# ---------------------------------------------------------------- several processes

WORKER = """
import os, sys, clew
place, log, last = sys.argv[1:]
done = 0
with clew.open(place) as store:
    profile = store.profile("me")
    print("ready", flush=True)
    sys.stdin.readline()
    while pending := profile.deliveries("pending"):
        taken = profile.take_delivery()
        if taken is None:
            lowest = {row.conversation: row for row in sorted(pending, key=lambda r: -r.number)}
            if all(row.attempts for row in lowest.values()):
                break  # who has them goes on, or is dead
            continue
        file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{taken.key} {taken.payload}\\n".encode())
        os.close(file)
        done += 1
        if done == int(last):
            os.kill(os.getpid(), 9)
        profile.settle_delivery(taken)
"""


def publishers(place: Any, log: Path, *lasts: int) -> list[int]:
    """Processes that publish together, each killed after its last sending (0: not); their codes."""
    script = [sys.executable, "-c", WORKER, str(place), str(log)]
    running = [
        subprocess.Popen(
            [*script, str(last)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for last in lasts
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    codes = [process.wait(120) for process in running]
    for process in running:
        process.communicate()
    return codes


def talks(profile: clew.Profile) -> list[str]:
    """Conversations with four replies each; the lines that a log of their sending has."""
    lines: list[str] = []
    for n in range(6):
        replied(profile.create(id=f"c{n}"), *range(4))
        lines += [f"c{n}:{number + 1} {number}" for number in range(4)]
    return lines


@pytest.mark.requires("engine")
def test_two_publishers_send_each_reply_once(
    place: Any, profile: clew.Profile, tmp_path: Path
) -> None:
    """While neither dies; in the order of each conversation, whoever sends."""
    log, wanted = tmp_path / "log", talks(profile)
    assert publishers(place, log, 0, 0) == [0, 0]
    lines = log.read_text().splitlines()
    assert sorted(lines) == sorted(wanted)
    for n in range(6):
        assert [line for line in lines if line.startswith(f"c{n}:")] == wanted[4 * n : 4 * n + 4]
    assert {row.state for row in profile.deliveries()} == {"sent"}


@pytest.mark.requires("engine")
def test_what_a_killed_publisher_had_is_sent_again_by_the_same_key(
    place: Any, profile: clew.Profile, tmp_path: Path, clock: FakeClock
) -> None:
    log, wanted = tmp_path / "log", talks(profile)
    assert publishers(place, log, 1) == [-9]
    assert publishers(place, log, 0) == [0]
    left = profile.deliveries("pending")
    assert sorted({row.conversation for row in left}) == [left[-1].conversation]
    later = FakeClock(start=max(row.next_at for row in left), step=0)
    with clew.open(place, clock=later) as store:
        sent_later = sent(store.profile("me"))
    assert len(sent_later) == len(left)
    lines = log.read_text().splitlines()
    again = [f"{row.key} {row.payload}" for row in sorted(left, key=lambda row: row.number)]
    assert sorted(set(lines) | set(again)) == sorted(wanted)
    assert len(lines) + len(again) == len(wanted) + 1
    assert again[0] in lines


@pytest.mark.requires("engine")
def test_asyncio_takes_and_settles(place: Any, profile: clew.Profile) -> None:
    replied(profile.create(), "a")

    async def publish() -> None:
        async with clew.aio.open(place) as store:
            mine = store.profile("me")
            taken = await mine.take_delivery()
            assert taken is not None
            assert await mine.settle_delivery(taken) is not None
            assert names(await mine.deliveries()) == [("a", "sent")]

    asyncio.run(publish())
