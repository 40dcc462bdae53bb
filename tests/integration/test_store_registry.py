"""One store per file and process, however often it is opened: who shares, who closes, who is told.

What others do to the file is done for real: renames, restores, forks, threads.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest

import clew
import clew.aio
from apart import apart
from clew.store.backend import Transaction
from clew.store.opening import open_parts
from clew.store.registry import Count, open_stores
from clew.testing.clock import FakeClock
from servers import WAIT, empty_database, until

NOTHING = Count(0, 0, 0)


@pytest.fixture(autouse=True)
def opened() -> Iterator[Callable[[], Count]]:
    """What is open beside what was before; S43.9: in the end nothing."""
    gc.collect()  # what other tests have dropped
    before = open_stores()

    def now() -> Count:
        found = open_stores()
        return Count(*(a - b for a, b in zip(found, before, strict=True)))

    yield now
    gc.collect()
    assert now() == NOTHING


def engine(store: clew.Store | clew.aio.AsyncStore) -> Any:
    return store._backend.engine


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, fast_dir: Path) -> str:
    return str(fast_dir / "store.db") if request.param == "file" else empty_database()


class Gate:
    """A unit of work that is under way until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self, tx: Transaction) -> None:
        self.begun.set()
        assert self.go.wait(WAIT)


# ---------------------------------------------------------------- sharing


def test_openings_of_one_place_share_one_store(place: str, opened: Callable[[], Count]) -> None:
    """S43.1: one writer, one pool, one codec; each handle counts."""
    with clew.open(place) as one, clew.open(place) as other:
        assert engine(one) is engine(other)
        assert one._db.kit.codec is other._db.kit.codec
        assert opened() == (1, 0, 2)
        conv = one.profile("p").create()
        conv.append([clew.user("by one")])
        assert [m.text for m in other.profile("p").open(conv.id).messages()] == ["by one"]
    assert opened() == NOTHING


def test_names_that_lead_to_one_file_share_it(
    fast_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S43.1: a link, a path with detours, a relative one."""
    (fast_dir / "link.db").symlink_to(fast_dir / "store.db")
    monkeypatch.chdir(fast_dir)
    names = [fast_dir / "store.db", fast_dir / "link.db", "store.db", "./x/../store.db"]
    stores = [clew.open(name) for name in names]
    try:
        assert len({id(engine(store)) for store in stores}) == 1
        assert stores[1].where == str(fast_dir / "link.db")
    finally:
        for store in stores:
            store.close()


def test_each_handle_has_its_own_clock_ids_and_limits(place: str) -> None:
    clock = FakeClock(step=0)
    with clew.open(place, clock=clock, limits=clew.Limits(key=8)) as one, clew.open(place) as other:
        conv = one.profile("p").create(id="short")
        assert conv.info().created_at == clock.now()
        with pytest.raises(clew.TooLarge):
            one.profile("p").create(id="longer than 8")
        assert other.profile("p").create(id="longer than 8").info().created_at != clock.now()


def test_another_patience_waits_on_its_own(fast_dir: Path) -> None:
    """It is the engine that waits, so who waits otherwise has another one."""
    path = fast_dir / "store.db"
    with clew.open(path) as one:  # noqa: SIM117 - the second is given the first's place
        with clew.Store(open_parts(path, None, None, None, patience=0.2)) as hasty:
            assert engine(hasty) is not engine(one)
            gate = Gate()
            with ThreadPoolExecutor(1) as pool:
                running = pool.submit(one._db.backend.write, gate)
                assert gate.begun.wait(WAIT)
                with pytest.raises(clew.Busy, match=r"0\.2 s"):
                    hasty.claim_job("x")
                gate.go.set()
                running.result()


def test_two_event_loops_in_two_threads_share_a_store(place: str) -> None:
    def work(name: str) -> tuple[str, int]:
        async def append() -> tuple[str, int]:
            async with clew.aio.open(place) as store:
                conv = await store.profile("p").conversation(name)
                await asyncio.gather(*(conv.append([clew.user(str(n))]) for n in range(40)))
                await barrier_async()
                return conv.id, id(engine(store))

        return asyncio.run(append())

    barrier = threading.Barrier(2)

    async def barrier_async() -> None:
        await asyncio.get_running_loop().run_in_executor(None, barrier.wait, WAIT)

    with ThreadPoolExecutor(2) as pool:
        (one, first), (other, second) = pool.map(work, ("one", "other"))
    assert first == second
    with clew.open(place) as store:
        for name in (one, other):
            assert store.profile("p").open(name).info().head == 40
        assert store.verify() == []


def test_threads_that_make_a_store_at_once_make_one(place: str) -> None:
    barrier = threading.Barrier(8)

    def make(_: int) -> clew.Store:
        barrier.wait(WAIT)
        return clew.open(place)

    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(make, range(8)))
    assert len({id(engine(store)) for store in stores}) == 1
    for store in stores:
        store.close()


# ---------------------------------------------------------------- closing

LATE: dict[str, Callable[[clew.Store, clew.Conversation], Any]] = {
    "read": lambda store, conv: conv.info(),
    "write": lambda store, conv: conv.set_title("late"),
    "list": lambda store, conv: store.profile("p").list(),
    "search": lambda store, conv: store.profile("p").search("late"),
    "index": lambda store, conv: store.search_index.status(),
    "follow": lambda store, conv: list(store.profile("p").follow(until=lambda: True)),
    "job": lambda store, conv: store.claim_job("late"),
    "verify": lambda store, conv: store.verify(),
    "maintain": lambda store, conv: store.maintain(),
}


@pytest.mark.parametrize("call", LATE.values(), ids=LATE)
@pytest.mark.parametrize("kept", [False, True], ids=["last", "borrowed"])
def test_late_work_says_that_the_handle_is_closed(
    kept: bool, call: Callable[[clew.Store, clew.Conversation], Any], place: str
) -> None:
    """S43.2: a borrower's close ends that handle, and no other's work."""
    stays = clew.open(place) if kept else None
    store = clew.open(place)
    conv = store.profile("p").create()
    store.close()
    store.close()
    with pytest.raises(clew.StoreClosed, match="closed"):
        call(store, conv)
    if stays is not None:
        call(stays, stays.profile("p").open(conv.id))
        stays.close()


def test_a_close_inside_a_unit_is_refused_and_can_be_repeated(fast_dir: Path) -> None:
    store = clew.open(fast_dir / "store.db")
    with pytest.raises(clew.StoreError, match="cannot close the store that runs it"):
        store._db.backend.write(lambda tx: store.close())
    store.close()


def test_the_last_close_of_a_file_leaves_no_wal(fast_dir: Path) -> None:
    path = fast_dir / "store.db"
    one, other = clew.open(path), clew.open(path)
    one.profile("p").create()
    one.close()
    assert (fast_dir / "store.db-wal").stat().st_size > 0
    other.close()
    assert not (fast_dir / "store.db-wal").exists()


def test_a_dropped_handle_is_off_the_count(place: str, opened: Callable[[], Count]) -> None:
    """S43.9: without close, the collector takes it off; the other's close is the last."""
    kept, dropped = clew.open(place), clew.open(place)
    dropped.profile("p").create()
    assert opened() == (1, 0, 2)
    del dropped
    gc.collect()
    assert opened() == (1, 0, 1)
    kept.close()
    assert opened() == NOTHING


def test_a_closed_handle_keeps_nothing_open(fast_dir: Path, opened: Callable[[], Count]) -> None:
    """Not even where the other handle was dropped, not closed."""
    path = fast_dir / "store.db"
    closed, dropped = clew.open(path), clew.open(path)
    closed.profile("p").create()
    profile = closed.profile("p")
    closed.close()
    del dropped
    gc.collect()
    assert opened() == NOTHING
    assert not (fast_dir / "store.db-wal").exists()
    with pytest.raises(clew.StoreClosed):
        profile.list()


def test_closing_holds_up_nobody_who_opens_another_place(fast_dir: Path) -> None:
    """S43.6: while a store is torn down, which waits for its queue, others come and go, and the
    same place is opened anew."""
    slow, gate = clew.open(fast_dir / "slow.db"), Gate()
    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(slow._db.backend.write, gate)
        assert gate.begun.wait(WAIT)
        closing = pool.submit(slow.close)
        until(lambda: slow._backend.closed)
        with clew.open(fast_dir / "other.db") as other:
            other.profile("p").create()
        with clew.open(fast_dir / "slow.db") as again:
            assert again.profiles() == ()
            assert not closing.done()
            gate.go.set()
            writing.result()
            closing.result()
            again.profile("p").create()
            assert again.verify() == []


def test_a_process_that_ends_without_close_leaves_a_clean_file(fast_dir: Path) -> None:
    code = """
        import sys, clew
        one, other = clew.open(sys.argv[1]), clew.open(sys.argv[1])
        one.profile("p").create(id="c").append([clew.user("kept")])
    """
    path = fast_dir / "store.db"
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), path], check=True, timeout=60)
    assert not (fast_dir / "store.db-wal").exists()
    with clew.open(path) as store:
        assert store.profile("p").open("c").info().head == 1


# ---------------------------------------------------------------- failures, replaced files


def test_an_opening_that_fails_leaves_nothing_behind(
    fast_dir: Path, opened: Callable[[], Count]
) -> None:
    """S43.5: each of many at once is told why, and the next one tries afresh."""
    path = fast_dir / "store.db"
    path.write_text("these are notes, not a database\n" * 40)

    def refused(_: int) -> None:
        with pytest.raises(clew.StoreError, match="not a clew store"):
            clew.open(path)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(refused, range(12)))
    assert opened() == NOTHING
    path.unlink()
    with clew.open(path) as store:
        store.profile("p").create()


def renamed(path: Path) -> None:
    """Another store takes the place."""
    other = path.with_name("other.db")
    clew.open(other).close()
    os.replace(other, path)


def moved_away(path: Path) -> None:
    """Nothing is at the place any more."""
    os.replace(path, path.with_name("away.db"))
    for end in ("-wal", "-shm"):
        if path.with_name(path.name + end).exists():
            os.replace(f"{path}{end}", path.with_name(f"away.db{end}"))


def stamped(path: Path) -> None:
    """Another content in the same file, as a restore in place leaves it."""
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE meta SET value = 'another' WHERE name = 'stamp'")
    connection.close()


@pytest.mark.parametrize("replace", [renamed, moved_away, stamped])
def test_a_replaced_store_is_opened_anew_beside_the_old_one(
    replace: Callable[[Path], None], fast_dir: Path, opened: Callable[[], Count]
) -> None:
    """S43.3, S43.4: the next opening is of what is there now; old handles keep theirs, whose
    writes are refused, and drain it only."""
    path = fast_dir / "store.db"
    old, older = clew.open(path), clew.open(path)
    conv = old.profile("p").create()
    old_engine = engine(old)
    replace(path)
    with clew.open(path) as new, clew.open(path) as newer:
        assert engine(new) is engine(newer) is not old_engine
        assert opened() == (1, 1, 4)
        with pytest.raises(clew.StoreReplaced):
            conv.set_title("into the wrong one")
        new.profile("p").create(title="into the right one")
        old.close()
        assert opened() == (1, 1, 3)
        older.close()
        assert opened() == (1, 0, 2)
        assert new.verify() == []


def test_a_folder_that_was_deleted_and_made_again(fast_dir: Path) -> None:
    folder = fast_dir / "home"
    old = clew.open(folder / "store.db")
    old.profile("p").create()
    shutil.rmtree(folder)
    with clew.open(folder / "store.db") as new:
        assert new.profiles() == ()
        new.profile("p").create()
    old.close()
    with clew.open(folder / "store.db") as new:
        assert new.profiles() == (("p", 1),)


def test_a_database_that_is_another_by_now_is_opened_anew() -> None:
    """On a server the place is a name, too: the stamp tells."""
    url = empty_database()
    old = clew.open(url)
    conv = old.profile("p").create()
    old._db.backend.write(lambda tx: tx.run("copy_meta_set", name="stamp", value="another"))
    with clew.open(url) as new:
        assert engine(new) is not engine(old)
        assert new.profile("p").open(conv.id).info().id == conv.id
    old.close()


# ---------------------------------------------------------------- forks


def test_a_child_has_nothing_open_and_the_parent_keeps_all(fast_dir: Path) -> None:
    """Inherited handles refuse, whatever the child calls; the same file stays refused there, and
    others can be opened."""
    code = """
        import os, sys, clew
        from pathlib import Path
        from clew.store.registry import open_stores
        folder = Path(sys.argv[1])
        one, other = clew.open(folder / "a.db"), clew.open(folder / "a.db")
        conv = one.profile("p").create()
        pid = os.fork()
        if pid == 0:
            assert open_stores() == (0, 0, 0)
            again = lambda: clew.open(folder / "a.db")
            for call in (conv.info, lambda: conv.set_title("x"), again):
                try:
                    call()
                except clew.StoreClosed as error:
                    assert "parent" in str(error), error
                else:
                    os._exit(3)
            one.close()
            other.close()
            with clew.open(folder / "b.db") as own, clew.open(folder / "b.db") as same:
                own.profile("p").create()
                assert open_stores() == (1, 0, 2)
            assert open_stores() == (0, 0, 0)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert open_stores() == (1, 0, 2)
        one.close()
        other.profile("p").open(conv.id).append([clew.user("after the fork")])
        assert other.verify() == []
        other.close()
        assert open_stores() == (0, 0, 0)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), fast_dir], check=True, timeout=60)


# ---------------------------------------------------------------- all at once


def test_threads_that_open_and_close_at_random_never_meet_a_closed_store(
    fast_dir: Path, opened: Callable[[], Count]
) -> None:
    """S43.2, S43.5, S43.9: three files, eight threads; every acknowledged message is there."""
    paths = [fast_dir / f"{n}.db" for n in range(3)]
    for path in paths:
        with clew.open(path) as store:
            store.profile("p").create(id="c")

    def work(seed: int) -> list[tuple[int, str]]:
        rng, mine, stored = random.Random(seed), dict[int, list[clew.Store]](), list[Any]()
        for step in range(120):
            at = rng.randrange(3)
            held = mine.setdefault(at, [])
            if not held or rng.random() < 0.3:
                held.append(clew.open(paths[at]))
            if rng.random() < 0.5:
                conv = rng.choice(held).profile("p").open("c")
                conv.append([clew.user("x", key=f"{seed}-{step}")])
                stored.append((at, f"{seed}-{step}"))
            if rng.random() < 0.4:
                held.pop(rng.randrange(len(held))).close()
        for held in mine.values():
            for store in held:
                store.close()
        return stored

    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(work, seed) for seed in range(8)]
        stored = [each for job in jobs for each in job.result(timeout=120)]
    assert opened() == NOTHING
    for at, path in enumerate(paths):
        with clew.open(path) as store:
            keys = [message.key for message in store.profile("p").open("c").messages()]
            assert sorted(keys, key=str) == sorted(key for n, key in stored if n == at)
            assert store.verify() == []


def test_stores_apart_are_no_part_of_this(fast_dir: Path, opened: Callable[[], Count]) -> None:
    """What other tests use to be two hosts in one process."""
    with apart(fast_dir / "a.db") as one, apart(fast_dir / "a.db") as other:
        assert engine(one) is not engine(other)
        assert opened() == NOTHING
