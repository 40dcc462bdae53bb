"""Group commit against an engine of lists: who commits for whom, and what each is told."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from clew.errors import Busy, NotFound, StoreClosed, StoreError, StoreFull
from clew.store.caller import Caller
from clew.store.commit import Committer
from clew.store.line import LIMIT, Line
from clew.store.tasks import Tasks

WAIT = 10.0


def until(condition: Callable[[], object], what: str = "") -> None:
    """Wait for another thread; the test fails, not hangs, when it never gets there."""
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end, f"never happened: {what}"
        time.sleep(0.0005)


class Fault(StoreFull):
    """What the engine raises when the disk is full: the transaction is gone with it."""


class FakeTransaction:
    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine

    def put(self, value: Any) -> int:
        """Insert a value unless it is there, as units must; the number of values before it."""
        rows = self.engine.rows
        assert self.engine.open, "a statement outside any transaction"
        if value not in rows:
            rows.append(value)
        return rows.index(value)

    def fault(self) -> None:
        self.engine.lose()
        raise Fault("no space")


class FakeEngine:
    """Keeps its log and what is durable; commits can be held, fail, or fail after the fact."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.durable: list[Any] = []
        self.rows: list[Any] = []
        self.open = False
        self.saved: list[Any] | None = None
        self.transaction: Any = FakeTransaction(self)
        self.leaders: list[int] = []
        self.holding = False
        self.permits = threading.Semaphore(0)
        self.inside = threading.Semaphore(0)
        self.on_begin: list[BaseException] = []
        self.on_commit: list[tuple[bool, BaseException]] = []
        self.pause = 0.0

    @property
    def in_transaction(self) -> bool:
        return self.open

    def begin(self) -> None:
        assert not self.open, "begin inside a transaction"
        self.log.append("begin")
        self.leaders.append(threading.get_ident())
        if self.on_begin:
            raise self.on_begin.pop(0)
        self.open, self.rows = True, list(self.durable)

    def commit(self) -> None:
        assert self.open, "commit outside a transaction"
        self.inside.release()
        if self.pause:
            time.sleep(self.pause)
        if self.holding:
            assert self.permits.acquire(timeout=WAIT)
        durable, error = self.on_commit.pop(0) if self.on_commit else (True, None)
        if durable:
            self.durable = self.rows
        if error is not None:
            raise error
        self.log.append("commit")
        self.open = False

    def lose(self) -> None:
        self.open, self.saved = False, None
        self.rows = []

    def rollback(self) -> None:
        if self.open:
            self.log.append("rollback")
            self.lose()

    def savepoint(self) -> None:
        assert self.open, "a savepoint outside a transaction commits by itself"
        self.saved = list(self.rows)

    def release(self) -> None:
        assert self.open
        self.saved = None

    def rollback_to(self) -> None:
        assert self.open
        assert self.saved is not None
        self.log.append("undo one")
        self.rows = list(self.saved)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Inside, each commit waits for a permit."""
        self.permits = threading.Semaphore(0)
        self.holding = True
        try:
            yield
        finally:
            self.let_all()

    def let_one(self) -> None:
        self.permits.release()

    def let_all(self) -> None:
        self.holding = False
        self.permits.release(1000)

    def wait_inside(self) -> None:
        """Until a commit has begun since the last call."""
        assert self.inside.acquire(timeout=WAIT)


class FakeTurnstile:
    def __init__(self) -> None:
        self.free = threading.Event()
        self.free.set()
        self.held_by = 0
        self.closed = False
        self.on_enter: list[BaseException] = []
        self.entries = 0
        self.at_gate = threading.Semaphore(0)
        self.jam = False
        """Another process is inside as soon as we have left."""

    def try_enter(self) -> bool:
        if not self.free.is_set():
            return False
        self.held_by = threading.get_ident()
        return True

    def enter(self) -> None:
        if self.on_enter:
            raise self.on_enter.pop(0)
        self.at_gate.release()
        assert self.free.wait(WAIT)
        self.entries += 1
        self.held_by = threading.get_ident()

    def leave(self) -> None:
        if self.jam and self.held_by:
            self.free.clear()
        self.held_by = 0

    def close(self) -> None:
        self.closed = True


class Setup:
    """A committer on fakes, threads that write, and their outcomes in `results`."""

    def __init__(self, patience: float = WAIT) -> None:
        self.engine = FakeEngine()
        self.turnstile = FakeTurnstile()
        fake: Any = self.turnstile
        self.committer = Committer(self.engine, fake, patience=patience)
        self.tasks = Tasks(self.committer)
        self.results: dict[Any, Any] = {}
        self.threads: list[threading.Thread] = []

    @property
    def waiting(self) -> int:
        return self.committer.line.waiting

    def write(self, value: Any) -> Any:
        return self.committer.write(lambda tx: tx.put(value))

    def spawn(self, name: Any, unit: Callable[[Any], Any] | None = None) -> None:
        """Write in a thread; back when the unit is queued or has begun."""
        before = self.committer.runner.units + self.waiting

        def run() -> None:
            try:
                self.results[name] = self.committer.write(unit or (lambda tx: tx.put(name)))
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is the outcome
                self.results[name] = error

        thread = threading.Thread(target=run)
        self.threads.append(thread)
        thread.start()
        until(lambda: self.committer.runner.units + self.waiting > before, f"{name} queued")

    def join(self) -> None:
        for thread in self.threads:
            thread.join(WAIT)
            assert not thread.is_alive(), "a caller was left waiting"
        self.threads.clear()

    def hold_leader(self, name: Any = "leader") -> contextlib.ExitStack:
        """A thread whose commit is under way; others queue behind it."""
        stack = contextlib.ExitStack()
        stack.enter_context(self.engine.held())
        self.spawn(name)
        self.engine.wait_inside()
        return stack


@pytest.fixture
def it() -> Iterator[Setup]:
    setup = Setup()
    yield setup
    setup.engine.let_all()
    setup.turnstile.free.set()
    setup.join()
    setup.tasks.close()
    setup.committer.close()
    assert not setup.engine.open, "a transaction was left open"
    assert not setup.turnstile.held_by, "the turnstile was left held"
    assert setup.turnstile.closed
    helper = setup.committer._thread
    until(lambda: helper is None or not helper.is_alive(), "the helper's end")


def refuse(_: Any) -> None:
    raise NotFound("thing", "x")


# -- alone


def test_lone_caller_commits_on_its_own_thread(it: Setup) -> None:
    threads = threading.active_count()
    assert it.write("a") == 0
    assert it.write("b") == 1
    assert it.engine.log == ["begin", "commit"] * 2
    assert set(it.engine.leaders) == {threading.get_ident()}
    assert threading.active_count() == threads
    runner = it.committer.runner
    assert (runner.units, runner.commits, runner.reruns) == (2, 2, 0)


@pytest.mark.parametrize("error", [NotFound("a", "b"), ValueError("x"), AssertionError("y")])
def test_lone_caller_gets_its_own_error_and_nothing_is_stored(it: Setup, error: Exception) -> None:
    def unit(tx: Any) -> None:
        tx.put("half")
        raise error

    with pytest.raises(type(error)) as caught:
        it.committer.write(unit)
    assert caught.value is error
    assert it.engine.durable == []
    assert it.engine.log == ["begin", "rollback"]


def test_error_and_unit_form_no_cycle(it: Setup) -> None:
    class Unit:
        def __call__(self, _: Any) -> None:
            raise NotFound("a", "b")

    unit = Unit()
    gone = weakref.ref(unit)
    gc.disable()
    try:
        with contextlib.suppress(NotFound):
            it.committer.write(unit)
        del unit
        assert gone() is None, "kept alive by its own error"
    finally:
        gc.enable()


def test_unit_cannot_write_through_its_own_store(it: Setup) -> None:
    def unit(tx: Any) -> None:
        tx.put("outer")
        it.write("inner")

    with pytest.raises(StoreError, match="cannot write through the store"):
        it.committer.write(unit)
    assert it.engine.durable == []
    assert it.write("after") == 0


def test_unit_cannot_close_its_own_store(it: Setup) -> None:
    with pytest.raises(StoreError, match="cannot close the store"):
        it.committer.write(lambda _: it.committer.close())
    assert it.write("after") == 0


# -- together


def test_all_who_wait_share_one_commit_in_their_order(it: Setup) -> None:
    with it.hold_leader():
        for name in "abcde":
            it.spawn(name)
    it.join()
    assert it.engine.durable == ["leader", *"abcde"]
    assert it.engine.log == ["begin", "commit"] * 2
    assert it.results == {"leader": 0, "a": 1, "b": 2, "c": 3, "d": 4, "e": 5}


def test_a_batch_has_a_limit(it: Setup) -> None:
    line = Line()
    for _ in range(LIMIT + 10):
        line.join(Caller(refuse))
    assert len(line.take()) == LIMIT
    assert line.waiting == 10


def test_whoever_leads_cannot_be_withdrawn_and_whoever_is_given_up_can() -> None:
    line = Line()
    leader, second, third = Caller(refuse), Caller(refuse), Caller(refuse)
    for caller in (leader, second, third):
        line.join(caller)
    assert not line.withdraw(leader)
    assert line.withdraw(third)
    line.take()
    assert not line.withdraw(second)
    line.give_up(leader)
    line.give_up(leader)  # interrupted and done again
    assert line.leader is line.helper
    assert list(line.take()) == [second], "once, and without the interrupted one"
    line.give_up(line.helper)
    assert line.withdraw(second), "back in the queue, but not as one who is"


def test_one_that_refuses_harms_no_other(it: Setup) -> None:
    def bad(tx: Any) -> None:
        tx.put("half of bad")
        refuse(tx)

    with it.hold_leader():
        it.spawn("a")
        it.spawn("bad", bad)
        it.spawn("c")
    it.join()
    assert it.engine.durable == ["leader", "a", "c"]
    assert isinstance(it.results["bad"], NotFound)
    assert (it.results["a"], it.results["c"]) == (1, 2)
    assert it.engine.log[2:] == ["begin", "rollback", "begin", "undo one", "commit"]
    assert it.committer.runner.commits == 2


def test_one_that_succeeds_in_the_rerun_has_succeeded(it: Setup) -> None:
    runs: list[str] = []

    def second_time(tx: Any) -> Any:
        runs.append("")
        if len(runs) == 1:
            raise ValueError("not yet")
        return tx.put("at last")

    with it.hold_leader():
        it.spawn("second", second_time)
        it.spawn("b")
    it.join()
    assert it.results == {"leader": 0, "second": 1, "b": 2}
    assert it.engine.durable == ["leader", "at last", "b"]


def test_a_fault_inside_a_savepoint_undoes_all_and_each_runs_alone(it: Setup) -> None:
    runs: list[str] = []

    def full(tx: Any) -> None:
        runs.append("full")
        tx.put("half of full")
        tx.fault()

    with it.hold_leader():
        it.spawn("a")
        it.spawn("full", full)
        it.spawn("c")
    it.join()
    assert isinstance(it.results["full"], StoreFull)
    assert it.engine.durable == ["leader", "a", "c"]
    assert (it.results["a"], it.results["c"]) == (1, 2)
    assert len(runs) == 3, "bare, with a savepoint, alone"


def test_a_fault_that_a_unit_hides_does_not_count_as_success(it: Setup) -> None:
    def hides(tx: Any) -> str:
        with contextlib.suppress(StoreFull):
            tx.fault()
        return "looks well"

    with it.hold_leader():
        it.spawn("a")
        it.spawn("hides", hides)
        it.spawn("c")
    it.join()
    assert isinstance(it.results["hides"], StoreError)
    assert it.engine.durable == ["leader", "a", "c"]
    assert isinstance(_outcome(lambda: it.committer.write(hides)), StoreError)


@pytest.mark.parametrize("durable", [True, False])
def test_after_a_commit_in_doubt_each_is_stored_once(it: Setup, durable: bool) -> None:
    with it.hold_leader():
        it.spawn("a")
        it.spawn("b")
        it.engine.on_commit += [(True, None), (durable, OSError("what happened?"))]
    it.join()
    assert it.engine.durable == ["leader", "a", "b"]
    assert (it.results["a"], it.results["b"]) == (1, 2)


def test_a_commit_that_fails_again_is_the_outcome(it: Setup) -> None:
    it.engine.on_commit += [(False, OSError("first")), (False, OSError("second"))]
    with pytest.raises(OSError, match="second"):
        it.write("a")
    assert it.engine.durable == []
    assert it.write("a") == 0


def test_a_begin_that_fails_is_told_to_everybody_in_a_copy_each(it: Setup) -> None:
    with it.hold_leader():
        it.spawn("a")
        it.spawn("b")
        it.engine.on_begin.append(StoreFull("no room"))
    it.join()
    a, b = it.results["a"], it.results["b"]
    assert (type(a), str(a)) == (type(b), str(b)) == (StoreFull, "no room")
    assert a is not b
    assert it.engine.durable == ["leader"]


def test_whoever_waits_longest_leads_next_and_nobody_leads_for_ever(it: Setup) -> None:
    with it.hold_leader("first"):
        it.spawn("second")
        it.spawn("third")
        it.engine.let_one()
        it.engine.wait_inside()
        until(lambda: "first" in it.results, "the first leader to be let go")
        assert it.results == {"first": 0}
    it.join()
    first, second = it.engine.leaders
    assert first != second


def test_no_wake_up_is_lost(it: Setup) -> None:
    it.engine.pause = 0.0001
    chance = random.Random(7)
    rounds, writers = 60, 32

    def write_many(writer: int) -> None:
        for number in range(rounds):
            assert isinstance(it.write((writer, number)), int)
            if chance.random() < 0.1:
                time.sleep(0.0005)
        it.results[writer] = True

    for writer in range(writers):
        thread = threading.Thread(target=write_many, args=(writer,))
        it.threads.append(thread)
        thread.start()
    it.join()
    assert len(it.results) == writers
    assert len(it.engine.durable) == len(set(it.engine.durable)) == rounds * writers
    for writer in range(writers):
        mine = [number for who, number in it.engine.durable if who == writer]
        assert mine == list(range(rounds)), "one caller's writes are out of order"
    assert it.committer.runner.commits < rounds * writers / 3


def test_gather_ends_with_the_last_of_the_crowd_or_with_time() -> None:
    line = Line()
    line.join(Caller(refuse))
    start = time.monotonic()
    threading.Timer(0.05, lambda: line.join(Caller(refuse))).start()
    line.gather(2, WAIT)
    assert line.waiting == 2
    assert 0.03 < time.monotonic() - start < WAIT / 2
    line.gather(3, 0.01)
    assert line.waiting == 2
    line.join(Caller(refuse))  # too late for the gathering; must not break the next
    line.gather(3, WAIT)


# -- patience


def test_busy_when_another_process_stays_inside(it: Setup) -> None:
    it.committer.patience = 0.05
    it.turnstile.free.clear()
    with pytest.raises(Busy, match="another process holds it") as caught:
        it.write("a")
    assert caught.value.retryable
    it.turnstile.free.set()
    assert it.write("b") == 0
    assert it.engine.durable == ["b"], "a withdrawn unit ran all the same"


def test_the_helper_waits_at_the_turnstile_for_all(it: Setup) -> None:
    it.turnstile.free.clear()
    it.spawn("a")
    it.spawn("b")
    assert it.engine.log == []
    it.turnstile.free.set()
    it.join()
    assert it.engine.durable == ["a", "b"]
    assert it.engine.log == ["begin", "commit"]


def test_in_company_the_helper_keeps_its_place_for_those_who_come_back(it: Setup) -> None:
    it.turnstile.free.clear()
    it.turnstile.jam = True
    it.spawn("a")
    assert it.turnstile.at_gate.acquire(timeout=WAIT)
    it.turnstile.free.set()
    it.join()
    assert it.turnstile.at_gate.acquire(timeout=WAIT), "did not queue for those to come"
    it.spawn("b")
    it.turnstile.free.set()
    it.join()
    assert it.turnstile.entries == 2
    assert set(it.engine.leaders) == {it.committer._thread and it.committer._thread.ident}
    it.turnstile.jam = False
    it.turnstile.free.set()
    until(lambda: it.committer.line.leader is None, "giving it up when nobody comes")
    assert it.engine.log == ["begin", "commit"] * 2


def test_close_does_not_wait_for_a_helper_that_queues_for_nobody(it: Setup) -> None:
    it.turnstile.free.clear()
    it.turnstile.jam = True
    it.spawn("a")
    assert it.turnstile.at_gate.acquire(timeout=WAIT)
    it.turnstile.free.set()
    it.join()
    assert it.turnstile.at_gate.acquire(timeout=WAIT)
    start = time.monotonic()
    it.committer.close()
    assert time.monotonic() - start < WAIT / 2
    it.turnstile.free.set()
    until(lambda: it.turnstile.closed, "the helper to let go of the turnstile")


def test_a_turnstile_that_fails_is_told_to_everybody(it: Setup) -> None:
    it.turnstile.free.clear()
    it.turnstile.on_enter.append(StoreError("no locks here"))
    with pytest.raises(StoreError, match="no locks here"):
        it.write("a")
    it.turnstile.free.set()
    assert it.write("b") == 0


def test_patience_does_not_cut_off_a_commit_under_way(it: Setup) -> None:
    it.committer.patience = 0.05
    with it.hold_leader():
        time.sleep(0.15)
    it.join()
    assert it.results == {"leader": 0}

    it.committer.patience = WAIT
    with it.hold_leader("again"):
        it.committer.patience = 0.1
        it.spawn("b")
        it.spawn("c")
        it.engine.let_one()
        it.engine.wait_inside()  # b leads, and c is in its batch
        time.sleep(0.3)
    it.join()
    assert it.results == {"leader": 0, "again": 1, "b": 2, "c": 3}


def test_a_queued_follower_gets_busy_while_a_commit_hangs(it: Setup) -> None:
    with it.hold_leader():
        it.committer.patience = 0.05
        with pytest.raises(Busy, match="a commit is still running"):
            it.write("late")
        it.committer.patience = WAIT
    it.join()
    assert it.engine.durable == ["leader"]


# -- interruptions


def interrupt_main(blocked_in: str) -> None:
    """Ctrl-C for the main thread once it sleeps in that function. A signal that comes between
    Python's last look and the sleep is seen only after it: hence the pause."""
    main = threading.main_thread().ident or 0
    until(lambda: sys._current_frames()[main].f_code.co_name == blocked_in, blocked_in)
    time.sleep(0.02)
    signal.pthread_kill(main, signal.SIGINT)


def test_ctrl_c_in_the_queue_withdraws_the_unit(it: Setup) -> None:
    with it.hold_leader():
        thread = threading.Thread(target=interrupt_main, args=("sleep",))
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            it.write("mine")
        thread.join()
        it.spawn("other")
    it.join()
    assert it.engine.durable == ["leader", "other"]


def test_ctrl_c_in_anothers_batch_waits_for_the_outcome(it: Setup) -> None:
    stack = it.hold_leader()
    it.spawn("second")

    def release() -> None:
        until(lambda: it.waiting == 2, "main queued")
        it.engine.let_one()
        it.engine.wait_inside()
        interrupt_main("sleep")
        time.sleep(0.05)
        it.engine.let_all()

    thread = threading.Thread(target=release)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        it.write("mine")
    assert it.engine.durable == ["leader", "second", "mine"], "raised before the outcome was there"
    thread.join()
    stack.close()


def test_ctrl_c_in_ones_own_batch_leaves_nobody_waiting(it: Setup) -> None:
    """The main thread leads a batch of three and is interrupted in its commit."""
    stack = it.hold_leader()

    def others() -> None:
        until(lambda: it.waiting == 1, "main queued")
        it.spawn("b")
        it.spawn("c")
        it.engine.let_one()
        it.engine.wait_inside()
        interrupt_main("wait")
        it.engine.wait_inside()  # the helper's commit of what the main thread left
        it.engine.let_all()

    thread = threading.Thread(target=others)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        it.write("mine")
    thread.join(WAIT)
    it.join()
    stack.close()
    assert it.engine.durable == ["leader", "b", "c"]
    assert it.write("after") == 3


def test_a_unit_that_raises_what_looks_like_an_interruption_gets_it_itself(it: Setup) -> None:
    def leave(_: Any) -> None:
        raise SystemExit("mine alone")

    with it.hold_leader():
        it.spawn("a")
        it.spawn("leaves", leave)
        it.spawn("c")
    it.join()
    assert isinstance(it.results["leaves"], SystemExit)
    assert it.engine.durable == ["leader", "a", "c"]
    with pytest.raises(SystemExit):
        it.committer.write(leave)


def test_signals_at_any_moment_leave_the_store_usable(it: Setup) -> None:
    """Ctrl-C again and again at random moments of the main thread, beside two other writers. What
    tests before have left is collected first: an interrupt in a destructor is told to nobody."""
    gc.collect()
    gc.disable()
    it.engine.pause = 0.0002
    stop = threading.Event()
    chance = random.Random(11)

    def write_on(name: str) -> None:
        number = 0
        while not stop.is_set():
            it.write((name, number))
            number += 1
        it.results[name] = number

    for name in ("x", "y"):
        thread = threading.Thread(target=write_on, args=(name,))
        it.threads.append(thread)
        thread.start()

    def handler(*_: object) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, handler)
    stored: list[int] = []
    interrupted = 0
    try:
        for number in range(500):
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00002, 0.0012))
                it.write(("main", number))
                signal.setitimer(signal.ITIMER_REAL, 0)
                stored.append(number)
            except KeyboardInterrupt:
                interrupted += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
        stop.set()
        gc.enable()
    it.join()
    assert interrupted > 50
    durable = it.engine.durable
    assert len(durable) == len(set(durable))
    assert {("main", number) for number in stored} <= set(durable)
    for name in ("x", "y"):
        mine = [number for who, number in durable if who == name]
        assert mine == list(range(it.results[name]))


# -- tasks


def test_tasks_of_one_loop_share_commits_and_one_wake_up(it: Setup) -> None:
    calls: list[int] = []

    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        original = loop.call_soon_threadsafe

        def counted(callback: Any, *args: Any, **kwargs: Any) -> Any:
            if args and isinstance(args[0], list):
                calls.append(len(args[0]))
            return original(callback, *args, **kwargs)

        loop.call_soon_threadsafe = counted
        with it.engine.held():
            first = asyncio.create_task(it.tasks.write(lambda tx: tx.put("first")))
            await asyncio.to_thread(it.engine.wait_inside)
            rest = [it.tasks.write(lambda tx, n=n: tx.put(n)) for n in range(64)]
            others = asyncio.gather(*rest)
            while it.waiting < 64:
                await asyncio.sleep(0)
        assert await first == 0
        return await others

    assert asyncio.run(main()) == list(range(1, 65))
    assert it.engine.durable == ["first", *range(64)]
    assert calls == [1, 64]
    assert it.committer.runner.commits == 2
    assert threading.get_ident() not in it.engine.leaders


def test_each_task_gets_its_own_error(it: Setup) -> None:
    async def main() -> list[Any]:
        units: list[Any] = [lambda tx: tx.put("a"), refuse, lambda tx: tx.put("c")]
        return await asyncio.gather(*map(it.tasks.write, units), return_exceptions=True)

    a, bad, c = asyncio.run(main())
    assert (a, c) == (0, 1)
    assert isinstance(bad, NotFound)


def test_a_task_cancelled_in_the_queue_is_withdrawn_at_once(it: Setup) -> None:
    async def main() -> None:
        with it.hold_leader():
            task = asyncio.create_task(it.tasks.write(lambda tx: tx.put("no")))
            await asyncio.sleep(0.01)
            task.cancel()
            start = time.monotonic()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert time.monotonic() - start < 2, "waited for its turn"
            assert it.waiting == 0

    asyncio.run(main())
    it.join()
    assert it.engine.durable == ["leader"]


def test_a_task_cancelled_in_a_batch_waits_for_the_outcome(it: Setup) -> None:
    async def main() -> None:
        with it.engine.held():
            task = asyncio.create_task(it.tasks.write(lambda tx: tx.put("yes")))
            await asyncio.to_thread(it.engine.wait_inside)
            for _ in range(3):
                task.cancel()
                await asyncio.sleep(0.01)
                assert not task.done(), "cancelled before the outcome was there"
        with pytest.raises(asyncio.CancelledError):
            await task
        assert it.engine.durable == ["yes"]

    asyncio.run(main())


def test_a_task_gets_busy_when_its_patience_ends_and_others_go_on(it: Setup) -> None:
    async def main() -> None:
        it.committer.patience = 0.1
        it.turnstile.free.clear()
        early = asyncio.create_task(it.tasks.write(lambda tx: tx.put("early")))
        await asyncio.sleep(0.06)
        late = asyncio.create_task(it.tasks.write(lambda tx: tx.put("late")))
        with pytest.raises(Busy, match="another process"):
            await early
        assert not late.done()
        it.turnstile.free.set()
        assert await late == 0
        await asyncio.sleep(0.25)  # the loop's timer has nobody left to look after
        it.turnstile.free.clear()
        with pytest.raises(Busy):
            await it.tasks.write(lambda tx: tx.put("third"))

    asyncio.run(main())
    it.turnstile.free.set()
    it.write("last")
    assert it.engine.durable == ["late", "last"]


def test_several_loops_and_threads_share_a_store(it: Setup) -> None:
    it.engine.pause = 0.0002

    async def main(loop: int) -> None:
        async def one(task: int) -> None:
            for number in range(10):
                await it.tasks.write(lambda tx, n=number: tx.put((loop, task, n)))

        await asyncio.gather(*map(one, range(8)))

    def thread_main(name: str) -> None:
        for number in range(40):
            it.write((name, number))

    loops = [threading.Thread(target=lambda n=n: asyncio.run(main(n))) for n in range(3)]
    plain = [threading.Thread(target=thread_main, args=(f"t{n}",)) for n in range(3)]
    it.threads += loops + plain
    for thread in it.threads:
        thread.start()
    it.join()
    assert len(it.engine.durable) == len(set(it.engine.durable)) == 3 * 8 * 10 + 3 * 40


def test_a_loop_that_is_gone_harms_nobody(it: Setup) -> None:
    loop = asyncio.new_event_loop()
    with it.hold_leader():
        coroutine = it.tasks.write(lambda tx: tx.put("orphan"))
        task = loop.create_task(coroutine)
        loop.call_later(0.01, loop.stop)
        loop.run_forever()
        loop.close()
        it.spawn("other")
    it.join()
    assert it.results["other"] == 2
    assert it.engine.durable == ["leader", "orphan", "other"]
    with contextlib.suppress(RuntimeError):
        coroutine.close()
    task._log_destroy_pending = False


# -- the end


def test_close_waits_for_those_in_the_queue_and_refuses_the_next(it: Setup) -> None:
    with it.hold_leader():
        it.spawn("queued")
        closer = threading.Thread(target=it.committer.close)
        closer.start()
        until(lambda: isinstance(_outcome(lambda: it.write("no")), StoreClosed), "refusal")
        assert closer.is_alive()
    closer.join(WAIT)
    assert not closer.is_alive()
    it.join()
    assert it.engine.durable == ["leader", "queued"]
    it.committer.close()
    with pytest.raises(StoreClosed):
        asyncio.run(it.tasks.write(refuse))


def test_close_does_not_wait_for_ever_for_another_process() -> None:
    it = Setup()
    it.turnstile.free.clear()
    it.spawn("a")
    time.sleep(0.02)  # it sleeps, for longer than the closer will
    it.committer.patience = 0.1
    start = time.monotonic()
    it.committer.close()
    it.join()
    assert time.monotonic() - start < WAIT / 2
    assert isinstance(it.results["a"], Busy)
    it.turnstile.free.set()
    until(lambda: it.turnstile.closed, "the helper to let go of the turnstile")
    assert it.engine.log == []
    it.tasks.close()


def test_closing_twice_at_once(it: Setup) -> None:
    asyncio.run(it.tasks.write(lambda tx: tx.put("a")))
    closers = [threading.Thread(target=it.committer.close) for _ in range(4)]
    for closer in closers:
        closer.start()
    for closer in closers:
        closer.join(WAIT)
        assert not closer.is_alive()


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except StoreError as error:
        return error
