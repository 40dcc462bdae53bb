"""A process that writes until it is killed. Prints one line for each message that was accepted.

    python worker.py STORE NAME FIRST COUNT

Step n of a worker is the same whenever it is done: same keys, same ids. Whoever starts it again at
the first step that was not acknowledged repeats what may or may not have been stored.
"""

from __future__ import annotations

import json
import random
import sys

import clew

ROOM, TTL = "room", 3_600_000_000
"""A conversation of everybody; microseconds that no test waits for: only death frees the right."""


def say(step: int, conversation: str, *messages: tuple[str, int | None]) -> None:
    """Tell the parent what was accepted: (key, seq), or (key, None) if it waits in the inbox."""
    line = {"step": step, "conversation": conversation, "messages": messages}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


class Worker:
    """Writes to its own conversation and to the room."""

    def __init__(self, store: clew.Store, name: str) -> None:
        self.name = name
        self.profile = store.profile("crash")
        self.own = self.profile.create(id=f"own-{name}")
        self.room = self.profile.create(id=ROOM)

    def run(self, first: int, count: int) -> None:
        for n in range(first, first + count):
            rng = random.Random(f"{self.name} {n}")
            kinds = (self.append, self.append, self.turn, self.cut, self.branch, self.compact)
            rng.choice(kinds)(n, rng)

    def append(self, n: int, rng: random.Random) -> None:
        """One message or several, to the room or to oneself."""
        conv = rng.choice((self.own, self.room))
        keys = [f"{self.name}-{n}-{i}" for i in range(rng.choice((1, 1, 3)))]
        done = conv.append([clew.user(key * rng.choice((1, 50)), key=key) for key in keys])
        seqs = done.seqs if len(done.seqs) == len(keys) else [None] * len(keys)
        say(n, conv.id, *zip(keys, seqs, strict=True))

    def turn(self, n: int, rng: random.Random) -> None:
        """A turn in the room; when somebody else has one, the message waits for it."""
        key = f"{self.name}-{n}"
        begun = self.room.begin_turn([clew.user(key, key=key)], ttl=TTL)
        if not isinstance(begun, clew.TurnHandle):
            say(n, ROOM, (key, None))
            return
        step, last = f"{key}-step", f"{key}-last"
        begun.record([clew.assistant(step, key=step)], take_inbox=True)
        begun.finish([clew.assistant(last, key=last)])
        say(n, ROOM, (key, None), (step, None), (last, None))

    def cut(self, n: int, rng: random.Random) -> None:
        """Hide the last few messages, and add one."""
        key = f"{self.name}-{n}"
        shown = self.own.log(limit=3, order="newest").items
        if shown:
            self.own.cut(shown[-1].uid)
        done = self.own.append([clew.user(key, key=key)])
        say(n, self.own.id, (key, done.seqs[0]))

    def branch(self, n: int, rng: random.Random) -> None:
        """A branch of the room, with a message of its own."""
        key = f"{self.name}-{n}"
        branch = self.room.branch(new=clew.NewConversation(id=f"branch-{key}"))
        done = branch.append([clew.user(key, key=key)])
        say(n, branch.id, (key, done.seqs[0]))

    def compact(self, n: int, rng: random.Random) -> None:
        """A compaction of one's own conversation, and a message above it."""
        key = f"{self.name}-{n}"
        head = self.own.info().head
        if head > 2:
            body = (clew.Inline(clew.Role.USER, (clew.Text("summary"),)),)
            plan = clew.Proposal(covers_to=head // 2, body=body, tokens_before=100, tokens_after=10)
            self.own.commit_attempt(self.own.open_attempt().number, plan)
        done = self.own.append([clew.user(key, key=key)])
        say(n, self.own.id, (key, done.seqs[0]))


def main() -> None:
    path, name, first, count = sys.argv[1:]
    with clew.open(path) as store:
        Worker(store, name).run(int(first), int(count))


if __name__ == "__main__":
    main()
