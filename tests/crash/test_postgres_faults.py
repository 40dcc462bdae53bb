"""A server that goes away at the worst moment: the caller learns what happened, and nothing is lost
or doubled."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

import psycopg
import pytest
from proxy import Cut, How, Proxy

import clew
from clew.errors import Unavailable
from clew.store import conversations
from clew.store.backend import Transaction
from clew.store.opening import open_parts
from clew.store.turns import Record, Step
from clew.testing.postgres import Server
from servers import WAIT, ask, open_store

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


def until(url: str, condition: str) -> None:
    """Wait until an SQL condition holds."""
    end = monotonic() + WAIT
    with psycopg.connect(url, autocommit=True) as connection:
        while connection.execute(f"SELECT {condition}".encode()).fetchone() != (True,):
            assert monotonic() < end, condition
            sleep(0.005)


SOMEBODY_WAITS = (
    "EXISTS(SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
    "AND datname = current_database())"
)


class Wire(NamedTuple):
    """A store whose connections can be cut, and one beside it whose cannot."""

    proxy: Proxy
    store: clew.Store
    beside: clew.Store


@pytest.fixture(scope="module")
def wire(url: str) -> Iterator[Wire]:
    with (
        Proxy(url, lambda: until(url, SOMEBODY_WAITS)) as proxy,
        open_store(proxy.url) as store,
        open_store(url) as beside,
    ):
        yield Wire(proxy, store, beside)
        assert beside.verify() == []


class Case(NamedTuple):
    """An act on a conversation `c` that has four messages, of a profile `p`, and what the answer
    and the store then say, as far as two runs can say the same."""

    act: Callable[[clew.Profile, clew.Conversation], Any]
    look: Callable[[clew.Profile, clew.Conversation, Any], Any]
    prepare: Callable[[clew.Profile, clew.Conversation], Any] = lambda p, c: None


def texts(c: clew.Conversation) -> list[str]:
    return [m.text for m in c.messages()]


def turn_of(c: clew.Conversation) -> clew.TurnHandle:
    turn = c.begin_turn([clew.user("go")])
    assert isinstance(turn, clew.TurnHandle)
    return turn


BODY = (clew.Inline(clew.Role.USER, (clew.Text("in short"),)),)
PLAN = clew.Proposal(covers_to=2, body=BODY, tokens_before=9, tokens_after=1)
held: dict[str, Any] = {}
"""What `prepare` made for `act`, by conversation."""


def keep(make: Callable[[clew.Conversation], Any]) -> Callable[[Any, clew.Conversation], None]:
    return lambda p, c: held.__setitem__(c.id, make(c))


CASES: dict[str, Case] = {
    "append": Case(
        lambda p, c: c.append([clew.user("a"), clew.assistant("b")]),
        lambda p, c, r: (r.seqs, r.new, r.head, r.uids == tuple(m.uid for m in c.messages())[4:]),
    ),
    "append a key": Case(
        lambda p, c: c.append([clew.user("a", key="k")]),
        lambda p, c, r: (r.seqs, r.new, [m.key for m in c.messages()]),
    ),
    "begin": Case(
        lambda p, c: c.begin_turn([clew.user("go")]),
        lambda p, c, r: (
            type(r).__name__, r.turn.number, r.right.fence, r.appended.seqs, len(c.turns()),
            c.info().fence, r.finish([clew.assistant("done")]).state, texts(c),
        ),
    ),
    "begin behind another": Case(
        lambda p, c: c.begin_turn([clew.user("me too")]),
        lambda p, c, r: (
            type(r).__name__, r.appended.numbers, r.appended.new, [w.number for w in c.inbox()],
        ),
        keep(turn_of),
    ),
    "record": Case(
        lambda p, c: held[c.id].record([clew.assistant("step")], take_inbox=True),
        lambda p, c, r: (r.appended.seqs, r.appended.new, r.taken, texts(c)),
        lambda p, c: (keep(turn_of)(p, c), c.append([clew.user("in between")])),
    ),
    "finish": Case(
        lambda p, c: held[c.id].finish(
            [clew.assistant("last")], deliveries=[clew.Delivery("out", {"a": 1})]
        ),
        lambda p, c, r: (r.state, r.head, texts(c), [t.state for t in c.turns()], c.info().fence),
        keep(turn_of),
    ),
    "resume": Case(
        lambda p, c: c.resume_turn(),
        lambda p, c, r: (r.right.fence, c.info().fence, r.finish([clew.assistant("x")]).state),
        lambda p, c: turn_of(c).wait(),
    ),
    "cut": Case(
        lambda p, c: c.cut(list(c.messages())[2].uid),
        lambda p, c, r: (r.number, r.from_seq, r.to_seq, r.view, texts(c), len(c.cuts())),
    ),
    "undo": Case(
        lambda p, c: c.undo_cut(),
        lambda p, c, r: (r.number, r.view, texts(c), c.info().view),
        lambda p, c: c.cut(list(c.messages())[2].uid),
    ),
    "receive": Case(
        lambda p, c: p.receive(
            f"room {c.id}", [clew.user("hello")], source="chat", account="a", key=f"d {c.id}"
        ),
        lambda p, c, r: (
            r.again, r.appended.seqs, texts(p.open(r.conversation)),
            p.bound(f"room {c.id}", source="chat").id == r.conversation,
        ),
    ),
    "bind": Case(
        lambda p, c: p.conversation(f"key {c.id}"),
        lambda p, c, r: (
            p.bound(f"key {c.id}").id == r.id, p.conversation(f"key {c.id}").id == r.id,
        ),
    ),
    "reset": Case(
        lambda p, c: p.reset(f"key {c.id}"),
        lambda p, c, r: (
            p.bound(f"key {c.id}").id == r.conversation, r.previous == held[c.id],
            p.open(r.previous).info().end_reason,
        ),
        lambda p, c: held.__setitem__(c.id, p.conversation(f"key {c.id}").id),
    ),
    "first reset": Case(
        lambda p, c: p.reset(f"key {c.id}"),
        lambda p, c, r: (p.bound(f"key {c.id}").id == r.conversation, r.previous),
    ),
    "create": Case(
        lambda p, c: p.create(id=f"other {c.id}"),
        lambda p, c, r: (r.info().head, r.append([clew.user("x")]).seqs),
    ),
    "branch": Case(
        lambda p, c: c.branch(list(c.messages())[1].uid),
        lambda p, c, r: (texts(r), r.info().base, r.append([clew.user("x")]).seqs),
    ),
    "open attempt": Case(
        lambda p, c: c.open_attempt(),
        lambda p, c, r: (r.number, [a.state for a in c.attempts()]),
    ),
    "commit attempt": Case(
        lambda p, c: c.commit_attempt(held[c.id].number, PLAN),
        lambda p, c, r: (
            r.generation, r.attempt, len(c.compactions()), [a.state for a in c.attempts()],
        ),
        keep(lambda c: c.open_attempt()),
    ),
    "end": Case(lambda p, c: c.end(), lambda p, c, r: (r, c.info().end_reason)),
    "interrupt": Case(
        lambda p, c: c.interrupt_turn("enough"),
        lambda p, c, r: (r, c.info().fence, [t.state for t in c.turns()]),
        keep(turn_of),
    ),
    "withdraw": Case(
        lambda p, c: c.withdraw(1),
        lambda p, c, r: (r, c.info().waiting),
        lambda p, c: (turn_of(c), c.append([clew.user("waits")])),
    ),
    "pop": Case(
        lambda p, c: c.pop(2), lambda p, c, r: ([m.text for m in r], texts(c), c.info().view)
    ),
    "replace": Case(
        lambda p, c: c.replace([clew.user("0"), clew.user("new")]),
        lambda p, c, r: (r.seqs, r.new, texts(c)),
    ),
    "edit": Case(
        lambda p, c: c.edit(list(c.messages())[1].uid, clew.user("better")),
        lambda p, c, r: (r.seqs, r.new, texts(c), len(c.cuts())),
    ),
    "title": Case(
        lambda p, c: c.lock_title("mine"), lambda p, c, r: (r, c.info().title)
    ),
    "alias": Case(
        lambda p, c: c.claim_alias("cli", f"f {c.id}"),
        lambda p, c, r: (r, p.resolve(f"f {c.id}").id == c.id),
    ),
    "delegate": Case(
        lambda p, c: c.delegate(clew.NewConversation(id=f"sub {c.id}")),
        lambda p, c, r: (r.info().kind, r.info().head),
    ),
    "plan a call": Case(
        lambda p, c: c.plan_call(clew.CallPlan(purpose="title", model="m")),
        lambda p, c, r: (r, len(c.calls())),
    ),
    "cancel attempt": Case(
        lambda p, c: c.cancel_attempt(1),
        lambda p, c, r: (r.state, [a.state for a in c.attempts()]),
        lambda p, c: c.open_attempt(),
    ),
    "foreign compaction": Case(
        lambda p, c: c.record_foreign_compaction(PLAN),
        lambda p, c, r: (r.generation, len(c.compactions()), c.info().view),
    ),
    "undo compaction": Case(
        lambda p, c: c.undo_compaction(1),
        lambda p, c, r: (r, c.info().view),
        lambda p, c: c.record_foreign_compaction(PLAN),
    ),
    "reopen": Case(
        lambda p, c: c.reopen(), lambda p, c, r: (r, c.info().ended_at), lambda p, c: c.end()
    ),
    "goal": Case(
        lambda p, c: c.set_goal("go"),
        lambda p, c, r: (r.text, r.number, c.close_goal(), c.close_goal()),
    ),
    "close goal": Case(
        lambda p, c: c.close_goal(), lambda p, c, r: r, lambda p, c: c.set_goal("go")
    ),
    "todos": Case(
        lambda p, c: c.set_todos([clew.Todo(text="a", state="pending")]),
        lambda p, c, r: [t.text for t in c.todos()],
    ),
    "prompt": Case(
        lambda p, c: c.set_prompt("be kind", [{"name": c.id}]),
        lambda p, c, r: c.info().prompt_hash,
    ),
    "claim job": Case(
        lambda p, c: held["store"].claim_job(c.id),
        lambda p, c, r: (r.fence, held["store"].release_job(r), held["store"].release_job(r)),
    ),
    "release job": Case(
        lambda p, c: held["store"].release_job(held[c.id]),
        lambda p, c, r: (r, [(j.fence, j.holder) for j in held["store"].jobs() if j.name == c.id]),
        keep(lambda c: held["store"].claim_job(c.id)),
    ),
    "delete": Case(
        lambda p, c: p.delete(c.id),
        lambda p, c, r: (c.id in [s.id for s in p.list(limit=1000).items], texts(held[c.id])),
        keep(lambda c: c.branch()),
    ),
}  # fmt: skip


def run(store: clew.Store, beside: clew.Store, name: str, before: Callable[[], None]) -> Any:
    """Do a case's act in `store`, and look from `beside`."""
    case, id = CASES[name], next(names)
    held["store"] = store
    near, far = store.profile("p"), beside.profile("p")
    conv = near.create(id=id)
    conv.append([clew.user(str(n)) for n in range(4)])
    case.prepare(near, conv)
    before()
    answer = case.act(near, conv)
    if hasattr(answer, "finish"):  # a right belongs to its handle
        return case.look(near, conv, answer)
    conv = conv if name == "delete" else far.open(id)
    return case.look(far, conv, answer)


@pytest.mark.parametrize("how", ["unsent", "sent", "late", "lost late"])
@pytest.mark.parametrize("name", CASES)
def test_a_commit_in_doubt_is_answered_as_it_went(wire: Wire, name: str, how: How) -> None:
    """`late`: the server has the COMMIT before it only when the same unit, run again, waits for
    that transaction to end."""
    expected = run(wire.beside, wire.beside, name, lambda: None)
    answer = run(wire.store, wire.beside, name, lambda: wire.proxy.arm(Cut("commit", how)))
    assert wire.proxy.disarm()
    assert wire.proxy.done.wait(WAIT)
    assert answer == expected


@pytest.mark.parametrize("how", ["unsent", "sent"])
def test_a_connection_lost_at_any_message_of_a_unit(wire: Wire, how: How) -> None:
    profile, keys = wire.store.profile("p"), itertools.count()
    conv = profile.create(id=next(names))
    cuts = 0
    for at in itertools.count(1):
        wire.proxy.arm(Cut(at, how))
        key = str(next(keys))
        done = conv.append([clew.user(key, key=key), clew.user("+")])
        assert (done.new, done.head) == (2, 2 * at)
        if not wire.proxy.disarm():
            break
        cuts += 1
    assert cuts > 10
    found = [m.key for m in wire.beside.profile("p").open(conv.id).messages()]
    assert found == [key for n in range(cuts + 1) for key in (str(n), None)]


# ---------------------------------------------------------------- sessions and servers that end


class Writers:
    """Threads that append to conversations of their own until `stop`, keyed and not."""

    def __init__(self, store: clew.Store, count: int = 3) -> None:
        self.convs = [store.profile("p").create(id=next(names)) for _ in range(count)]
        self.done: list[list[str]] = [[] for _ in self.convs]
        self._stopping = threading.Event()
        self._pool = ThreadPoolExecutor(count)
        self._jobs = [self._pool.submit(self._write, n) for n in range(count)]

    def _write(self, me: int) -> None:
        conv, done = self.convs[me], self.done[me]
        while not self._stopping.is_set():
            text = str(len(done))
            draft = clew.user(text, key=text if len(done) % 2 else None)
            assert conv.append([draft]).seqs == (len(done) + 1,)
            done.append(text)

    def have(self, more: int) -> None:
        """Wait until each has appended so many more."""
        wanted, end = [len(done) + more for done in self.done], monotonic() + 3 * WAIT
        while any(len(done) < n for done, n in zip(self.done, wanted, strict=True)):
            assert monotonic() < end
            for job in self._jobs:
                if job.done():
                    job.result()
            sleep(0.005)

    def stop(self) -> None:
        """Raises what one of them has raised; each log is what was answered."""
        self._stopping.set()
        with self._pool:
            for job in self._jobs:
                job.result()
        for conv, done in zip(self.convs, self.done, strict=True):
            assert texts(conv) == done


KILL_ALL = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE application_name = 'clew' AND datname = current_database()
"""


def test_sessions_that_are_terminated_again_and_again(url: str) -> None:
    with open_store(url) as store:
        writers = Writers(store)
        killed = 0
        for _ in range(25):
            writers.have(1)
            killed += int(ask(url, KILL_ALL)[0][0])
        writers.stop()
        assert killed >= 25
        assert store.verify() == []


@pytest.mark.parametrize("how", ["fast", "immediate", "kill"])
def test_a_server_that_comes_back_soon_is_waited_for(server: Server, url: str, how: Any) -> None:
    with open_store(url, 60.0) as store:
        writers = Writers(store)
        writers.have(3)
        server.kill() if how == "kill" else server.stop(how)
        server.restart()
        writers.have(3)
        writers.stop()
        assert store.verify() == []


def test_a_server_that_stays_away_is_unavailable_and_the_same_call_works_later(
    server: Server, url: str
) -> None:
    with open_store(url, 0.3) as store:
        conv = store.profile("p").create(id=next(names))
        conv.append([clew.user("before")])
        server.stop()
        try:
            for call in (lambda: conv.append([clew.user("a", key="a")]), conv.info):
                with pytest.raises(Unavailable, match="cannot be reached") as caught:
                    call()
                assert caught.value.retryable
                assert server.password not in told(caught.value)
            with pytest.raises(Unavailable):
                open_store(url, 0.3)
        finally:
            server.restart()
        assert conv.append([clew.user("a", key="a")]).seqs == (2,)
        assert conv.append([clew.user("a", key="a")]).new == 0


def test_opening_waits_for_a_server_as_later_calls_do(server: Server, url: str) -> None:
    """And says what it waited for when it comes too late; a command is told at once."""
    server.stop()
    try:
        with pytest.raises(Unavailable, match="cannot be reached"):
            open_parts(url, None, None, None, wait=False)
        with ThreadPoolExecutor(1) as pool:
            opening = pool.submit(clew.open, url)
            server.restart()
            with opening.result(timeout=WAIT) as store:
                assert store.verify() == []
    except BaseException:
        server.restart()
        raise


def test_a_commit_in_doubt_stays_so_whatever_comes_then(url: str) -> None:
    """The server still has the COMMIT before it when the call gives up: what a later run met does
    not mean that nothing was written."""
    given_up = threading.Event()
    with Proxy(url, given_up.wait) as proxy, open_store(proxy.url, 0.5) as store:
        conv = store.profile("p").create(id=next(names))
        proxy.arm(Cut("commit", "late"))
        with pytest.raises(Unavailable, match="lock was not free") as caught:
            conv.append([clew.user("a", key="a")])
        assert caught.value.retryable
        given_up.set()
        assert proxy.done.wait(WAIT)
        done = conv.append([clew.user("a", key="a")])
        assert (done.seqs, done.new) == ((1,), 0)


def test_a_paused_host_loses_its_locks_before_others_give_up(url: str) -> None:
    """A unit that stops in the middle, as its whole host may: the server ends its transaction. What
    it then writes is done anew, under the lock."""
    with open_store(url, 1.0) as paused, open_store(url, 20.0) as other:
        conv = paused.profile("p").create(id=next(names))
        no, runs, go = held_number(other, conv.id), [0], threading.Event()

        def unit(tx: Transaction) -> None:
            conversations.lock(tx, no)
            runs[0] += 1
            tx.run("conversation_fence", no=no)
            if runs == [1]:
                locked.set()
                assert go.wait(WAIT)

        locked = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            job = pool.submit(paused._backend.write, unit)
            assert locked.wait(WAIT)
            assert other.profile("p").open(conv.id).append([clew.user("a")]).seqs == (1,)
            go.set()
            with suppress(Unavailable):  # its patience may have ended meanwhile
                job.result()
                assert runs == [2]
        assert conv.info().fence == runs[0] - 1


def test_a_paused_holder_that_is_overtaken_before_its_commit_writes_nothing(url: str) -> None:
    """It has passed the fence and holds the lock. When it goes on, another has the right."""
    with open_store(url, 4.0) as paused, open_store(url) as other:
        conv = paused.profile("p").create(id=next(names))
        begun = conv.begin_turn([clew.user("go")], ttl=1)
        assert isinstance(begun, clew.TurnHandle)
        step = Step(drafts=[clew.assistant("mine")])
        record = Record(
            paused._db.kit, held_number(other, conv.id), begun.right, begun.turn.number, step
        )
        inside, go = threading.Event(), threading.Event()

        def unit(tx: Transaction) -> object:
            done = record(tx)
            tx.rows("conversation_deleting")  # all of it is at the server
            inside.set()
            assert go.wait(WAIT)
            return done

        with ThreadPoolExecutor(1) as pool:
            job = pool.submit(paused._backend.write, unit)
            assert inside.wait(WAIT)
            turn = other.profile("p").open(conv.id).resume_turn(holder="other")
            turn.record([clew.assistant("theirs")])
            go.set()
            with pytest.raises((clew.RightLost, Unavailable)):
                job.result()
        with pytest.raises(clew.RightLost):
            begun.record([clew.assistant("mine again")])
        assert texts(conv) == ["go", "theirs"]


def held_number(store: clew.Store, id: str) -> int:
    return store._db.read(lambda tx: conversations.number_of(tx, "p", id))


# ---------------------------------------------------------------- what is told


def told(error: BaseException) -> str:
    """All that a traceback shows of it."""
    return "".join(traceback.format_exception(error))


@pytest.fixture
def small(url: str) -> Iterator[clew.Store]:
    with open_store(f"{url}?pool_size=1", 0.4) as store:
        yield store


def test_a_pool_without_a_free_connection_is_busy(small: clew.Store) -> None:
    conv = small.profile("p").create(id=next(names))
    inside, go = threading.Event(), threading.Event()

    def unit(tx: Transaction) -> None:
        inside.set()
        assert go.wait(WAIT)

    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(small._backend.read, unit)
        assert inside.wait(WAIT)
        with pytest.raises(clew.Busy, match="pool_size") as caught:
            conv.append([clew.user("a", key="a")])
        assert caught.value.retryable
        go.set()
        with suppress(Unavailable):
            job.result()
    assert conv.append([clew.user("a", key="a")]).new == 1


def lock_row(url: str, id: str) -> psycopg.Connection[Any]:
    connection = psycopg.connect(url)
    connection.execute("SELECT FROM conversation WHERE id = %s FOR UPDATE", [id])
    return connection


def test_a_lock_that_is_not_free_in_time_is_busy(url: str) -> None:
    with open_store(url, 0.4) as store:
        conv = store.profile("p").create(id=next(names))
        with closing(lock_row(url, conv.id)):
            with pytest.raises(clew.Busy, match="55P03") as caught:
                conv.append([clew.user("a", key="a")])
            assert caught.value.retryable
        assert conv.append([clew.user("a", key="a")]).new == 1


def test_a_time_out_of_the_operator_is_busy(url: str) -> None:
    with open_store(f"{url}?options=-c%20statement_timeout=200") as store:
        conv = store.profile("p").create(id=next(names))
        with closing(lock_row(url, conv.id)):
            with pytest.raises(clew.Busy, match="57014") as caught:
                conv.append([clew.user("a", key="a")])
            assert caught.value.retryable
        assert conv.append([clew.user("a", key="a")]).new == 1


@pytest.fixture
def role(server: Server, url: str) -> Iterator[str]:
    """A user with one connection, and its URL."""
    ask(url, "CREATE ROLE one LOGIN PASSWORD 'sesame' CONNECTION LIMIT 1; "
             "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO one; "
             "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO one")  # fmt: skip
    yield server.url(url.rpartition("/")[2], user="one", password="sesame")
    ask(url, "DROP OWNED BY one; DROP ROLE one")


def test_a_server_without_a_free_connection_is_busy(role: str) -> None:
    with open_store(role, 0.5) as store:
        conv = store.profile("p").create(id=next(names))  # keeps the one connection there is
        with pytest.raises(clew.Busy, match="max_connections") as caught:
            open_store(role, 0.5)
        assert caught.value.retryable
        assert "sesame" not in told(caught.value)
        assert conv.append([clew.user("a")]).seqs == (1,)


@pytest.mark.parametrize(
    ("change", "kind", "remedy"),
    [
        ({"password": "wrong one"}, clew.StoreError, "refuses the user or the password"),
        ({"user": "nobody"}, clew.StoreError, "refuses the user or the password"),
        ({"database": "nowhere"}, clew.StoreError, "CREATE DATABASE"),
        ({"sesame": "1"}, clew.InputError, 'parameter: "sesame"'),
        ({"sslmode": "sesame"}, clew.InputError, "sslmode"),
    ],
)
def test_an_address_that_does_not_work_says_why(
    server: Server, change: dict[str, str], kind: type[Exception], remedy: str
) -> None:
    with pytest.raises(kind, match=remedy) as caught:
        clew.open(server.url(**{"database": "postgres", **change}))
    assert not getattr(caught.value, "retryable", False)
    assert server.password not in told(caught.value)
    assert "wrong one" not in told(caught.value)


@pytest.mark.parametrize("password", ["zyx%zz", "zyx[", "zyx%00", "zyx @b"])
def test_a_password_that_is_not_written_well_is_not_shown(server: Server, password: str) -> None:
    url = server.url().replace(server.password, password)
    with pytest.raises(clew.ClewError) as caught:
        open_store(url, 1.0)
    assert "zyx" not in told(caught.value)


def test_a_table_that_was_taken_away_is_named_by_its_remedy(url: str) -> None:
    with open_store(url, 1.0) as store:
        conv = store.profile("p").create(id=next(names))
        ask(url, "ALTER TABLE attempt RENAME TO gone")
        try:
            with pytest.raises(clew.StoreError, match="clew migrate"):
                conv.attempts()
        finally:
            ask(url, "ALTER TABLE gone RENAME TO attempt")
        assert conv.attempts() == ()
        assert conv.append([clew.user("a")]).seqs == (1,)


def fill(conv: clew.Conversation, sent: list[clew.Draft]) -> None:
    """Append for ever."""
    for n in range(10_000):
        text = random.Random(n).randbytes(60_000).hex()
        sent.append(clew.user(text, key=str(n)))
        conv.append(sent[-1:])


def test_a_disk_that_is_full_is_told_and_nothing_is_stored(server: Server) -> None:
    """A tablespace on a small file system; where none can be mounted, a trigger says the same."""
    with ExitStack() as stack:
        place, free = small_disk(server, stack)
        url = server.create_database()
        stack.callback(server.drop_database, url.rpartition("/")[2])
        if place is not None:
            ask(url, f"CREATE TABLESPACE small LOCATION '{place}'")
            ask(server.url(), f"ALTER DATABASE {url.rpartition('/')[2]} SET TABLESPACE small")
        store = stack.enter_context(open_store(url))
        conv = store.profile("p").create(id="c")
        if place is None:
            ask(url, FULL)
        sent: list[clew.Draft] = []
        with pytest.raises(clew.StoreFull, match="no space left"):
            fill(conv, sent)
        stored = len(sent) - 1
        assert [m.key for m in conv.messages()] == [str(n) for n in range(stored)]
        free() if place is not None else ask(url, "DROP FUNCTION full_disk CASCADE")
        assert conv.append([sent[-1]]).seqs == (stored + 1,)
        assert store.verify() == []


FULL = """
CREATE FUNCTION full_disk() RETURNS TRIGGER LANGUAGE plpgsql AS $$BEGIN
  IF NEW.seq > 3 THEN RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END IF; RETURN NEW;
END$$;
CREATE TRIGGER full_disk BEFORE INSERT ON message FOR EACH ROW EXECUTE FUNCTION full_disk()
"""


def small_disk(server: Server, stack: ExitStack) -> tuple[Path | None, Callable[[], None]]:
    """A folder on a file system that is nearly full, and what frees it."""
    folder = server.socket_folder / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        return None, lambda: None
    stack.callback(subprocess.run, ["umount", "-l", str(folder)], check=True)
    place, filler = folder / "space", folder / "filler"
    place.mkdir(mode=0o700)
    shutil.chown(place, "nobody")
    stack.callback(ask, server.url(), "DROP TABLESPACE IF EXISTS small")
    filler.write_bytes(bytes(20 << 20))
    return place, filler.unlink


def test_a_standby_is_read_and_after_its_promotion_written(tmp_path: Path) -> None:
    with Server.start() as server:
        url = server.create_database()
        clew.open(url).close()
        with open_store(url, 5.0) as store:
            conv = store.profile("p").create(id="c")
            conv.append([clew.user("a")])
            server.stop()
            (server.folder / "data" / "standby.signal").touch()
            server.restart()
            assert texts(conv) == ["a"]
            with pytest.raises(clew.StoreError, match="standby") as caught:
                conv.append([clew.user("b", key="b")])
            assert not isinstance(caught.value, Unavailable)
            with clew.open(url) as other:
                assert texts(other.profile("p").open("c")) == ["a"]
            ask(url, "SELECT pg_promote()")
            assert conv.append([clew.user("b", key="b")]).seqs == (2,)
            assert store.verify() == []
