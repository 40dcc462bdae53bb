"""Fails each call of each operation once, and looks at what the caller sees and what is left.

    python faulty.py FOLDER [--shard N/OF] [--spool] [--on] [--only OPERATION]

A process of its own, because the failing file system becomes the default one of SQLite. Prints one
JSON object: the calls seen, the errors that came of them, and what went wrong. `--on`: not only
the call fails, but every later one of its method too, until the operation has ended.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import apsw
from fault_vfs import FAULTS, Call, Fault, FaultVFS, each

import clew
from clew.store import deletion, sqlite_driver

sqlite_driver._PAUSE = 0.0  # nothing passes here by itself, so nobody need wait for it

PAGES = 8
"""The WAL is moved into the database this often, so that operations meet checkpoints."""
KINDS = (clew.StoreUnusable, clew.Busy, clew.SearchUnavailable, clew.Spooled)
"""What an error of the disk or a lock may look like to a caller; damage it is not."""
EXPECTED = (clew.ClewError, apsw.Error, AssertionError, OSError)
"""What is looked at instead of ending everything."""
MISSED = "missed"
"""The operation came to its end before: what it asks of the file depends on the time, too."""
Operation = Callable[[clew.Store], tuple[str, ...]]
"""Gives the keys of the messages that it was told are stored."""


def _main(store: clew.Store) -> clew.Conversation:
    return store.profile("p").open("main")


def _two(key: str, size: int = 1) -> list[clew.Draft]:
    return [clew.user(key + " word" * size, key=key), clew.assistant("and", key=f"{key}+")]


def append(store: clew.Store) -> tuple[str, ...]:
    _main(store).append(_two("a"))
    return "a", "a+"


def image(store: clew.Store) -> tuple[str, ...]:
    picture = clew.Image(data=bytes(range(256)) * 100)
    _main(store).append([clew.Draft(role=clew.Role.USER, parts=(picture,), key="i")])
    return ("i",)


def checkpoint(store: clew.Store) -> tuple[str, ...]:
    keys = [f"c{n}" for n in range(4)]
    for key in keys:
        _main(store).append([clew.user(key, key=key)])
    return tuple(keys)


def turn(store: clew.Store) -> tuple[str, ...]:
    conv = store.profile("p").create(id="turns")
    begun = conv.begin_turn([clew.user("t", key="t")], holder="h")
    if not isinstance(begun, clew.TurnHandle):  # that of the call before, which failed
        if conv.info().turn is None:  # ended, or overtaken by a message that came from the spool
            return ("t",)
        begun = conv.resume_turn(holder="h")
    begun.record([clew.assistant("step", key="t-step")])
    begun.finish([clew.assistant("done", key="t-done")])
    return "t", "t-step", "t-done"


def edit(store: clew.Store) -> tuple[str, ...]:
    _main(store).edit(_main(store).message("m1").uid, clew.user("e", key="e"))
    return ("e",)


def cut(store: clew.Store) -> tuple[str, ...]:
    if len(list(_main(store).messages())) > 2:  # unless the call before, which failed, did it
        _main(store).cut(_main(store).message("m2").uid)
    return ()


def compact(store: clew.Store) -> tuple[str, ...]:
    body = (clew.Inline(clew.Role.USER, (clew.Text("summary"),)),)
    plan = clew.Proposal(covers_to=2, body=body, tokens_before=2, tokens_after=1)
    _main(store).commit_attempt(_main(store).open_attempt().number, plan)
    return ()


def branch(store: clew.Store) -> tuple[str, ...]:
    new = clew.NewConversation(id="branch")
    _main(store).branch(new=new).append([clew.user("b", key="b")])
    return ("b",)


def delete(store: clew.Store) -> tuple[str, ...]:
    try:
        store.profile("p").delete("old")
    except clew.NotFound:
        pass  # the call before, which failed, did all of it
    return ()


def read(store: clew.Store) -> tuple[str, ...]:
    list(_main(store).messages(hidden=True))
    _main(store).context()
    store.profile("p").list()
    return ()


def search(store: clew.Store) -> tuple[str, ...]:
    store.search_index.catch_up()
    assert store.profile("p").search("word").hits
    return ()


def maintain(store: clew.Store) -> tuple[str, ...]:
    store.maintain()
    return ()


OPERATIONS: dict[str, Operation] = {
    f.__name__: f
    for f in (
        append, image, checkpoint, turn, edit, cut, compact, branch, delete, read, search, maintain,
    )
}  # fmt: skip
BESIDES = ("open", "close")
"""Done with the same store by hand."""


class Bench:
    """A store that is laid out anew for each fault."""

    def __init__(self, folder: Path, spool: bool) -> None:
        self.folder, self.spool = folder, spool
        self.path = folder / "store.db"
        self.vfs = FaultVFS()
        apsw.connection_hooks.append(lambda connection: connection.wal_autocheckpoint(PAGES))
        deletion.STEP = 3
        with self.open() as store:
            conv = store.profile("p").create(id="main")
            conv.append([clew.user(f"m{n} word", key=f"m{n}") for n in range(6)])
            old = store.profile("p").create(id="old")
            old.append([clew.user(f"o{n}", key=f"o{n}") for n in range(8)])
            old.branch(old.message("o4").uid, new=clew.NewConversation(id="heir"))
            store.search_index.catch_up()
        self._files = {file.name: file.read_bytes() for file in folder.iterdir()}

    def open(self) -> clew.Store:
        small = clew.Limits(spool=1 << 18)
        return clew.open(self.path, spool=self.spool, limits=small)

    def lay(self) -> None:
        for old in self.folder.iterdir():
            old.unlink()
        for name, data in self._files.items():
            (self.folder / name).write_bytes(data)

    def calls(self, name: str) -> list[Call]:
        """The calls of an operation that meets no fault."""
        error, _, store = self._run(name, self.vfs.record)
        if error is not None:
            raise error
        assert self.vfs.calls is not None
        calls = self.vfs.calls[:]
        if store is not None:
            store.close()
        return calls

    def fault(self, name: str, nth: int, fault: Fault, on: bool) -> tuple[str, str | None]:
        """What the caller saw, and what is wrong; the operation again afterwards, and a look."""
        seen, keys, store = self._run(name, lambda: self.vfs.fail(nth, fault, on))
        self.vfs.heal()
        if not self.vfs.failed:
            if store is not None:
                store.close()
            return MISSED, None
        if wrong := _kind_of(seen):
            return type(seen).__name__, wrong
        try:
            if store is None:
                store = self.open()
            if seen is not None:
                keys |= set(OPERATIONS.get(name, append)(store))
            _main(store).append([clew.user("z", key="z")])
            store.close()
            wrong = self._look(keys | {"before", "z", *(f"m{n}" for n in range(6))})
        except EXPECTED:
            wrong = f"after {seen!r}: {traceback.format_exc(limit=-6)}"
        return type(seen).__name__ if seen else "nothing", wrong

    def _run(
        self, name: str, arm: Callable[[], None]
    ) -> tuple[BaseException | None, set[str], clew.Store | None]:
        """An operation on a store that has just written; its error, what it acknowledged, and the
        store, if it is open."""
        self.lay()
        store = None
        try:
            if name == "open":
                arm()
            store = self.open()
            _main(store).append([clew.user("before", key="before")])
            if name == "open":
                return None, {"before"}, store
            arm()
            if name == "close":
                store.close()
                return None, {"before"}, None
            return None, {"before", *OPERATIONS[name](store)}, store
        except EXPECTED as error:
            return error, set() if name == "open" else {"before"}, store

    def _look(self, keys: set[str]) -> str | None:
        """Everything is there once, and batches whole."""
        with self.open() as store:
            _main(store).append([clew.user("last", key="last")])  # takes in what is in the spool
            if problems := store.verify():
                return str(problems[:3])
            found: Counter[str] = Counter()
            for info in store.list_all(limit=100).items:
                base = info.id == "main" or info.id == "turns" or info.id == "branch"
                for message in store.profile("p").open(info.id).messages(hidden=True):
                    if message.key and base and (info.id != "branch" or message.key == "b"):
                        found[message.key] += 1
        if lost := keys - {"before"} - set(found):
            return f"lost {sorted(lost)}"
        doubled = [key for key, n in found.items() if n > 1]
        return f"doubled {doubled}" if doubled else None


def _kind_of(error: BaseException | None) -> str | None:
    """Whether an error is none that a disk may cause. What a connection is closed with, SQLite
    keeps to itself, but APSW hands on what a VFS in Python raised meanwhile."""
    if error is None or isinstance(error, KINDS):
        return None
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, apsw.Error) and any(f.name == "Connection.close" for f in frames):
        return None
    return f"an error of the wrong kind: {error!r}, of {error.__cause__!r}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--spool", action="store_true")
    parser.add_argument("--on", action="store_true")
    parser.add_argument("--only", action="append", choices=(*OPERATIONS, *BESIDES))
    chosen = parser.parse_args()
    shard, of = map(int, chosen.shard.split("/"))
    chosen.folder.mkdir()
    bench = Bench(chosen.folder, chosen.spool)
    calls: dict[str, int] = {}
    methods: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    wrong: list[str] = []
    faults = 0
    for name in chosen.only or (*OPERATIONS, *BESIDES):
        recorded = bench.calls(name)
        calls[name] = len(recorded)
        methods.update(f"{call.method} {call.kind}" for call in recorded)
        for at, (nth, call, fault) in enumerate(each(recorded)):
            if at % of != shard or (chosen.on and fault.code == apsw.SQLITE_BUSY):
                continue  # (a lock that stays is waited for, half a minute)
            faults += 1
            kind, problem = bench.fault(name, nth, fault, chosen.on)
            seen[kind] += 1
            if problem:
                where = f"{name}, call {nth} ({call.method} {call.kind}), {fault.name}"
                wrong.append(f"{where}: {problem}")
    known = sorted(FAULTS)
    json.dump(
        {"calls": calls, "methods": methods, "known": known, "faults": faults, "seen": seen,
         "wrong": wrong}, sys.stdout,
    )  # fmt: skip


if __name__ == "__main__":
    main()
