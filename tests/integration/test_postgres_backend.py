"""The engine on PostgreSQL by itself: its connections, runs, threads, forks and followers."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from time import monotonic, sleep
from typing import Any

import psycopg
import pytest

import clew
import clew.aio
from clew.store import bindings, conversations, postgres_listener, postgres_notifier
from clew.store.aio.store import AsyncStore
from clew.store.append import Append
from clew.store.backend import Transaction
from clew.store.codec import train
from clew.store.opening import open_parts
from clew.store.postgres import PostgresBackend
from clew.testing.postgres import Server
from servers import WAIT, ask, open_store, until

names = (f"c{n}" for n in itertools.count())


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server.start() as server:
        yield server


@pytest.fixture(scope="module")
def url(server: Server) -> str:
    url = server.create_database()
    clew.open(url).close()
    return url


def backend(store: clew.Store | clew.aio.AsyncStore) -> PostgresBackend:
    found = store._backend.engine
    assert isinstance(found, PostgresBackend)
    return found


def create(store: clew.Store) -> tuple[clew.Conversation, int]:
    """A new conversation, and its number."""
    conv = store.profile("p").create(id=next(names))
    return conv, store._db.read(lambda tx: conversations.number_of(tx, "p", conv.id))


def waiting(url: str) -> int:
    """Sessions that wait for a lock."""
    return ask(url, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")[0][0]


def locked(url: str, id: str) -> closing[psycopg.Connection[Any]]:
    """A session beside clew that has the conversation's lock."""
    connection = psycopg.connect(url)
    connection.execute("SELECT FROM conversation WHERE id = %s FOR UPDATE", [id])
    return closing(connection)


def texts(conv: clew.Conversation) -> list[str]:
    return [m.text for m in conv.messages()]


KILL_ALL = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE application_name = 'clew' AND datname = current_database()
"""


# ---------------------------------------------------------------- runs


def test_a_unit_that_the_server_undoes_to_end_a_deadlock_is_run_again(
    server: Server, url: str
) -> None:
    with open_store(url) as store, psycopg.connect(url) as other, ThreadPoolExecutor(1) as pool:
        (a, first), (b, second) = create(store), create(store)
        lock = "SELECT FROM conversation WHERE id = %s FOR UPDATE"
        other.execute("SET deadlock_timeout = '1h'")  # so that ours looks, and is the one undone
        other.execute(lock, [b.id])
        runs: list[Future[None]] = []

        def cross() -> None:
            other.execute(lock, [a.id])
            other.commit()

        def unit(tx: Transaction) -> int:
            conversations.lock(tx, first)
            tx.run("conversation_fence", no=first)
            if not runs:
                runs.append(pool.submit(cross))
                until(lambda: waiting(url))
            conversations.lock(tx, second)
            return 7

        before = deadlocks(server)
        assert backend(store).write(unit) == 7
        runs[0].result()
        assert a.info().fence == 1
        assert deadlocks(server) == before + 1


def test_a_deletion_takes_its_locks_in_the_order_of_all(server: Server, url: str) -> None:
    """The binding before its conversation, as whoever routes a message does."""
    with open_store(url) as store, ThreadPoolExecutor(2) as pool:
        profile, key = store.profile("p"), next(names)
        conv = profile.conversation(key)
        place = bindings.place_of(store._db.kit, "p", "api", key)
        before, inside, go = deadlocks(server), threading.Event(), threading.Event()

        def route(tx: Transaction) -> None:
            bindings.lock(tx, place)
            inside.set()
            assert go.wait(WAIT)
            conversations.lock_by_id(tx, "p", conv.id)

        routing = pool.submit(backend(store).write, route)
        assert inside.wait(WAIT)
        deleting = pool.submit(profile.delete, conv.id)
        until(lambda: waiting(url))
        go.set()
        routing.result()
        deleting.result()
        assert deadlocks(server) == before
        assert profile.bound(key) is None


def deadlocks(server: Server) -> int:
    return (server.folder / "server.log").read_text().count("deadlock detected")


def test_what_a_failed_unit_had_prepared_is_not_prepared_again(url: str) -> None:
    """A refusal leaves statements behind that nobody has waited for, an error takes one along."""
    with open_store(f"{url}?pool_size=1") as store:
        conv, no = create(store)

        def refused(tx: Transaction) -> None:
            tx.run("conversation_fence", no=no)
            tx.run("conversation_waiting", no=no, by=1)
            raise clew.Refused("no")

        def failing(tx: Transaction) -> None:
            tx.run("conversation_turn", no=no, turn=1)
            tx.run("conversation_title_llm", no=no, title="t")
            tx.run("conversation_waiting", no=no, by=-5)  # not less than 0
            tx.run("conversation_title_derived", no=no, title="t")

        def right(tx: Transaction) -> None:
            conversations.lock(tx, no)
            for name in ("conversation_fence", "conversation_release"):
                tx.run(name, no=no)
            for name in ("llm", "derived"):
                tx.run(f"conversation_title_{name}", no=no, title=name)
            tx.run("conversation_turn", no=no, turn=None)
            tx.run("conversation_waiting", no=no, by=0)

        for _ in range(3):
            with pytest.raises(clew.Refused, match="no"):
                backend(store).write(refused)
            with pytest.raises(clew.StoreError, match="23514"):
                backend(store).write(failing)
            sleep(2 * postgres_notifier.PAUSE)  # the notifier has used the connection, too
            backend(store).write(right)
        info = conv.info()
        assert (info.fence, info.waiting, info.title) == (3, 0, "llm")


def interrupt(when: Callable[[], object]) -> None:
    """Interrupt the main thread, as Ctrl-C does."""
    until(when)
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupted_call_leaves_the_store_in_order(url: str) -> None:
    with open_store(f"{url}?pool_size=1") as store:
        conv, _ = create(store)
        conv.append([clew.user("a")])
        for _ in range(3):
            with locked(url, conv.id), ThreadPoolExecutor(1) as pool:
                pool.submit(interrupt, lambda: waiting(url))
                with pytest.raises(KeyboardInterrupt):
                    conv.append([clew.user("never")])
        gc.collect()
        assert conv.append([clew.user("b")]).seqs == (2,)
        assert texts(conv) == ["a", "b"]
        assert store.verify() == []


def test_an_interrupted_wait_for_a_connection_costs_none(url: str) -> None:
    with open_store(f"{url}?pool_size=1") as store, ThreadPoolExecutor(2) as pool:
        conv, _ = create(store)
        inside, go = threading.Event(), threading.Event()
        job = pool.submit(backend(store).read, lambda tx: (inside.set(), go.wait(WAIT)))
        assert inside.wait(WAIT)

        def append() -> None:  # wherever the signal comes, it is expected
            pool.submit(interrupt, lambda: backend(store)._pool._queue)
            conv.append([clew.user("never")])

        for _ in range(3):
            until(lambda: not backend(store)._pool._queue)
            with pytest.raises(KeyboardInterrupt):
                append()
        go.set()
        job.result()
        assert conv.append([clew.user("a")]).seqs == (1,)


def test_connections_that_died_while_idle_are_met_once(url: str) -> None:
    """Eight of them, and less patience than eight pauses would take."""
    with open_store(url, 0.3) as store, ThreadPoolExecutor(8) as pool:
        conv, _ = create(store)
        together = threading.Barrier(8)
        for job in [
            pool.submit(backend(store).read, lambda tx: together.wait(WAIT)) for _ in range(8)
        ]:
            job.result()
        until(lambda: ask(url, KILL_ALL)[0][0] == 0)
        runs = [0]

        def unit(tx: Transaction) -> None:
            runs[0] += 1
            tx.rows("conversation_deleting")

        backend(store).write(unit)
        assert runs[0] <= 2
        assert conv.append([clew.user("a")]).seqs == (1,)


def test_whoever_waits_for_a_connection_is_served_in_turn(url: str) -> None:
    """One who leaves and comes straight back lets the others in first."""
    with open_store(f"{url}?pool_size=1") as store, ThreadPoolExecutor(3) as pool:
        order: list[int] = []
        start = threading.Barrier(3)

        def go(me: int) -> None:
            start.wait(WAIT)
            for _ in range(30):
                backend(store).read(lambda tx: order.append(me))

        for job in [pool.submit(go, me) for me in range(3)]:
            job.result()
    waits = [len(set(order[n : n + 9])) for n in range(9, 60)]
    assert min(waits) == 3, order


def test_one_connection_is_enough_for_all(url: str) -> None:
    """Nothing asks for a second one while it has the first, also when it learns a dictionary."""
    with open_store(url) as trainer, open_store(f"{url}?pool_size=1", 2.0) as store:
        conv, _ = create(store)
        conv.append([clew.user("hello " * 400, key="k")])
        samples = [f'[{{"text":"hello {n} and good night"}}]'.encode() * 20 for n in range(300)]
        trained = train(samples)
        backend(trainer).write(
            lambda tx: tx.run("dictionary_insert", version=1, bytes=trained, at=1)
        )
        trainer._db.kit.codec.learn()
        far = trainer.profile("p").open(conv.id)
        far.append([clew.user("good night " * 400, key="n")])
        assert conv.append([clew.user("good night " * 400, key="n")]).new == 0
        assert [m.key for m in conv.messages()] == ["k", "n"]
        assert store.verify() == []


def test_texts_are_stored_as_they_are_whatever_the_client_encoding_is(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with open_store(f"{url}?client_encoding=SQL_ASCII") as store, open_store(url) as other:
        conv, _ = create(store)
        conv.append([clew.user("ü €", key="ü €")])
        conv.set_title("ü €")
        assert other.profile("p").open(conv.id).append([clew.user("ü €", key="ü €")]).new == 0
    title = f"SELECT title_user FROM conversation WHERE id = '{conv.id}'"
    with psycopg.connect(url, client_encoding="UTF8") as connection:
        assert connection.execute(title.encode()).fetchone() == ("ü €",)


def test_any_patience_is_one_that_the_server_can_count(url: str) -> None:
    for patience in (0.0, 1e9):
        with open_store(url, patience) as store:
            assert store.verify() == []


def test_what_was_queued_and_withdrawn_before_the_next_run_is_not_stored_again(url: str) -> None:
    """The commit was in doubt, and before the unit ran again somebody cut."""
    with open_store(url) as store:
        conv, no = create(store)
        conv.begin_turn([clew.user("go")])
        unit = Append(store._db.kit, no, conv.id, [clew.user("waits")])
        assert backend(store).write(unit).numbers == (1,)
        conv.cut(next(conv.messages()).uid)
        done = backend(store).write(unit)
        assert (done.seqs, done.numbers, done.new) == ((), (), 0)
        assert texts(conv) == []
        assert store.verify() == []


# ---------------------------------------------------------------- forks


def test_a_fork_cannot_use_the_store_and_leaves_the_parents_alone(url: str) -> None:
    with open_store(url) as store, ThreadPoolExecutor(1) as pool:
        conv, _ = create(store)
        conv.append([clew.user("a")])
        follower = store.profile("p").follow(conv.id, until=for_a_while())
        first = pool.submit(next, follower)
        until(lambda: backend(store)._listener._thread is not None)
        for _ in range(3):
            child = os.fork()
            if child == 0:
                os._exit(_in_the_child(store, conv))
            assert os.waitpid(child, 0)[1] == 0
        assert conv.append([clew.user("b")]).seqs == (2,)
        assert first.result(WAIT).conversation == conv.id
        assert texts(conv) == ["a", "b"]


def _in_the_child(store: clew.Store, conv: clew.Conversation) -> int:
    signal.alarm(10)
    calls = (partial(conv.append, [clew.user("no")]), conv.info, backend(store).change_token)
    for call in calls:
        try:
            call()
            return 1
        except clew.StoreClosed as error:
            if "fork" not in str(error):
                return 2
    store.close()
    gc.collect()
    return 0


def test_a_child_opens_a_store_of_its_own(url: str) -> None:
    with open_store(url) as store:
        conv, _ = create(store)
        child = os.fork()
        if child == 0:
            with open_store(url) as own:
                own.profile("p").open(conv.id).append([clew.user("child")])
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert conv.append([clew.user("parent")]).seqs == (2,)


# ---------------------------------------------------------------- asyncio


def run(test: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner() as runner:
        runner.run(asyncio.wait_for(test, 3 * WAIT))


async def soon(condition: Callable[[], object]) -> None:
    await asyncio.to_thread(until, condition)


def test_cancelled_before_it_begins_a_unit_never_runs_and_after_that_it_is_awaited(
    url: str,
) -> None:
    async def test() -> None:
        async with clew.aio.open(f"{url}?pool_size=1") as store:
            conv = await store.profile("p").create(id=next(names))
            with locked(url, conv.id) as row:
                begun = asyncio.create_task(conv.append([clew.user("begun")]))
                await soon(lambda: waiting(url))
                queued = asyncio.create_task(conv.append([clew.user("queued")]))
                await asyncio.sleep(0)
                queued.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await queued
                begun.cancel()
                await asyncio.sleep(0.02)
                begun.cancel()  # again: it is awaited all the same
                assert not begun.done()
                row.rollback()
                with pytest.raises(asyncio.CancelledError):
                    await begun
            assert [m.text async for m in conv.messages()] == ["begun"]

    run(test())


def test_many_tasks_share_the_connections(url: str) -> None:
    async def test() -> None:
        async with clew.aio.open(f"{url}?pool_size=3") as store:
            profile = store.profile("p")
            convs = [await profile.create(id=next(names)) for _ in range(8)]
            done = await asyncio.gather(
                *(convs[n % 8].append([clew.user(str(n))]) for n in range(120))
            )
            for k, conv in enumerate(convs):
                mine = sorted(d.seqs[0] for d in done[k::8])
                assert mine == list(range(1, 16))
                assert len([m async for m in conv.messages()]) == 15
            assert await store.verify() == []

    run(test())


def test_the_patience_of_tasks_counts_from_their_call(url: str) -> None:
    """Sixteen calls, one thread, a server that is away: all give up together, not one by one."""

    async def test() -> None:
        async with AsyncStore(
            open_parts(f"{url}?pool_size=1", None, None, None, patience=1.0)
        ) as store:
            conv = await store.profile("p").create(id=next(names))
            with locked(url, conv.id):
                done = await asyncio.gather(
                    *(conv.append([clew.user("a")]) for _ in range(16)), return_exceptions=True
                )
                assert {type(error) for error in done} == {clew.Busy}
                assert sum("55P03" in str(error) for error in done) <= 2

    run(test())


def test_a_closed_store_refuses_and_waits_for_what_had_begun(url: str) -> None:
    async def test() -> None:
        store = await clew.aio.open(url)
        conv = await store.profile("p").create(id=next(names))
        with locked(url, conv.id) as row:
            begun = asyncio.create_task(conv.append([clew.user("a")]))
            await soon(lambda: waiting(url))
            closing_it = asyncio.create_task(store.close())
            await asyncio.sleep(0.05)
            assert not closing_it.done()
            row.rollback()
            assert (await begun).seqs == (1,)
            await closing_it
        with pytest.raises(clew.StoreClosed):
            await conv.set_title("b")
        with pytest.raises(clew.StoreClosed):
            await conv.info()
        await store.close()

    run(test())


# ---------------------------------------------------------------- followers

APPENDER = """
import sys, clew
with clew.open(sys.argv[1]) as store:
    conv = store.profile("p").open(sys.argv[2])
    for line in sys.stdin:
        conv.append([clew.user(line.strip())])
        print(flush=True)
"""


class Other:
    """Another process that appends what it is told to."""

    def __init__(self, url: str, id: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", APPENDER, url, id],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self) -> Other:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=WAIT)

    def append(self, text: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "\n"


def told(changes: Iterator[clew.Change], last: int) -> list[int]:
    """The seqs that a follower is told of, up to the one that ends it."""
    found: list[int] = []
    for change in changes:
        assert change.kind == "appended"
        assert change.first_seq is not None
        assert change.last_seq is not None
        found += range(change.first_seq, change.last_seq + 1)
        if last in found:
            break
    return found


LISTENING = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle'
AND application_name = 'clew' AND query LIKE '%pg_current_snapshot()%'
"""
KILL_LISTENERS = LISTENING.replace("count(*)", "count(pg_terminate_backend(pid))")


def follow(store: clew.Store, pool: ThreadPoolExecutor, last: int) -> Future[list[int]]:
    """Follow the newest conversation in a thread."""
    profile, id = store.profile("p"), store.profile("p").list(limit=1).items[0].id
    changes = profile.follow(id, since=profile.mark(), until=for_a_while())
    return pool.submit(told, changes, last)


def for_a_while() -> Callable[[], bool]:
    """So that a follower who is told nothing fails its test and does not hold it up."""
    end = monotonic() + WAIT
    return lambda: monotonic() > end


def test_the_server_tells_followers_of_other_processes(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They do not look by themselves for an hour."""
    monkeypatch.setattr(postgres_listener, "LOOK", 3600.0)
    with open_store(url) as store, ThreadPoolExecutor(1) as pool:
        conv, _ = create(store)
        with Other(url, conv.id) as other:
            job = follow(store, pool, 2)
            until(lambda: ask(url, LISTENING)[0][0])
            other.append("a")
            other.append("b")
            assert job.result(WAIT) == [1, 2]


def test_the_server_tells_tasks(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_listener, "LOOK", 3600.0)

    async def test() -> None:
        async with clew.aio.open(url) as store:
            profile = store.profile("p")
            conv = await profile.create(id=next(names))
            follower = profile.follow(conv.id, since=await profile.mark())
            told = asyncio.ensure_future(anext(follower))
            await soon(lambda: ask(url, LISTENING)[0][0])
            with Other(url, conv.id) as other:
                await asyncio.to_thread(other.append, "a")
                assert (await told).first_seq == 1
            await follower.aclose()

    run(test())


@pytest.mark.parametrize("pooler", ["session", "transaction"])
def test_followers_go_on_when_their_connection_ends(url: str, pooler: str) -> None:
    """By a new one; and behind a pooler they always look by themselves."""
    with open_store(f"{url}?pooler={pooler}") as store, ThreadPoolExecutor(1) as pool:
        conv, _ = create(store)
        with Other(url, conv.id) as other:
            job = follow(store, pool, 6)
            for n in range(2):
                until(lambda: ask(url, LISTENING)[0][0])
                other.append(f"{n}, heard")
                assert ask(url, KILL_LISTENERS if n % 2 else KILL_ALL)[0][0]
                other.append(f"{n}, lost")
                other.append(f"{n}, lost, too")
            assert job.result(WAIT) == [*range(1, 7)]


def test_followers_go_on_after_a_moment_without_descriptors(url: str) -> None:
    """A thread that died of it would leave them deaf, by notification and by looking."""
    program = """
        import resource, sys, threading, time, clew
        store = clew.open(sys.argv[1])
        conv = store.profile("p").create()
        mark, told = store.profile("p").mark(), []
        def follow():
            for change in store.profile("p").follow(conv.id, since=mark):
                told.append(change.last_seq)
                if change.last_seq == 2: return
        thread = threading.Thread(target=follow)
        thread.start()
        conv.append([clew.user("1")])
        while told != [1]: time.sleep(0.01)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        time.sleep(1.5)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        with clew.open(sys.argv[1]) as other:
            other.profile("p").open(conv.id).append([clew.user("2")])
        thread.join(15)
        print(told)
        store.close()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), url], capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("[1, 2]\n", "")


def test_an_older_transaction_that_commits_later_is_told_too(url: str) -> None:
    """Behind a pooler, and nobody notifies: what a follower looks at must move all the same."""
    with (
        open_store(f"{url}?pooler=transaction") as store,
        open_store(url) as writer,
        ThreadPoolExecutor(2) as pool,
    ):
        backend(writer)._notifier.committed = lambda: None  # type: ignore[method-assign]
        (old, no), (new, _) = create(writer), create(writer)
        unit = Append(writer._db.kit, no, old.id, [clew.user("older")])
        inside, go = threading.Event(), threading.Event()

        def slow(tx: Transaction) -> object:
            done = unit(tx)
            tx.rows("conversation_deleting")  # all of it is at the server
            inside.set()
            assert go.wait(WAIT)
            return done

        profile = store.profile("p")
        changes = profile.follow(since=profile.mark(), until=for_a_while())
        job = pool.submit(backend(writer).write, slow)
        assert inside.wait(WAIT)
        new.append([clew.user("newer")])
        assert pool.submit(next, changes).result(WAIT).conversation == new.id
        second = pool.submit(next, changes)
        go.set()
        job.result()
        assert second.result(WAIT).conversation == old.id
