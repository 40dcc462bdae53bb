"""Retention with a host, with several processes, and killed on the way."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from hosting import QUIET, hosted
from msgspec.structs import replace

import clew
from clew.config.values import RetentionConfig
from clew.domain.retention import DAY, Policy, Rule
from clew.store.spool.accepting import Plain
from clew.testing.clock import FakeClock
from clew.testing.provider import ScriptedProvider

AGED = Policy(rules=(Rule(who="automation", age=DAY),), bin=DAY)
PRUNER = """
import sys, clew
from clew.domain.retention import DAY, Policy, Rule
from clew.testing.clock import FakeClock
store = clew.open(sys.argv[1], clock=FakeClock(start=int(sys.argv[2]), step=0))
found = store.prune(Policy(rules=(Rule(who="automation", age=DAY),), bin=DAY))
print(found.closed, found.binned, found.deleted)
store.close()
"""
RESTORER = """
import sys, clew
store = clew.open(sys.argv[1])
profile = store.profile("me")
done = 0
for id in sys.argv[3:]:
    try:
        if sys.argv[2] == "unbin":
            profile.unbin(id)
        else:
            profile.delete(id)
        done += 1
    except clew.NotFound:
        pass
print(done)
store.close()
"""


def process(code: str, *args: object) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def answer(running: subprocess.Popen[str]) -> list[int]:
    out, _ = running.communicate(timeout=60)
    assert running.returncode == 0
    return [int(word) for word in out.split()]


@pytest.mark.parametrize("auto", [True, False])
def test_s36_9_a_host_prunes_by_its_configuration(tmp_path: Path, auto: bool) -> None:
    """S36.9."""
    clock, place = FakeClock(), tmp_path / "s.db"
    config = replace(QUIET, retention=RetentionConfig(auto=auto, sources={"cron": "30d"}))
    with clew.open(place, clock=clock) as store:
        profile = store.profile("me")
        cron = profile.create(source="cron").id
        talk = profile.create(source="cli").id
        store.profile("you").create(source="cron", id="theirs")
        clock.advance(30 * DAY)

    async def main() -> None:
        for answered in range(2):
            provider = ScriptedProvider(f"hi {answered}")
            async with hosted(place, provider, config=config, clock=clock) as (host, profile):
                await host.say(await profile.open(talk), [clew.user(f"hello {answered}")])
                await host._services.side.wait()
            clock.advance(DAY)

    asyncio.run(main())
    with clew.open(place, clock=clock) as store:
        assert store.profile("me").open(cron).info().ended is auto
        assert not store.profile("you").open("theirs").info().ended
        assert store.verify() == []


def test_two_processes_that_prune_at_once_do_each_once(tmp_path: Path) -> None:
    clock, place = FakeClock(), tmp_path / "s.db"
    with clew.open(place, clock=clock) as store:
        for n in range(40):
            store.profile("me").create(id=f"c{n}", source="cron")
    counts: list[list[int]] = []
    for _ in range(3):
        clock.advance(DAY)
        running = [process(PRUNER, place, clock.now()) for _ in range(3)]
        counts.append([sum(column) for column in zip(*map(answer, running), strict=True)])
    assert counts == [[40, 0, 0], [0, 40, 0], [0, 0, 40]]
    with clew.open(place) as store:
        assert (store.profiles(), store.verify()) == ((), [])


def test_restoring_and_deleting_at_once_do_one_of_both(tmp_path: Path) -> None:
    """I-22: by the lock on the row. What was restored is whole, or was deleted after that."""
    place = tmp_path / "s.db"
    ids = [f"c{n:02}" for n in range(40)]
    with clew.open(place) as store:
        profile = store.profile("me")
        for id in ids:
            profile.create(id=id).append([clew.user("a"), clew.user("b")])
            profile.bin(id)
    running = [process(RESTORER, place, "unbin", *ids), process(RESTORER, place, "delete", *ids)]
    restored, deleted = answer(running[0])[0], answer(running[1])[0]
    assert deleted == 40
    assert 0 <= restored <= 40
    with clew.open(place) as store:
        assert (store.profiles(), store.profile("me").binned(), store.verify()) == ((), (), [])


def test_a_run_that_is_ended_is_gone_on_with(tmp_path: Path) -> None:
    clock = FakeClock()
    with clew.open(tmp_path / "s.db", clock=clock) as store:
        profile = store.profile("me")
        for n in range(10):
            profile.create(id=f"c{n}", source="cron")
        store.profile("me").retain(AGED)  # looks
        clock.advance(DAY)
        asked: list[int] = []

        def going() -> bool:
            asked.append(1)
            return len(asked) <= 4

        first = profile.retain(AGED, going=going)
        second = profile.retain(AGED)
        assert first is not None
        assert second is not None
        assert (first.closed, second.closed) == (4, 6)
        assert profile.retain(AGED) is None


def test_a_deletion_takes_what_the_spool_has(tmp_path: Path) -> None:
    """Of a conversation in the bin the store takes no message: it stays in the spool."""
    with clew.open(tmp_path / "s.db") as store:
        profile, db = store.profile("me"), store._db
        assert db.spool is not None
        ids = [profile.create().id for _ in range(2)]
        for id in ids:
            late = Plain(db.kit, "me", 0, id, [clew.user("late")], None, 0)
            profile.bin(id)
            db.divert(late, clew.Busy("tested"))
        store.bring_in()

        def left() -> list[str]:
            assert db.spool is not None
            found = db.spool.contents().entries
            return [e.record.conversation for e in found if e.record and e.state != "done"]

        before = left()
        profile.delete(ids[0])
        assert before == ids
        assert left() == before[1:]
