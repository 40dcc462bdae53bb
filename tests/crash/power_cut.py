"""Works on a store and records what reaches the disk, from the making of the file on.

    python power_cut.py FOLDER RESULT STEPS [--normal]

A process of its own, because the recording file system becomes the default one of SQLite. The WAL
is moved into the database every 40 pages instead of every 1,000, so that a record of some seconds
holds many checkpoints. `--normal` is a control: no sync at a commit.
"""

from __future__ import annotations

import pickle
import random
import sys
import threading
from pathlib import Path

import apsw
from recording_vfs import RecordingVFS

import clew
from clew.store import deletion, sqlite_connections, vacuum
from clew.testing.clock import FakeClock

PAGES = 40
WRITERS = 4


class Work:
    """Everything that writes, by turns; each key is acknowledged once its call has returned."""

    def __init__(self, store: clew.Store, vfs: RecordingVFS, rng: random.Random) -> None:
        self.store, self.vfs, self.rng = store, vfs, rng
        self.profile = store.profile("p")
        self.conv = self.profile.conversation("main")

    def step(self, n: int) -> None:
        """One step. The order goes through all kinds before it repeats one."""
        kinds = (
            self.append, self.turn, self.edit, self.compact, self.branch, self.image,
            self.append, self.cut, self.crowd, self.delete, self.catch_up,
        )  # fmt: skip
        kinds[n % len(kinds)](f"k{n}")

    def say(self, key: str) -> clew.Draft:
        return clew.user(f"{key} " + "word " * self.rng.choice((1, 40, 800)), key=key)

    def append(self, key: str) -> None:
        self.conv.append([self.say(key), clew.assistant("and", key=f"{key}+")])
        self.stored(key, f"{key}+")

    def turn(self, key: str) -> None:
        turn = self.conv.begin_turn([self.say(key)])
        assert isinstance(turn, clew.TurnHandle)
        self.stored(key)
        turn.record([clew.assistant("step", key=f"{key}-step")])
        self.stored(f"{key}-step")
        turn.finish([clew.assistant("done", key=f"{key}-done")])
        self.stored(f"{key}-done")

    def edit(self, key: str) -> None:
        self.conv.edit(self.conv.log(limit=1, order="newest").items[0].uid, self.say(key))
        self.stored(key)

    def compact(self, key: str) -> None:
        head = self.conv.info().head
        body = (clew.Inline(clew.Role.USER, (clew.Text("summary"),)),)
        plan = clew.Proposal(covers_to=head, body=body, tokens_before=2, tokens_after=1)
        self.conv.commit_attempt(self.conv.open_attempt().number, plan)
        self.append(key)

    def branch(self, key: str) -> None:
        self.conv.branch().append([self.say(key)])
        self.stored(key)

    def image(self, key: str) -> None:
        picture = clew.Image(data=self.rng.randbytes(9_000))
        self.conv.append([clew.Draft(role=clew.Role.USER, parts=(picture,), key=key)])
        self.stored(key)

    def cut(self, key: str) -> None:
        self.conv.cut(self.conv.log(limit=2, order="newest").items[-1].uid)
        self.append(key)

    def crowd(self, key: str) -> None:
        """Several at once, who share a commit; each tells of its own."""

        def write(n: int) -> None:
            self.profile.conversation(f"crowd {n}").append([clew.user(key, key=f"{key} {n}")])
            self.stored(f"{key} {n}")

        threads = [threading.Thread(target=write, args=(n,)) for n in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def delete(self, key: str) -> None:
        """A conversation that a branch inherits from, in steps of a few rows; and what is free then
        goes out of the file."""
        old = self.profile.create()
        keys = [f"{key} {n}" for n in range(12)]
        old.append([clew.user(self.rng.randbytes(2_000).hex(), key=key) for key in keys])
        self.stored(*keys)
        heir = old.branch(old.message(keys[5]).uid)
        heir.append([clew.user("own", key=key)])
        self.stored(key)
        self.vfs.acknowledge("giving up", *keys[6:])
        self.profile.delete(old.id)
        self.vfs.acknowledge("gone", old.id)
        backend = self.store._backend  # pyright: ignore[reportPrivateUsage]
        assert vacuum.give_back(backend, self.store.search_index) > 0

    def catch_up(self, key: str) -> None:
        self.store.search_index.catch_up()
        self.append(key)

    def stored(self, *keys: str) -> None:
        self.vfs.acknowledge("stored", *keys)


def main() -> None:
    folder, result, steps = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    deletion.STEP = 4
    vacuum.KEPT = 1 << 30  # no page stays free
    apsw.connection_hooks.append(lambda connection: connection.wal_autocheckpoint(PAGES))
    if "--normal" in sys.argv:
        control = sqlite_connections._WRITER.replace("FULL", "NORMAL")  # pyright: ignore[reportPrivateUsage]
        sqlite_connections._WRITER = control  # pyright: ignore[reportPrivateUsage]
    vfs = RecordingVFS("recording")
    clock, rng = FakeClock(step=1000), random.Random(7)
    for life in range(3):  # closed and opened again twice
        with clew.open(folder / "store.db", clock=clock, spool=False) as store:
            work = Work(store, vfs, rng)
            for n in range(life * steps // 3, (life + 1) * steps // 3):
                work.step(n)
    result.write_bytes(pickle.dumps(vfs.events))


if __name__ == "__main__":
    main()
