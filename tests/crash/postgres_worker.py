"""Processes of the tests on PostgreSQL.

    python postgres_worker.py chaos URL NAME FIRST LIFE LOG
    python postgres_worker.py race URL NAME
    python postgres_worker.py branch URL ID FIRST_SEQ
    python postgres_worker.py hold URL ID TTL

What was acknowledged goes to LOG, synced, one line of JSON for each step. A step is the same
whenever it is done (same keys, same ids), so a process that takes the place of a killed one begins
at the first step that is not in the log.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import clew
from clew.store.opening import open_parts
from clew.store.store import Store

ROOMS, ROUTES = ("room-0", "room-1"), ("route-0", "route-1")
TTL = 300_000
"""Microseconds: a process that is stopped for longer is taken over."""
REFUSALS = (clew.Refused, clew.NotFound, clew.InputError)


def open_store(url: str) -> Store:
    return Store(open_parts(url, None, None, None, patience=60.0))


class Chaos:
    """Does everything at once, for ever."""

    def __init__(self, store: clew.Store, name: str, life: str, log: str) -> None:
        self.store, self.name, self.life = store, name, life
        self.profile = store.profile("p")
        self.own = self.profile.create(id=f"own-{name}")
        self.rooms = [self.profile.create(id=id) for id in ROOMS]
        self.log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.acks: list[tuple[str, str, Any]] = []
        self.stopping = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: self.stopping.set())

    def run(self, first: int) -> None:
        n = first
        while not self.stopping.is_set():
            rng = random.Random(f"{self.name} {n}")
            step: Callable[[int, random.Random], None] = rng.choice(
                (self.append, self.append, self.turn, self.turn, self.resume, self.cut,
                 self.compact, self.branch, self.receive, self.reset)
            )  # fmt: skip
            try:
                step(n, rng)
            except REFUSALS as error:
                self.acks.append(("refused", step.__name__, type(error).__name__))
            line = json.dumps({"step": n, "acks": self.acks}) + "\n"
            os.write(self.log, line.encode())
            os.fsync(self.log)
            self.acks, n = [], n + 1

    def stored(self, conv: clew.Conversation, appended: clew.Appended) -> None:
        self.acks.append(("stored", conv.id, appended.uids))

    def some(self, rng: random.Random) -> clew.Conversation:
        return rng.choice((self.own, *self.rooms))

    def append(self, n: int, rng: random.Random) -> None:
        """One message or three, with a key each, or with none."""
        conv, count, keyed = self.some(rng), rng.choice((1, 1, 3)), rng.random() < 0.5
        names = [f"{self.name}-{n}-{i}" for i in range(count)]
        if keyed:
            drafts = [clew.user(name * rng.choice((1, 40)), key=name) for name in names]
        else:
            drafts = [clew.user(f"{name} of {self.life}") for name in names]
        self.stored(conv, conv.append(drafts))

    def turn(self, n: int, rng: random.Random) -> None:
        conv, key = rng.choice(self.rooms), f"{self.name}-{n}"
        begun = conv.begin_turn([clew.user(key, key=key)], ttl=TTL)
        self.stored(conv, begun.appended)
        if isinstance(begun, clew.TurnHandle):
            self.go_on(conv, begun, key, rng)

    def resume(self, n: int, rng: random.Random) -> None:
        """Take over what somebody left, if that is allowed."""
        conv = rng.choice(self.rooms)
        self.go_on(conv, conv.resume_turn(ttl=TTL), f"{self.name}-{n}-r", rng)

    def go_on(
        self, conv: clew.Conversation, turn: clew.TurnHandle, key: str, rng: random.Random
    ) -> None:
        self.acks.append(("right", conv.id, turn.right.fence))
        for i in range(rng.randrange(3)):
            step = turn.record([clew.assistant(f"{key}-{i} of {self.life}")], take_inbox=True)
            self.stored(conv, step.appended)
        if rng.random() < 0.3:
            turn.wait()
        elif rng.random() < 0.9:  # else it is left as it is
            turn.finish([clew.assistant(f"{key}-end", key=f"{key}-end")])

    def cut(self, n: int, rng: random.Random) -> None:
        conv = self.some(rng)
        shown = conv.log(limit=3, order="newest").items
        made = conv.cut(shown[-1].uid) if shown else None
        if made is not None:
            self.acks.append(("cut", conv.id, made.number))
            if rng.random() < 0.5:
                conv.undo_cut(made.number)

    def compact(self, n: int, rng: random.Random) -> None:
        conv = self.some(rng)
        head = conv.info().head
        body = (clew.Inline(clew.Role.USER, (clew.Text("in short"),)),)
        attempt = conv.open_attempt().number
        plan = clew.Proposal(
            covers_to=max(1, head // 2), body=body, tokens_before=9, tokens_after=1
        )
        done = conv.commit_attempt(attempt, plan)
        self.acks.append(("compacted", conv.id, [attempt, done.generation]))

    def branch(self, n: int, rng: random.Random) -> None:
        key, origin = f"{self.name}-{n}", self.some(rng)
        conv = origin.branch(new=clew.NewConversation(id=f"branch-{key}"))
        self.stored(conv, conv.append([clew.user(key, key=key)]))

    def receive(self, n: int, rng: random.Random) -> None:
        key, route = f"{self.name}-{n}", rng.choice(ROUTES)

        def deliver() -> clew.Received:
            return self.profile.receive(
                route, [clew.user(key, key=key)], source="chat", account="a", key=key
            )

        done = deliver()
        assert done.appended is not None
        self.acks.append(("stored", done.conversation, done.appended.uids))
        again = deliver()
        assert (again.conversation, again.appended) == (done.conversation, done.appended)

    def reset(self, n: int, rng: random.Random) -> None:
        new = clew.NewConversation(source="chat", id=f"reset-{self.name}-{n}")
        self.profile.reset(rng.choice(ROUTES), source="chat", new=new)


def race(store: clew.Store, name: str) -> None:
    """For each line of stdin: make and claim what all others of the race do, too."""
    profile = store.profile("race")
    for line in sys.stdin:
        n = line.strip()
        mine = profile.create(id=f"{name}-{n}")
        print("ready", flush=True)
        sys.stdin.readline()
        bound = profile.conversation(f"key-{n}")
        made = profile.create(id=f"id-{n}")
        first = made.append([clew.user("first", key="k")])
        got = profile.receive(
            f"route-{n}", [clew.user("hi")], source="chat", account="a", key=f"delivery-{n}"
        )
        reset = profile.reset(f"reset-{n}")
        alias = mine.claim_alias("cli", f"foreign-{n}")
        job = store.claim_job(f"job-{n}")
        assert got.appended is not None
        answer = {
            "bound": bound.id, "first": first.new, "uid": first.uids, "got": got.conversation,
            "again": got.again, "seqs": got.appended.seqs,
            "reset": [reset.previous, reset.conversation],
            "alias": alias, "job": job is not None,
        }  # fmt: skip
        print(json.dumps(answer), flush=True)


def branch(store: clew.Store, id: str, first: int) -> None:
    """Append to a branch and read it, until stdin ends: it always shows 1, 2, 3, ... NotFound once
    it is deleted itself."""
    conv = store.profile("p").open(id)
    stopping = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), stopping.set()), daemon=True).start()
    seq = first
    while not stopping.is_set():
        assert conv.append([clew.user(str(seq), key=str(seq))]).seqs == (seq,)
        assert [m.text for m in conv.messages()] == [str(n) for n in range(1, seq + 1)]
        assert conv.append([clew.user(str(seq), key=str(seq))]).new == 0
        seq += 1
        print(seq, flush=True)


def hold(store: clew.Store, id: str, ttl: int) -> None:
    """Take the right, and with each line of stdin try to write under it."""
    conv = store.profile("p").open(id)
    turn = conv.begin_turn([clew.user("go")], ttl=ttl)
    assert isinstance(turn, clew.TurnHandle)
    print("begun", flush=True)
    for line in sys.stdin:
        try:
            turn.record([clew.assistant(line.strip())])
            print("recorded", flush=True)
        except clew.RightLost:
            print("lost", flush=True)


def main() -> None:
    what, url, name, *rest = sys.argv[1:]
    with open_store(url) as store:
        if what == "chaos":
            Chaos(store, name, *rest[1:]).run(int(rest[0]))
        elif what == "race":
            race(store, name)
        elif what == "branch":
            try:
                branch(store, name, int(rest[0]))
            except clew.NotFound:
                sys.exit(3)
        elif what == "hold":
            hold(store, name, int(rest[0]))


if __name__ == "__main__":
    main()
