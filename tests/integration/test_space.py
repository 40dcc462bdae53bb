"""Space that deletions free goes back in small steps, while others write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import apsw

import clew
from clew.domain.retention import DAY, Policy, Rule
from clew.store import vacuum
from clew.store.backend import Transaction
from clew.store.doctor_sqlite import diagnose
from clew.testing.clock import FakeClock

WRITER = """
import sys, clew
store = clew.open(sys.argv[1])
conv = store.profile("me").create(id="busy", source="cli")
print("ready", flush=True)
done = 0
while not done or not store.profile("me").bound("stop"):
    conv.append([clew.user(f"message {done}")])
    done += 1
print(done, flush=True)
"""


def filled(place: Path, clock: FakeClock, conversations: int, size: int) -> clew.Store:
    """A store with conversations that machines had."""
    store = clew.open(place, clock=clock)
    for n in range(conversations):
        conv = store.profile("me").create(source="cron")
        noise = [f"{n} {i} {hash((n, i))} word{n}x{i} " for i in range(size // 40)]
        conv.append([clew.user("".join(noise))])
    store.search_index.catch_up()
    return store


def pages(path: Path) -> tuple[int, int]:
    """All, and free ones."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        found = connection.execute(
            "SELECT p.page_count, f.freelist_count "
            "FROM pragma_page_count AS p, pragma_freelist_count AS f"
        )
        return next(iter(found))
    finally:
        connection.close()


def test_the_files_become_smaller_in_steps(tmp_path: Path) -> None:
    clock, place = FakeClock(), tmp_path / "a.db"
    with filled(place, clock, 200, 20_000) as store:
        before = pages(place)[0]
        keep = store.profile("me").create(source="cli")
        keep.append([clew.user("stays")])
        steps: list[tuple[int, bool]] = []
        real = vacuum.step

        def counted(tx: Transaction) -> tuple[int, bool]:
            steps.append(real(tx))
            return steps[-1]

        vacuum.step = counted
        try:
            everything = Policy(rules=(Rule(who="automation", age=DAY),), bin=DAY)
            for _ in range(3):
                clock.advance(DAY)
                pruned = store.prune(everything)
        finally:
            vacuum.step = real
        after, free = pages(place)
        assert (pruned.deleted, pruned.bytes > 100_000) == (200, True)
        assert after < before / 3
        assert free <= after / vacuum.KEPT + 1
        assert pruned.returned >= (before - after) * 4096
        assert len(steps) > 2
        assert all(freed <= 128 * 4096 for freed, _ in steps)
        assert store.search_index.status().rows == 1
        assert store.verify() == []


def test_a_file_that_cannot_shrink_in_steps_is_left_alone(tmp_path: Path) -> None:
    clock, place = FakeClock(), tmp_path / "a.db"
    filled(place, clock, 50, 20_000).close()
    connection = apsw.Connection(str(place))
    for statement in (
        "PRAGMA journal_mode = DELETE", "PRAGMA auto_vacuum = NONE", "VACUUM",
        "PRAGMA journal_mode = WAL",
    ):  # fmt: skip
        connection.execute(statement).fetchall()
    connection.close()
    with clew.open(place, clock=clock) as store:
        clock.advance(DAY)
        for conv in store.profile("me").list().items:
            store.profile("me").bin(conv.id)
        clock.advance(DAY)
        pruned = store.prune(Policy(rules=(), bin=DAY))
        assert pruned.deleted == 50
        assert pages(place)[1] > 20
        assert store.verify() == []
    (told,) = (finding for finding in diagnose(place) if finding.subject == "space")
    assert "clew repair" in str(told.remedy)


def test_another_process_writes_all_the_while(tmp_path: Path) -> None:
    """Between any two steps of a run the other gets its turn: it wrote all the time, and none of
    its messages is missing."""
    clock, place = FakeClock(), tmp_path / "a.db"
    with filled(place, clock, 120, 4_000) as store:
        other = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(place)], stdout=subprocess.PIPE, text=True
        )
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        profile, seen = store.profile("me"), list[int]()
        everything = Policy(rules=(Rule(who="automation", age=DAY),), bin=DAY)

        def look(done: int, of: int) -> None:
            seen.append(profile.open("busy").info().head)

        for _ in range(3):
            clock.advance(DAY)
            pruned = store.prune(everything, progress=look)
        profile.conversation("stop")
        wrote = int(other.communicate(timeout=60)[0])
        assert pruned.deleted == len(seen) == 120
        assert seen[-1] > seen[0] + 20
        assert profile.open("busy").info().head == wrote
        assert store.verify() == []
