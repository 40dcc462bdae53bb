"""Copies of stores, between all engines: equal, resumable, never over what others wrote."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from copying import ENGINES, drop, fill, place, told
from hypothesis import given
from hypothesis import strategies as st

import clew
from clew.errors import StoreMoved
from clew.store import address, dictionary
from clew.store.backup import restore
from clew.store.copy import CopyReport, compare, copy, messages
from clew.store.doctor import diagnose
from clew.store.engines import NoStore
from clew.store.opening import open_parts
from clew.store.sqlite_writer import SqliteWriter
from clew.testing.postgres import Server
from servers import WAIT, ask, until

DIRECTIONS = list(itertools.product(ENGINES, ENGINES))
Write = Callable[[clew.Store], None]
WRITER = Path(__file__).with_name("copy_writer.py")


@pytest.fixture(autouse=True)
def dropped() -> Iterator[None]:
    yield
    drop()


@pytest.fixture(params=DIRECTIONS, ids="-".join)
def both(request: pytest.FixtureRequest, fast_dir: Path) -> tuple[str, str]:
    """A filled source, and a place for its copy."""
    source = place(request.param[0], fast_dir, "source")
    with clew.open(source) as store:
        fill(store)
    return source, place(request.param[1], fast_dir, "copy")


@pytest.fixture
def files(fast_dir: Path) -> tuple[str, str]:
    source = place("file", fast_dir, "source")
    with clew.open(source) as store:
        fill(store)
    return source, place("file", fast_dir, "copy")


def half(where: str) -> clew.Store:
    """A copy that may be unfinished, as who copies opens it."""
    return clew.Store(open_parts(where, None, None, None, unfinished=True))


def interrupted(what: str, done: int, of: int) -> None:
    raise KeyboardInterrupt


def same(source: str, dest: str) -> CopyReport:
    """Copy, and look at both through the handles."""
    report = copy(source, dest)
    assert report.problems == ()
    assert told(dest) == told(source)
    return report


# ---------------------------------------------------------------- equal


def test_a_copy_equals_its_source(both: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """In small steps, with a dictionary, twice; and back again."""
    monkeypatch.setattr(messages, "BATCH", 7)
    monkeypatch.setattr(messages, "STEP", 3)
    monkeypatch.setattr(dictionary, "ENOUGH", 20)
    source, dest = both
    with clew.open(source) as store:
        store.maintain()
        store.profile("two").create(id="packed").append([clew.user("word " * 300)])
    report = same(source, dest)
    assert (report.rows["dictionary"], report.moved) == (1, False)
    assert report.copied == report.messages > 50
    assert same(source, dest).copied == 0
    again = copy(source, dest)
    assert (again.copied, again.rows) == (0, report.rows)


def test_a_copy_is_brought_up_to_date(both: tuple[str, str]) -> None:
    """After everything that can change what is there already."""
    source, dest = both
    copy(source, dest)
    with clew.open(source) as store:
        one, two = store.profile("one"), store.profile("two")
        conv = one.conversation("chat-1", source="web")
        conv.cut(list(conv.messages())[-1].uid)
        conv.set_todos([clew.Todo("three")])
        conv.close_goal()
        conv.beat("agent", "at work")
        one.reset("chat-1", source="web")
        one.open("branch").set_prompt("another")
        one.delete("heir")
        one.create(id="heir", title="its id again").append([clew.user("new")])
        one.delete(conv.id)  # its branches take over what they inherit
        two.open("busy").interrupt_turn()
        two.open("hidden").reopen()
        two.open("hidden").append([clew.user("more")])
        two.create(id="young").append([clew.user(str(i)) for i in range(600)])
        one.receive("route-1", [clew.user("and more")], source="mail", account="a", key="2")
    same(source, dest)
    assert same(source, dest).copied == 0


def test_a_deletion_under_way_is_copied_as_what_it_is(files: tuple[str, str]) -> None:
    """With a branch that still needs the rows it is there; else it is gone already."""
    source, dest = files
    before = copy(source, dest)
    connection = apsw.Connection(source)
    began = "UPDATE conversation SET binned_at = 1, deleting = 1"
    connection.execute(f"{began} WHERE id IN ('branch', 'empty')")
    connection.close()
    report = copy(source, dest)
    with clew.open(dest) as store:
        with pytest.raises(clew.NotFound):
            store.profile("one").open("empty")
        assert len(list(store.profile("one").open("twig").messages())) > 3
        store.maintain()
        assert len(list(store.profile("one").open("twig").messages())) > 3
        assert store.verify() == []
    assert report.conversations == before.conversations - 1


def test_ids_need_not_ascend_as_seqs_do(files: tuple[str, str]) -> None:
    """As on a server, where the transaction that began first may commit last."""
    source, dest = files
    connection = apsw.Connection(source)
    ((newest,),) = connection.execute("SELECT max(id) FROM message").fetchall()
    for seq, to in ((3, 2), (7, 1), (8, 3)):
        _renumber(connection, seq, newest + to)
    connection.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "BATCH", 2)
        patch.setattr(messages, "STEP", 1)
        copy(source, dest)
    ours, theirs = told(source), told(dest)
    del ours["search two"], theirs["search two"]
    assert ours == theirs


def _renumber(connection: apsw.Connection, seq: int, id: int) -> None:
    (row,) = connection.execute(
        "SELECT * FROM message WHERE seq = ? AND conversation_no = "
        "(SELECT no FROM conversation WHERE id = 'hidden')",
        (seq,),
    ).fetchall()
    connection.execute("DELETE FROM message WHERE id = ?", row[:1])
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO message VALUES ({marks})", (id, *row[1:]))


def test_a_transaction_that_stays_open_hides_nothing(fast_dir: Path) -> None:
    """Messages with higher ids than its own are copied, and looked at again by the next run."""
    source, dest = place("server", fast_dir, "source"), place("file", fast_dir, "copy")
    with clew.open(source) as store:
        fill(store)
    with psycopg.connect(source) as connection:
        connection.execute("SELECT pg_current_xact_id()")
        with clew.open(source) as store:
            store.profile("two").open("busy").set_todos([clew.Todo("later")])
            store.profile("two").create(id="later").append([clew.user(str(i)) for i in range(700)])
        report = same(source, dest)
        assert report.copied == report.messages > 700
        with clew.open(source) as store:
            store.profile("two").open("later").append([clew.user("last")])
        assert same(source, dest).copied == 1
    assert same(source, dest).copied == 0


@given(steps=st.lists(st.integers(0, 11), min_size=3, max_size=14))
def test_a_copy_follows_whatever_is_done(steps: list[int], fast_dir: Path) -> None:
    folder = Path(tempfile.mkdtemp(dir=fast_dir))
    source, dest = str(folder / "source.db"), str(folder / "copy.db")
    with clew.open(source) as store:
        profile = store.profile("p")
        for step in steps:
            convs = [profile.open(info.id) for info in profile.list(limit=100).items]
            conv = convs[step % len(convs)] if convs else profile.create()
            match step:
                case 0 | 1:
                    profile.create().append([clew.user("first")])
                case 2:
                    conv.branch().append([clew.user("branched")])
                case 3:
                    profile.delete(conv.id)
                case 4 if conv.info().message_count:
                    conv.cut(list(conv.messages())[-1].uid)
                case 5:
                    conv.set_todos([clew.Todo("do")])
                case 6 | 7:
                    copy(source, dest)
                case _:
                    conv.append([clew.user(f"message {step}")])
    same(source, dest)


# ---------------------------------------------------------------- interrupted


def test_what_was_killed_goes_on(fast_dir: Path) -> None:
    """At any commit, before or after it: no gap is ever seen, and the end is the same."""
    source = place("file", fast_dir, "source")
    with clew.open(source) as store:
        fill(store)
    for engine in ENGINES:
        dest = place(engine, fast_dir, "copy")
        for deaths in itertools.count():
            step, when = 1 + deaths % 3, ("after", "before")[deaths % 2]
            code = KILLED.format(source=source, dest=dest, step=step, when=when)
            done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE)
            with half(dest) as store:
                assert [p for p in store.verify() if p.invariant == "I-01"] == []
            if done.returncode == 0:
                break
            assert done.returncode == -signal.SIGKILL, done.stderr
        assert deaths > 6
        same(source, dest)


KILLED = """
import os
from clew.store.copy import copy, messages
from clew.store.copy.target import Target

messages.BATCH = 9
messages.STEP = 3
left, real = [{step}], Target.write

def write(self, work, mark=None):
    def killing(tx):
        work(tx)
        left[0] -= 1
        if left[0] == 0 and {when!r} == "before":
            os.kill(os.getpid(), 9)
    real(self, killing, mark)
    if left[0] == 0:
        os.kill(os.getpid(), 9)

Target.write = write
copy({source!r}, {dest!r})
"""


def test_what_was_interrupted_goes_on(both: tuple[str, str]) -> None:
    """Wherever progress is told."""
    source, dest = both
    stages: set[str] = set()
    for wanted in ("Copying messages", "Copying records", "Comparing", "Verifying"):

        def stop(what: str, done: int, of: int, wanted: str = wanted) -> None:
            stages.add(what)
            assert 0 <= done <= of
            if what == wanted:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            copy(source, dest, progress=stop)
    assert len(stages) == 4
    same(source, dest)


@pytest.mark.parametrize("role", ["source", "copy"])
def test_a_server_that_crashes_and_comes_back_is_waited_for(role: str, fast_dir: Path) -> None:
    """Once in each part of the work, in the middle of it."""
    file = place("file", fast_dir, "file")
    with clew.open(file) as store:
        fill(store)
    with Server.start(durable=True) as server:
        url, seen = server.create_database(), set[str]()
        source, dest = (file, url) if role == "copy" else (url, str(fast_dir / "copy.db"))
        if role == "source":
            copy(file, url)

        def crash(what: str, done: int, of: int) -> None:
            if what not in seen:
                seen.add(what)
                server.kill()
                server.restart()

        report = copy(source, dest, progress=crash)
        assert (len(seen), report.problems) == (4, ())
        assert told(dest) == told(file)


# ---------------------------------------------------------------- moved


class Writer:
    """A process that writes to a store until that was moved."""

    def __init__(self, where: str, name: str) -> None:
        command = [sys.executable, str(WRITER), where, name]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def hear(self) -> dict[str, str]:
        """The next thing it says."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def rest(self) -> list[dict[str, str]]:
        """What else it says, up to its end."""
        assert self._process.stdout is not None
        return [json.loads(line) for line in self._process.stdout]


@pytest.mark.parametrize(("source", "dest"), DIRECTIONS)
def test_a_store_is_moved_while_others_write(source: str, dest: str, fast_dir: Path) -> None:
    """Whatever they were told is stored is in the new place, once; then they are told of it."""
    old, new = place(source, fast_dir, "old"), place(dest, fast_dir, "new")
    with clew.open(old) as store:
        fill(store)
    keys: list[str] = []
    with Writer(old, "ann") as ann, Writer(old, "ben") as ben:
        for writer in (ann, ben):  # they are at it
            keys += [writer.hear()["key"] for _ in range(5)]
        report = copy(old, new, move=True)
        assert report.moved
        for writer in (ann, ben):
            *acknowledged, last = writer.rest()
            assert last == {"moved": report.dest}
            keys += [line["key"] for line in acknowledged]
    assert len(keys) == len(set(keys)) >= 10
    with clew.open(new) as store:
        assert store.verify() == []
        profile = store.profile("live")
        found = Counter(
            message.key for name in ("ann", "ben")
            for message in profile.conversation(name).messages(hidden=True)
        )  # fmt: skip
        assert {key: found[key] for key in keys} == dict.fromkeys(keys, 1)
        assert sum(found.values()) - len(keys) <= 2  # stored, and not yet acknowledged
        profile.conversation("ann").append([clew.user("goes on")])
    with pytest.raises(StoreMoved) as caught:
        clew.open(old)
    assert caught.value.where == report.dest
    with pytest.raises(StoreMoved):
        copy(old, new)


def test_a_moved_store_can_be_moved_back(fast_dir: Path) -> None:
    places = [place(engine, fast_dir, f"p{i}") for i, engine in enumerate(("file", *ENGINES))]
    with clew.open(places[0]) as store:
        fill(store)
    before = told(places[0])
    for old, new in itertools.pairwise(places):
        assert copy(old, new, move=True).moved
    assert told(places[-1]) == before


def test_whoever_has_it_open_is_told(files: tuple[str, str]) -> None:
    """Handles of the same process, too, readers and writers."""
    source, dest = files
    with clew.open(source) as store:
        conv = store.profile("two").open("hidden")
        conv.reopen()
        copy(source, dest, move=True)
        for act in (lambda: conv.append([clew.user("lost?")]), conv.info):
            with pytest.raises(StoreMoved, match=r"copy\.db; open that one"):
                act()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), clew.StoreFull("no space")])
def test_a_move_that_fails_in_the_pause_seals_nothing(
    error: BaseException, both: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, dest = both

    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(compare, "check_touched", fail)
        with pytest.raises(type(error)):
            copy(source, dest, move=True)
    with clew.open(source) as store:
        store.profile("two").create(id="goes on").append([clew.user("here")])
    before = told(source)
    assert copy(source, dest, move=True).moved
    assert told(dest) == before


def test_a_seal_whose_commit_was_in_doubt(
    files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It went through, and was reported as failed."""
    source, dest = files
    real, failed = SqliteWriter.commit, list[bool]()

    def commit(self: SqliteWriter) -> None:
        sealing = self.transaction.row("copy_moved") is not None
        real(self)
        if sealing and not failed:
            failed.append(True)
            raise clew.StoreError("the disk went away")

    monkeypatch.setattr(SqliteWriter, "commit", commit)
    assert copy(source, dest, move=True).moved
    assert failed
    with pytest.raises(StoreMoved):
        clew.open(source)
    clew.open(dest).close()


def test_a_store_with_problems_is_copied_and_not_moved(files: tuple[str, str]) -> None:
    source, dest = files
    connection = apsw.Connection(source)
    connection.execute("UPDATE conversation SET message_count = 77 WHERE id = 'empty'")
    connection.close()
    report = copy(source, dest, move=True)
    assert ([p.invariant for p in report.problems], report.moved) == (["I-18"], False)
    clew.open(source).close()


# ---------------------------------------------------------------- refused


def test_only_a_place_for_this_copy_is_written_to(files: tuple[str, str], fast_dir: Path) -> None:
    source, dest = files
    other = place("file", fast_dir, "other")
    with clew.open(other) as store:
        store.profile("p").create(id="precious").append([clew.user("keep me")])
        store.backup(fast_dir / "backup.db")
    with pytest.raises(clew.InputError, match="holds a store of its own"):
        copy(source, other)
    with pytest.raises(clew.InputError, match="the source itself, or a backup of it"):
        copy(other, fast_dir / "backup.db")
    with pytest.raises(clew.InputError, match="the source itself"):
        copy(source, source)
    copy(source, dest)
    with pytest.raises(clew.InputError, match="a copy of another store"):
        copy(other, dest)
    with pytest.raises(NoStore, match="there is no store"):
        copy(fast_dir / "none.db", dest)
    assert not (fast_dir / "none.db").exists()


def wait(store: clew.Store) -> None:
    store.profile("two").open("busy").append([clew.user("accepted here")])


def create(store: clew.Store) -> None:
    store.profile("new").create(id="here only")


def delete(store: clew.Store) -> None:
    store.profile("two").delete("hidden")


def plan(store: clew.Store) -> None:
    store.profile("two").open("busy").set_todos([clew.Todo("mine")])


def alias(store: clew.Store) -> None:
    store.profile("one").open("empty").claim_alias("tool", "mine")


@pytest.mark.parametrize("write", [wait, create, delete, plan, alias])
@pytest.mark.parametrize("engine", ENGINES)
def test_what_others_wrote_is_not_written_over(engine: str, write: Write, fast_dir: Path) -> None:
    source, dest = place("file", fast_dir, "source"), place(engine, fast_dir, "copy")
    with clew.open(source) as store:
        fill(store)
    copy(source, dest)
    with clew.open(dest) as store:
        write(store)
    before = told(dest)
    for move in (False, True):
        with pytest.raises(clew.InputError, match="written to by others"):
            copy(source, dest, move=move)
    assert told(dest) == before
    clew.open(source).close()


@pytest.mark.parametrize("write", [wait, create, delete])
def test_what_others_write_meanwhile_ends_the_copy(write: Write, files: tuple[str, str]) -> None:
    """Also to a copy that is not finished, by who had it open; what they wrote can be read."""
    source, dest = files

    def meanwhile(what: str, done: int, of: int) -> None:
        if what == "Comparing":
            with suppress(clew.NotFound):
                write(store)

    with clew.open(dest) as store:
        with pytest.raises(clew.ClewError, match="others"):
            copy(source, dest, progress=meanwhile)
        with pytest.raises(clew.InputError, match="written to by others"):
            copy(source, dest)
    clew.open(dest).close()


def test_a_second_copier_takes_over(files: tuple[str, str]) -> None:
    source, dest = files

    def second(what: str, done: int, of: int) -> None:
        if what == "Copying records":
            copy(source, dest)

    with pytest.raises(clew.Busy, match="another copy"):
        copy(source, dest, progress=second)
    same(source, dest)


def test_a_source_that_was_set_back_is_refused(files: tuple[str, str], fast_dir: Path) -> None:
    source, dest = files
    with clew.open(source) as store:
        backup = store.backup(fast_dir / "backup.db")
        store.profile("two").create(id="lost by the restore")
    copy(source, dest)
    restore(source, backup)
    with pytest.raises(clew.InputError, match="restored from a backup"):
        copy(source, dest)


def test_an_unfinished_copy_is_no_source(files: tuple[str, str], fast_dir: Path) -> None:
    source, dest = files
    with pytest.raises(KeyboardInterrupt):
        copy(source, dest, progress=interrupted)
    with pytest.raises(clew.InputError, match="unfinished copy"):
        copy(dest, fast_dir / "third.db")
    copy(source, dest)
    same(dest, str(fast_dir / "third.db"))


def test_an_unfinished_copy_is_not_opened(both: tuple[str, str]) -> None:
    """Also one that was finished once, and was being brought up to date."""
    source, dest = both
    for _ in range(2):
        with clew.open(source) as store:
            store.profile("two").create().append([clew.user("more")])
        with pytest.raises(KeyboardInterrupt):
            copy(source, dest, progress=interrupted)
        with pytest.raises(clew.StoreError, match=r"not finished; run `clew copy` again, or delet"):
            clew.open(dest)
        bad = [found.what for found in diagnose(address.parse(dest)) if found.level == "error"]
        assert "the store is a copy that is not finished" in bad
        same(source, dest)


def test_what_locks_no_conversation_is_told_of_the_move_too(
    fast_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that is claimed between the last look and the seal."""
    source, dest = place("server", fast_dir, "source"), place("file", fast_dir, "copy")
    told: list[str] = []

    def claim() -> None:
        try:
            store.claim_job("weekly")
        except StoreMoved as moved:
            told.append(moved.where)

    def meanwhile(*given: Any) -> None:
        thread.start()
        until(lambda: ask(source, "SELECT 1 FROM pg_locks WHERE NOT granted"))
        real(*given)

    thread, real = threading.Thread(target=claim), compare.check_touched
    monkeypatch.setattr(compare, "check_touched", meanwhile)
    with clew.open(source) as store:
        fill(store)
        assert copy(source, dest, move=True).moved
        thread.join(WAIT)
    assert told == [str(Path(dest).resolve())]
    with clew.open(dest) as store:
        assert [job.name for job in store.jobs()] == ["nightly"]


def test_a_row_that_was_changed_is_seen(files: tuple[str, str]) -> None:
    """A disk, or a person with SQL: the copy is compared, not trusted."""
    source, dest = files

    def damage(what: str, done: int, of: int) -> None:
        if what == "Comparing" and done == 0:
            connection = apsw.Connection(dest)
            connection.execute("UPDATE turn SET error = 'x' WHERE number = 1")
            connection.close()

    with pytest.raises(clew.StoreError, match="does not equal its source"):
        copy(source, dest, progress=damage)


def test_passwords_are_not_shown(fast_dir: Path) -> None:
    source = place("file", fast_dir, "source")
    clew.open(source).close()
    dest = place("server", fast_dir, "copy")
    password = dest.split(":")[2].split("@")[0]
    report = copy(source, dest, move=True)
    with pytest.raises(StoreMoved) as moved:
        clew.open(source)
    with pytest.raises(clew.StoreError) as failed:
        copy(place("file", fast_dir, "none"), dest.replace(password, "sesame"))
    for text in (report.dest, str(moved.value), repr(report), str(failed.value)):
        assert password not in text
        assert "sesame" not in text
    assert os.path.basename(report.source) == "source.db"
