"""Several processes on one PostgreSQL server, while they and it are killed, stopped and cut off."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import psycopg
import pytest
from proxy import Cut, Proxy

import clew
from clew.clock import SystemClock
from clew.testing.postgres import Server

WORKER = Path(__file__).with_name("postgres_worker.py")
WAIT = 60.0
SECONDS = float(os.environ.get("CLEW_CHAOS_SECONDS", "15"))
SEED = os.environ.get("CLEW_CHAOS_SEED")
KILL_SOME = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE application_name = 'clew' AND datname = current_database() AND random() < 0.5
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server.start() as server:
        yield server


@pytest.fixture
def url(server: Server) -> str:
    url = server.create_database()
    clew.open(url).close()
    return url


def ask(url: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def deadlocks(server: Server) -> int:
    """So far. Each is ended by the server; that there is none shows the order of the locks."""
    return (server.folder / "server.log").read_text().count("deadlock detected")


class Process:
    """A worker that is talked to by lines."""

    def __init__(self, *args: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), *map(str, args)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.communicate(timeout=WAIT)
        assert self.process.returncode == 0

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


# ---------------------------------------------------------------- races


def test_of_those_who_create_at_once_one_wins_and_all_agree(server: Server, url: str) -> None:
    before_all = deadlocks(server)
    processes = [Process("race", url, f"w{n}") for n in range(4)]
    for n in range(8):
        for process in processes:
            process.say(str(n))
        assert {process.hear() for process in processes} == {"ready"}
        for process in processes:
            process.say("go")
        answers = [json.loads(process.hear()) for process in processes]
        for same in ("bound", "uid", "got", "seqs"):
            assert len({str(answer[same]) for answer in answers}) == 1, same
        assert sorted(answer["first"] for answer in answers) == [0, 0, 0, 1]
        assert sorted(answer["again"] for answer in answers) == [False, True, True, True]
        assert sorted(answer["job"] for answer in answers) == [False, False, False, True]
        claims = Counter(answer["alias"] for answer in answers)
        assert claims == {"claimed": 1, "ambiguous": 3}
        before, after = zip(*(answer["reset"] for answer in answers), strict=True)
        assert len(set(after)) == 4
        assert set(before) - set(after) == {None}  # one after the other
        with clew.open(url) as store:
            last = store.profile("race").bound(f"reset-{n}")
            assert last is not None
            assert set(after) - set(before) == {last.id}
    for process in processes:
        with process:
            pass
    assert deadlocks(server) == before_all
    with clew.open(url) as store:
        assert store.verify() == []


def test_branches_show_the_same_while_their_origin_is_deleted(server: Server, url: str) -> None:
    before_all = deadlocks(server)
    with clew.open(url) as store:
        profile = store.profile("p")
        origin = profile.create(id="origin")
        for first in range(1, 1200, 200):
            origin.append([clew.user(str(n)) for n in range(first, first + 200)])
        origin.append([clew.user("not inherited")])
        uids = [m.uid for m in origin.messages()]
        heads = {"a": 1200, "b": 700, "c": 300}
        for id, head in heads.items():
            origin.branch(uids[head - 1], new=clew.NewConversation(id=id))
        inner = profile.open("a").branch(uids[999], new=clew.NewConversation(id="d"))
        assert inner.info().base == 1000
        heads["d"] = 1000
        processes = [Process("branch", url, id, head + 1) for id, head in heads.items()]
        for process in processes:
            process.hear()
        profile.delete("origin")
        for process in processes:
            process.hear()
        profile.delete("a")  # under its own process, which is told
        for process in processes[1:]:
            process.hear()
            process.hear()
        gone = processes[0].process
        gone.communicate(timeout=WAIT)
        assert gone.returncode == 3
        for process in processes[1:]:
            with process:
                pass
        assert deadlocks(server) == before_all
        assert store.verify() == []
        assert ask(url, "SELECT id FROM conversation ORDER BY id") == [("b",), ("c",), ("d",)]


# ---------------------------------------------------------------- the right to run


class Wrong(SystemClock):
    """The clock of a host that nobody has set."""

    def now(self) -> int:
        return super().now() - 10 * 365 * 86_400_000_000


def test_a_paused_host_that_wakes_up_after_a_take_over_cannot_write(url: str) -> None:
    """Its right expires by the server's clock, whatever the next holder's clock says."""
    with clew.open(url, clock=Wrong()) as store:
        conv = store.profile("p").create(id="c")
        with Process("hold", url, "c", 500_000) as paused:
            assert paused.hear() == "begun"
            paused.say("one")
            assert paused.hear() == "recorded"
            paused.process.send_signal(signal.SIGSTOP)
            paused.say("two")
            turn, refused, end = None, 0, monotonic() + WAIT
            while turn is None:
                assert monotonic() < end
                try:
                    turn = conv.resume_turn(ttl=60_000_000)
                except clew.TurnOpen:
                    refused += 1
                    sleep(0.02)
            turn.record([clew.assistant("mine")])
            paused.process.send_signal(signal.SIGCONT)
            assert paused.hear() == "lost"
            turn.finish([clew.assistant("done")])
            paused.say("three")
            assert paused.hear() == "lost"
        assert refused > 0
        assert [m.text for m in conv.messages()] == ["go", "one", "mine", "done"]
        assert store.verify() == []


# ---------------------------------------------------------------- chaos


class Worker:
    """One of the processes, and its successors."""

    def __init__(self, url: str, name: str, log: Path) -> None:
        self.url, self.name, self.log, self.lives = url, name, log, 0
        self.log.touch()
        self.start()

    def start(self) -> None:
        steps = self.steps()
        first = steps[-1]["step"] + 1 if steps else 0
        self.lives += 1
        command = ("chaos", self.url, self.name, first, self.lives, self.log)
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), *map(str, command)],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def steps(self) -> list[dict[str, Any]]:
        """What it has acknowledged; a line that is not whole was not."""
        lines = self.log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def end(self, how: signal.Signals) -> None:
        self.process.send_signal(how)
        _, errors = self.process.communicate(timeout=WAIT)
        assert errors == ""
        assert self.process.returncode in (0, -how)


class Controller:
    """Does the damage: each time, then waits until all go on."""

    def __init__(
        self, server: Server, url: str, proxy: Proxy, workers: list[Worker], rng: random.Random
    ) -> None:
        self.server, self.url, self.proxy = server, url, proxy
        self.workers, self.rng = workers, rng
        self.done: Counter[str] = Counter()

    def strike(self) -> None:
        what = self.rng.choice(
            (self.kill_worker, self.stop_worker, self.stop_worker, self.cut_off, self.lose_commits,
             self.lose_commits, self.crash_server, self.kill_server, self.restart_server)
        )  # fmt: skip
        before = [len(worker.steps()) for worker in self.workers]
        what()
        self.done[what.__name__] += 1
        end = monotonic() + WAIT
        while any(len(worker.steps()) <= n for worker, n in zip(self.workers, before, strict=True)):
            assert monotonic() < end, (what.__name__, before)
            for worker in self.workers:
                assert worker.process.poll() is None, worker.process.communicate()[1]
            sleep(0.01)

    def kill_worker(self) -> None:
        worker = self.rng.choice(self.workers)
        worker.end(signal.SIGKILL)
        worker.start()

    def stop_worker(self) -> None:
        """For longer than it may hold a right."""
        worker = self.rng.choice(self.workers)
        worker.process.send_signal(signal.SIGSTOP)
        sleep(self.rng.uniform(0.1, 1.0))
        worker.process.send_signal(signal.SIGCONT)

    def cut_off(self) -> None:
        for _ in range(5):
            ask(self.url, KILL_SOME)

    def lose_commits(self) -> None:
        """What a worker has sent arrives, arrives late or never; it hears nothing of it."""
        for _ in range(16):
            how = self.rng.choice(("unsent", "sent", "sent", "late", "lost late"))
            self.proxy.arm(Cut(self.rng.choice(("commit", "commit", "commit", 9)), how))
            end = monotonic() + WAIT
            while not self.proxy.made:
                assert monotonic() < end
                sleep(0.002)

    def crash_server(self) -> None:
        self.server.stop("immediate")
        self.server.restart()

    def kill_server(self) -> None:
        self.server.kill()
        self.server.restart()

    def restart_server(self) -> None:
        self.server.stop("fast")
        self.server.restart()


def a_moment(url: str) -> None:
    """For a commit that comes late: until somebody waits for it, if anybody does."""
    end = monotonic() + 0.5
    with suppress(psycopg.Error):
        while monotonic() < end and ask(url, WAITING) == [(0,)]:
            sleep(0.005)


WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


def test_chaos(server: Server, url: str, tmp_path: Path) -> None:
    seed = int(SEED) if SEED else random.SystemRandom().randrange(1 << 32)
    print(f"CLEW_CHAOS_SEED={seed}")
    deadlocks_before = deadlocks(server)
    with Proxy(url, lambda: a_moment(url)) as proxy:
        workers = [Worker(proxy.url, f"w{n}", tmp_path / f"w{n}.log") for n in range(4)]
        controller = Controller(server, url, proxy, workers, random.Random(seed))
        end = monotonic() + SECONDS
        try:
            while monotonic() < end:
                controller.strike()
        finally:
            for worker in workers:
                worker.process.send_signal(signal.SIGCONT)
                worker.end(signal.SIGTERM)
    steps = {worker.name: worker.steps() for worker in workers}
    print(dict(controller.done), {name: len(found) for name, found in steps.items()})
    check(url, [ack for found in steps.values() for step in found for ack in step["acks"]])
    kinds = Counter(ack[0] for found in steps.values() for step in found for ack in step["acks"])
    print(dict(kinds))
    assert deadlocks(server) == deadlocks_before
    assert all(kinds[kind] for kind in ("stored", "right", "cut", "compacted"))


def check(url: str, acks: list[Any]) -> None:
    with clew.open(url) as store:
        assert store.verify() == []
        profile = store.profile("p")
        for info in profile.list(limit=1000).items:
            messages = list(profile.open(info.id).messages(hidden=True))
            assert [m.seq for m in messages] == list(range(1, len(messages) + 1))
            assert most(m.uid for m in messages) <= 1
            assert most(m.text for m in messages) <= 1, info.id
            assert most(m.key for m in messages if m.key) <= 1
    places: Counter[tuple[str, str]] = Counter(
        ask(
            url,
            "SELECT c.id, encode(m.uid, 'hex') FROM message m JOIN conversation c "
            "ON c.no = m.conversation_no UNION ALL SELECT c.id, encode(i.uid, 'hex') FROM inbox i "
            "JOIN conversation c ON c.no = i.conversation_no WHERE i.state <> 'taken'",
        )
    )  # type: ignore[arg-type]
    rights: defaultdict[str, list[int]] = defaultdict(list)
    for kind, id, what in acks:
        if kind == "stored":
            assert [places[id, uid] for uid in what] == [1] * len(what), (id, what)
        elif kind == "right":
            rights[id].append(what)
    for id, fences in rights.items():
        assert most(fences) == 1, id  # a fence has one holder
        assert ask(url, f"SELECT fence >= {max(fences)} FROM conversation WHERE id = '{id}'") == [
            (True,)
        ]
    committed = set(
        ask(
            url,
            "SELECT c.id, k.attempt, k.generation FROM compaction k JOIN conversation c "
            "ON c.no = k.conversation_no",
        )
    )
    for kind, id, what in acks:
        assert kind != "compacted" or (id, *what) in committed
    cuts = set(ask(url, "SELECT c.id, k.number FROM cut k JOIN conversation c "
                        "ON c.no = k.conversation_no"))  # fmt: skip
    assert all((id, what) in cuts for kind, id, what in acks if kind == "cut")
    open_turns = ask(
        url, "SELECT count(*) FROM turn WHERE state IN ('running', 'waiting') "
        "GROUP BY conversation_no HAVING count(*) > 1")  # fmt: skip
    assert open_turns == []


def most(values: Any) -> int:
    """How often the one that comes most often is there."""
    return max(Counter(values).values(), default=0)
