"""Boundaries: every subscriber is told of each compaction, undo and reset, at least once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from talk import HOLDER, begun, compact, proposal, summary, talk

import clew
import clew.aio
from clew.testing.clock import FakeClock

SECOND, MINUTE, HOUR = 1_000_000, 60_000_000, 3_600_000_000


class Listener:
    """A subscriber's handler that keeps what it was told, and fails where it is said to."""

    def __init__(self, fails: Callable[[clew.Boundary], bool] = lambda _: False) -> None:
        self.told: list[clew.Boundary] = []
        self.fails = fails

    def __call__(self, boundary: clew.Boundary) -> bool:
        self.told.append(boundary)
        if self.fails(boundary):
            raise RuntimeError(f"no room for {boundary.kind} {boundary.generation}")
        return False

    def names(self) -> list[tuple[str, str, int]]:
        return [(b.conversation, b.kind, b.generation) for b in self.told]


def told(profile: clew.Profile, name: str) -> list[clew.Boundary]:
    listener = Listener()
    profile.deliver(name, listener)
    return listener.told


def compacted(profile: clew.Profile, id: str, times: int = 1) -> clew.Conversation:
    """A conversation with so many compactions."""
    conv = profile.create(id=id)
    talk(conv, *"abcdef")
    for n in range(times):
        compact(conv, 1 + n)
    return conv


def test_i_20_each_subscriber_is_told_of_a_compaction(
    profile: clew.Profile, clock: FakeClock
) -> None:
    """I-20, S26.1, S26.5. A False that a handler returns is no failure (S13.1)."""
    assert profile.subscribe("memory")
    assert not profile.subscribe("memory")
    profile.subscribe("plugin")
    conv = profile.create(source="tg")
    talk(conv, *"abcd")
    conv.commit_attempt(conv.open_attempt("hard").number, proposal(2))
    wanted = clew.Boundary(
        profile=profile.name, conversation=conv.id, number=conv.info().view, kind="compaction",
        generation=1, reason="hard", platform="tg", from_id=conv.id, to_id=conv.id,
        at=clock.now(),
    )  # fmt: skip
    for name in ("memory", "plugin"):
        assert [row.boundary for row in profile.pending(name)] == [wanted]
        listener = Listener()
        assert profile.deliver(name, listener) == clew.DeliveryReport(told=1, failed=())
        assert listener.told == [wanted]
        assert profile.deliver(name, listener).told == 0
        assert profile.pending(name) == ()


def test_s26_1_no_boundary_is_without_a_platform(conv: clew.Conversation) -> None:
    fields = {
        "profile": "p", "conversation": conv.id, "number": 1, "kind": "compaction",
        "generation": 1, "reason": "soft", "platform": "cli", "from_id": conv.id,
        "to_id": conv.id, "at": 1,
    }  # fmt: skip
    assert msgspec.convert(fields, clew.Boundary).platform == "cli"
    for name in fields:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({n: v for n, v in fields.items() if n != name}, clew.Boundary)
    with pytest.raises((msgspec.ValidationError, clew.InputError)):
        msgspec.convert({**fields, "platform": ""}, clew.Boundary)


def test_s26_3_a_rotation_says_both_names(profile: clew.Profile) -> None:
    """S26.2. The permanent id stays the same; an undo has the name of the newest segment."""
    profile.subscribe("memory")
    conv = profile.create()
    talk(conv, *"abcdef")
    conv.commit_attempt(conv.open_attempt().number, proposal(1), segment=("tool", "second"))
    talk(conv, "g")
    conv.commit_attempt(conv.open_attempt().number, proposal(2), segment=("tool", "third"))
    compact(conv, 3)
    conv.undo_compaction(3)
    found = told(profile, "memory")
    assert {boundary.conversation for boundary in found} == {conv.id}
    assert [(b.from_id, b.to_id) for b in found] == [
        (conv.id, "second"), ("second", "third"), ("third", "third"), ("third", "third"),
    ]  # fmt: skip
    assert [(b.kind, b.generation) for b in found][2:] == [("compaction", 3), ("undo", 3)]


def test_an_undo_is_a_boundary_once(profile: clew.Profile) -> None:
    profile.subscribe("memory")
    conv = compacted(profile, "c", 2)
    assert conv.undo_compaction(2)
    assert not conv.undo_compaction(2)
    conv.undo_compaction(1)
    found = told(profile, "memory")
    assert [(b.kind, b.generation, b.reason) for b in found] == [
        ("compaction", 1, "soft"), ("compaction", 2, "soft"), ("undo", 2, "undo"),
        ("undo", 1, "undo"),
    ]  # fmt: skip
    numbers = [b.number for b in found]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == conv.info().view


def test_a_reset_names_the_old_conversation(profile: clew.Profile) -> None:
    """S26.4. Of a person's reset, and of one by which an ended conversation is followed."""
    profile.subscribe("memory")
    first = profile.conversation("chat", source="tg")
    profile.reset("unused", source="tg")  # nothing is replaced
    second = profile.reset("chat", source="tg", reason="new").conversation
    profile.open(second).end("idle")
    third = profile.conversation("chat", source="tg")
    found = {b.conversation: b for b in told(profile, "memory")}
    assert found.keys() == {second, third.id}
    one, two = found[second], found[third.id]
    assert (one.kind, one.from_id, one.to_id, one.reason) == ("reset", first.id, second, "new")
    assert (two.kind, two.from_id, two.to_id, two.reason) == ("reset", second, third.id, "idle")
    assert {(b.platform, b.number, b.generation) for b in (one, two)} == {("tg", 0, 0)}


def test_what_did_not_happen_is_not_told(profile: clew.Profile) -> None:
    """A refused, overtaken or cancelled attempt; another tool's compaction; before a subscription;
    in another profile."""
    conv = compacted(profile, "before")
    profile.subscribe("memory")
    with pytest.raises(clew.InvalidCompaction):
        conv.commit_attempt(conv.open_attempt().number, proposal(99))
    late = conv.open_attempt().number
    conv.cut(conv.message(6).uid)
    with pytest.raises(clew.Cancelled):
        conv.commit_attempt(late, proposal(2))
    overtaken = conv.open_attempt().number
    conv.record_foreign_compaction(proposal(2, summary("theirs")))
    with pytest.raises(clew.Overtaken):
        conv.commit_attempt(overtaken, proposal(3))
    assert told(profile, "memory") == []
    assert profile.subscribers()[0].pending == 0


def test_profiles_have_their_own_subscribers(store: clew.Store, profile: clew.Profile) -> None:
    other = store.profile("other")
    profile.subscribe("memory")
    other.subscribe("memory")
    compacted(other, "theirs")
    assert told(profile, "memory") == []
    assert [b.conversation for b in told(other, "memory")] == ["theirs"]
    assert other.unsubscribe("memory")
    assert [s.name for s in profile.subscribers()] == ["memory"]
    assert other.subscribers() == ()


def test_who_has_not_subscribed_is_not_there(profile: clew.Profile) -> None:
    for use in (
        lambda: profile.deliver("memory", print),
        lambda: profile.pending("memory"),
    ):
        with pytest.raises(clew.NotFound):
            use()
    assert not profile.unsubscribe("memory")
    with pytest.raises(clew.InputError):
        profile.subscribe("")
    profile.subscribe("memory")
    with pytest.raises(clew.InputError):
        profile.deliver("memory", print, limit=0)


def test_an_unsubscribed_one_is_forgotten_with_its_rows(profile: clew.Profile) -> None:
    profile.subscribe("memory")
    profile.subscribe("plugin")
    conv = compacted(profile, "c", 3)
    assert {s.name: s.pending for s in profile.subscribers()} == {"memory": 3, "plugin": 3}
    assert profile.unsubscribe("memory")
    assert not profile.unsubscribe("memory")
    assert [s.name for s in profile.subscribers()] == ["plugin"]
    assert profile.subscribe("memory")  # begins anew
    compact(conv, 4)
    assert [b.generation for b in told(profile, "memory")] == [4]
    assert [b.generation for b in told(profile, "plugin")] == [1, 2, 3, 4]


def test_s13_1_a_handler_that_raises_undoes_nothing_and_holds_up_nobody_else(
    profile: clew.Profile,
) -> None:
    """S13.4: nothing is gated on it either; the conversation goes on."""
    profile.subscribe("bad")
    profile.subscribe("good")
    conv, other = compacted(profile, "c", 2), compacted(profile, "d")
    bad = Listener(lambda b: b.conversation == "c")
    report = profile.deliver("bad", bad)
    assert (report.told, [f.boundary.generation for f in report.failed]) == (1, [1])
    assert report.failed[0].error == "RuntimeError: no room for compaction 1"
    assert sorted(bad.names()) == [("c", "compaction", 1), ("d", "compaction", 1)]
    assert len(told(profile, "good")) == 3
    assert conv.info().generation == 2
    assert other.info().generation == 1
    turn = begun(conv.begin_turn([clew.user("go on")], holder=HOLDER))
    turn.finish([clew.assistant("gone on")])


def test_what_failed_comes_due_again_later_each_time(
    profile: clew.Profile, clock: FakeClock
) -> None:
    """S13.4. And those of its conversation that are behind it wait."""
    profile.subscribe("memory")
    compacted(profile, "c", 2)
    bad = Listener(lambda b: b.generation == 1)
    for count, pause in enumerate((5 * SECOND, 30 * SECOND, 5 * MINUTE, HOUR, HOUR), 1):
        assert profile.deliver("memory", bad).told == 0
        first, second = profile.pending("memory")
        assert (first.attempts, second.attempts, second.next_at) == (count, 0, None)
        assert first.next_at == clock.now() + pause
        clock.advance(pause - 1)
        assert profile.deliver("memory", bad) == clew.DeliveryReport(told=0, failed=())
        clock.advance(1)
    assert bad.names() == [("c", "compaction", 1)] * 5
    assert [b.generation for b in told(profile, "memory")] == [1, 2]


def test_a_clock_that_was_set_back_keeps_nothing_waiting(
    profile: clew.Profile, clock: FakeClock
) -> None:
    profile.subscribe("memory")
    compacted(profile, "c")
    profile.deliver("memory", Listener(lambda _: True))
    clock.advance(-24 * HOUR)
    assert len(told(profile, "memory")) == 1


def test_an_error_may_say_anything(profile: clew.Profile) -> None:
    """Also nothing that can be shown, or more than fits."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    profile.subscribe("memory")
    compacted(profile, "c")
    compacted(profile, "d")

    def fail(boundary: clew.Boundary) -> None:
        raise Mute if boundary.conversation == "c" else OSError("x" * 100_000)

    report = profile.deliver("memory", fail)
    assert report.told == 0
    errors = [row.error or "" for row in profile.pending("memory")]
    assert sorted(errors) == sorted(row.error or "" for row in report.failed)
    assert all(0 < len(error) < 10_000 for error in errors)


def test_what_ends_the_program_is_no_failure(profile: clew.Profile, clock: FakeClock) -> None:
    """It passes, and the boundary is told again when its minute is over."""
    profile.subscribe("memory")
    compacted(profile, "c")

    def stop(_: clew.Boundary) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        profile.deliver("memory", stop)
    assert told(profile, "memory") == []
    assert profile.pending("memory")[0].error is None
    clock.advance(MINUTE)
    assert len(told(profile, "memory")) == 1


def test_a_late_deliverer_does_not_speak_for_the_one_after_it(
    profile: clew.Profile, clock: FakeClock
) -> None:
    """Its minute is over and another has the row: what becomes of that is for the other to say."""
    profile.subscribe("memory")
    compacted(profile, "c", 2)
    inner: list[clew.DeliveryReport] = []

    def slow(boundary: clew.Boundary) -> None:
        if boundary.generation == 1 and not inner:
            clock.advance(MINUTE)
            inner.append(profile.deliver("memory", Listener(lambda _: True)))

    assert profile.deliver("memory", slow).told == 1
    assert len(inner[0].failed) == 1
    first, second = profile.pending("memory")
    assert (first.attempts, first.error is not None, second.attempts) == (2, True, 0)


def test_a_handler_may_use_the_store(profile: clew.Profile) -> None:
    """It runs outside any transaction: it may read, write, subscribe and deliver."""
    profile.subscribe("memory")
    conv = compacted(profile, "c", 2)

    def note(boundary: clew.Boundary) -> None:
        conv.append([clew.user(f"seen {boundary.generation}")])
        profile.subscribe("another")
        profile.deliver("another", print)

    assert profile.deliver("memory", note).told == 2
    assert conv.info().head == 8


def test_no_more_than_the_limit_is_told_at_once(profile: clew.Profile) -> None:
    profile.subscribe("memory")
    compacted(profile, "c", 4)
    assert profile.deliver("memory", Listener(), limit=3).told == 3
    assert profile.deliver("memory", Listener(), limit=3).told == 1


def test_a_deletion_takes_what_was_not_told_with_it(profile: clew.Profile) -> None:
    profile.subscribe("memory")
    compacted(profile, "c", 2)
    compacted(profile, "d")
    profile.delete("c")
    assert [b.conversation for b in told(profile, "memory")] == ["d"]


def test_a_conversation_that_goes_while_it_is_told_harms_nobody(profile: clew.Profile) -> None:
    profile.subscribe("memory")
    compacted(profile, "c", 2)
    report = profile.deliver("memory", lambda b: profile.delete(b.conversation))
    assert report.told == 1
    assert profile.pending("memory") == ()


def test_a_branch_tells_of_its_own(profile: clew.Profile) -> None:
    """It has its origin's compaction from the start, which is no boundary of its own."""
    profile.subscribe("memory")
    conv = compacted(profile, "c")
    branch = conv.branch(new=clew.NewConversation(id="b"))
    talk(branch, "x", "y")
    compact(branch, 3)
    found = told(profile, "memory")
    assert sorted((b.conversation, b.generation) for b in found) == [("b", 2), ("c", 1)]


@pytest.mark.requires("engine")
def test_of_two_deliverers_each_is_told_other_things(profile: clew.Profile) -> None:
    """While one is at work on a conversation the other gets those of others, in any order."""
    profile.subscribe("memory")
    for n in range(6):
        compacted(profile, f"c{n}", 3)
    got: list[tuple[str, int]] = []
    lock = threading.Lock()

    def keep(boundary: clew.Boundary) -> None:
        with lock:
            got.append((boundary.conversation, boundary.generation))

    def work() -> None:
        while any(row.attempts == 0 for row in profile.pending("memory")):
            profile.deliver("memory", keep)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [(f"c{n}", g) for n in range(6) for g in (1, 2, 3)]
    for n in range(6):
        assert [g for id, g in got if id == f"c{n}"] == [1, 2, 3]


@pytest.mark.requires("engine")
def test_an_unsubscription_and_compactions_at_once_leave_nothing_behind(
    store: clew.Store, profile: clew.Profile
) -> None:
    """No commit fails since its subscriber goes at that moment, and no row stays of one."""
    stop, done = threading.Event(), list[str]()

    def come_and_go() -> None:
        while not stop.is_set():
            profile.subscribe("memory")
            profile.unsubscribe("memory")

    def work(id: str) -> None:
        conv = profile.create(id=id)
        talk(conv, *"abcdefghijkl")
        for n in range(10):
            compact(conv, 1 + n)
        done.append(id)

    goer = threading.Thread(target=come_and_go)
    workers = [threading.Thread(target=work, args=(f"c{n}",)) for n in range(4)]
    for thread in (goer, *workers):
        thread.start()
    for thread in workers:
        thread.join()
    stop.set()
    goer.join()
    assert sorted(done) == ["c0", "c1", "c2", "c3"]
    assert profile.subscribers() == ()
    assert store.verify() == []


@pytest.mark.requires("engine")
def test_for_asyncio_a_handler_is_awaited(
    place: Any, profile: clew.Profile, clock: FakeClock
) -> None:
    """A cancelled task is no failure of the handler's: it is told again."""
    profile.subscribe("memory")
    compacted(profile, "c", 2)
    got: list[int] = []

    async def handler(boundary: clew.Boundary) -> None:
        await asyncio.sleep(0)
        got.append(boundary.generation)
        if len(got) == 2:
            raise asyncio.CancelledError
        if len(got) == 3:
            raise OSError("no room")

    async def test() -> None:
        async with clew.aio.open(place, clock=clock) as store:
            mine = store.profile("me")
            with pytest.raises(asyncio.CancelledError):
                await mine.deliver("memory", handler)
            clock.advance(MINUTE)
            report = await mine.deliver("memory", handler)
            assert [row.error for row in report.failed] == ["OSError: no room"]
            clock.advance(MINUTE)
            assert (await mine.deliver("memory", handler)).told == 1

    asyncio.run(test())
    assert got == [1, 2, 2, 2]


WORKER = """
import os, sys, clew
from clew.testing.clock import FakeClock
place, log, start, last = sys.argv[1:]
told = 0

def handler(boundary):
    global told
    with open(log, "a") as file:
        file.write(f"{boundary.conversation} {boundary.generation}\\n")
    told += 1
    if told == int(last):
        os.kill(os.getpid(), 9)

with clew.open(place, clock=FakeClock(int(start), 0) if int(start) else None) as store:
    profile = store.profile("me")
    while profile.deliver("memory", handler).told:
        pass
"""


def _deliverer(place: Any, log: Path, start: int, last: int) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", WORKER, str(place), str(log), str(start), str(last)]
    return subprocess.Popen(words)


@pytest.mark.requires("engine")
def test_i_20_what_a_killed_deliverer_had_is_told_again(
    place: Any, profile: clew.Profile, clock: FakeClock, fast_dir: Path
) -> None:
    """I-20: kill -9 between the handler and the mark, again and again; nothing is lost, and what is
    told twice is what the dead had in hand."""
    profile.subscribe("memory")
    for n in range(3):
        compacted(profile, f"c{n}", 3)
    log = fast_dir / "told"
    for _ in range(4):
        clock.advance(MINUTE)
        child = _deliverer(place, log, clock.now(), 2)
        assert child.wait(60) == -9
        assert any(row.attempts for row in profile.pending("memory"))
    clock.advance(MINUTE)
    assert _deliverer(place, log, clock.now(), 0).wait(60) == 0
    lines = log.read_text().split("\n")[:-1]
    assert len(lines) == 9 + 4
    for n in range(3):
        own = [int(line.split()[1]) for line in lines if line.startswith(f"c{n} ")]
        assert (sorted(set(own)), own) == ([1, 2, 3], sorted(own))
    assert profile.pending("memory") == ()


@pytest.mark.requires("engine")
def test_several_processes_tell_each_boundary_once(
    place: Any, profile: clew.Profile, fast_dir: Path
) -> None:
    """By the machine's clock; nobody dies, so nothing is told twice."""
    profile.subscribe("memory")
    for n in range(8):
        compacted(profile, f"c{n}", 4)
    log = fast_dir / "told"
    children = [_deliverer(place, log, 0, 0) for _ in range(3)]
    assert [child.wait(60) for child in children] == [0, 0, 0]
    assert profile.pending("memory") == ()
    lines = log.read_text().split("\n")[:-1]
    assert len(lines) == len(set(lines)) == 32
    for n in range(8):
        own = [line for line in lines if line.startswith(f"c{n} ")]
        assert own == sorted(own)
