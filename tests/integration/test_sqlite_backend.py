"""The waist on real SQLite: real files, threads, tasks and processes."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from clew.errors import (
    Busy,
    Corrupt,
    InputError,
    NotFound,
    SchemaTooNew,
    StoreClosed,
    StoreError,
    StoreFull,
    StoreReplaced,
    StoreUnusable,
)
from clew.store import migrate
from clew.store.backend import Transaction
from clew.store.migrate import APPLICATION_ID, Migration
from clew.store.sqlite import SqliteBackend
from clew.store.sqlite_connections import check_version
from clew.store.sqlite_driver import translate

WAIT = 15.0

STATEMENTS = {
    "stamp_read": "SELECT value, 1 FROM meta WHERE name = 'stamp'",
    "copy_moved": "SELECT value FROM meta WHERE name = 'moved_to'",
    "stamp_set": "UPDATE meta SET value = :stamp WHERE name = 'stamp'",
    "put": "INSERT INTO note(key, body) VALUES (:key, :body) ON CONFLICT(key) DO NOTHING",
    "put_new": "INSERT INTO note(key, body) VALUES (:key, :body) RETURNING id",
    "orphan": "INSERT INTO note(key, body, parent) VALUES (:key, :body, 99) RETURNING id",
    "id": "SELECT id FROM note WHERE key = :key",
    "keys": "SELECT key FROM note ORDER BY id",
    "count": "SELECT count(*) FROM note",
    "drop": "DELETE FROM note WHERE key LIKE :like",
    "room": "PRAGMA max_page_count = 1000000",
    "no_room": "PRAGMA max_page_count = 1",
    "wrong": "SELECT nonsense FROM nowhere",
}

SCHEMA = """
CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE note(id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, body BLOB,
  parent INTEGER REFERENCES note(id)) STRICT;
"""

FIRST = Migration(1, False, "0001_pre_notes", lambda: SCHEMA)


class Put:
    """A unit that looks for its key first."""

    def __init__(self, key: str, size: int = 100) -> None:
        self.key, self.body = key, os.urandom(size)

    def __call__(self, tx: Transaction) -> int:
        tx.changed("put", key=self.key, body=self.body)
        row = tx.row("id", key=self.key)
        assert row is not None
        return int(row[0])


def keys(backend: SqliteBackend) -> list[str]:
    return [row[0] for row in backend.read(lambda tx: tx.rows("keys"))]


def until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end, f"never happened: {what}"
        time.sleep(0.001)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


Open = Callable[..., SqliteBackend]


@pytest.fixture
def open_store(path: Path) -> Iterator[Open]:
    opened: list[SqliteBackend] = []

    def open_one(**options: Any) -> SqliteBackend:
        options.setdefault("migrations", [FIRST])
        opened.append(SqliteBackend(path, statements=STATEMENTS, **options))
        return opened[-1]

    yield open_one
    for backend in opened:
        backend.close()


@pytest.fixture
def backend(open_store: Open) -> SqliteBackend:
    return open_store()


class Together:
    """Units of several threads that are sure to share one batch."""

    def __init__(self, backend: SqliteBackend) -> None:
        self.backend = backend
        self.outcomes: dict[str, Any] = {}

    def run(self, **units: Callable[[Transaction], Any]) -> dict[str, Any]:
        line = self.backend._committer.line
        inside, go = threading.Event(), threading.Event()

        def hold(_: Transaction) -> None:
            inside.set()
            assert go.wait(WAIT)

        threads = [threading.Thread(target=self._run, args=("hold", hold))]
        threads[0].start()
        assert inside.wait(WAIT)
        for position, (name, unit) in enumerate(units.items()):
            threads.append(threading.Thread(target=self._run, args=(name, unit)))
            threads[-1].start()
            until(lambda position=position: line.waiting == position + 1, f"{name} queued")
        go.set()
        for thread in threads:
            thread.join(WAIT)
            assert not thread.is_alive()
        del self.outcomes["hold"]
        return self.outcomes

    def _run(self, name: str, unit: Callable[[Transaction], Any]) -> None:
        try:
            self.outcomes[name] = self.backend.write(unit)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the outcome
            self.outcomes[name] = error


PRELUDE = f"""
import asyncio, os, signal, sys, threading, time
import apsw
from clew.errors import StoreClosed
from clew.store.migrate import Migration
from clew.store.sqlite import SqliteBackend
STATEMENTS = {STATEMENTS!r}
SCHEMA = {SCHEMA!r}
def open_store(**options):
    return SqliteBackend(sys.argv[1], statements=STATEMENTS,
        migrations=[Migration(1, False, "0001_pre_notes", lambda: SCHEMA)], **options)
def put(key, size=100):
    def unit(tx):
        tx.run("put", key=key, body=b"x" * size)
        return tx.row("id", key=key)[0]
    return unit
"""


def process(path: Path, program: str, *args: str) -> subprocess.Popen[str]:
    code = PRELUDE + textwrap.dedent(program)
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, str(path), *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(running: subprocess.Popen[str], code: int = 0) -> str:
    out, err = running.communicate(timeout=WAIT)
    assert running.returncode == code, err
    assert not err or code, err
    return out


# -- reading and writing


def test_written_is_read(backend: SqliteBackend) -> None:
    assert backend.write(Put("a")) == 1
    assert backend.write(Put("b")) == 2
    assert backend.write(Put("a")) == 1
    assert backend.read(lambda tx: tx.row("id", key="b")) == (2,)
    assert backend.read(lambda tx: tx.row("id", key="c")) is None
    assert backend.write(lambda tx: tx.changed("drop", like="%")) == 2
    assert backend.write(lambda tx: tx.changed("drop", like="%")) == 0
    backend.write(lambda tx: tx.batch("put", ({"key": k, "body": None} for k in "xyz")))
    assert keys(backend) == ["x", "y", "z"]


def test_a_read_sees_one_snapshot_and_may_nest(backend: SqliteBackend) -> None:
    backend.write(Put("a"))

    def outer(tx: Transaction) -> list[int]:
        before = tx.rows("count")[0][0]
        backend.write(Put("b"))
        inner = backend.read(lambda own: own.rows("count")[0][0])
        return [before, inner, tx.rows("count")[0][0]]

    assert backend.read(outer) == [1, 2, 1]


def test_more_nested_reads_than_connections_kept(open_store: Open) -> None:
    backend = open_store(readers=1)

    def nested(depth: int) -> int:
        if depth == 0:
            return 0
        return backend.read(lambda tx: tx.rows("count")[0][0] + nested(depth - 1))

    assert nested(6) == 0
    assert len(backend._connections._idle) == 1


def test_a_reader_cannot_write(backend: SqliteBackend) -> None:
    with pytest.raises(StoreError, match="SQLITE_READONLY"):
        backend.read(Put("a"))
    assert keys(backend) == []


def test_a_reader_that_fails_gives_its_connection_back(backend: SqliteBackend) -> None:
    def missing(_: Transaction) -> None:
        raise NotFound("note", "x")

    for _ in range(10):
        with pytest.raises(NotFound):
            backend.read(missing)
        with pytest.raises(StoreError, match="SQLITE_ERROR"):
            backend.read(lambda tx: tx.rows("wrong"))
    assert len(backend._connections._idle) == 1
    assert keys(backend) == []


def test_the_change_token_moves_with_every_commit_and_only_then(
    backend: SqliteBackend, path: Path
) -> None:
    tokens = [backend.change_token()]
    assert backend.change_token() == tokens[-1]
    backend.write(Put("own"))
    tokens.append(backend.change_token())
    finish(process(path, "b = open_store(); b.write(put('other')); b.close()"))
    tokens.append(backend.change_token())
    keys(backend)
    assert backend.change_token() == tokens[-1]
    assert len(set(tokens)) == 3


def test_64_tasks_share_commits(backend: SqliteBackend) -> None:
    async def main() -> None:
        async def one(task: int) -> None:
            for number in range(10):
                await backend.write_async(Put(f"{task}-{number}"))

        await asyncio.gather(*map(one, range(64)))
        assert await backend.read_async(lambda tx: tx.rows("count")) == [(640,)]

    asyncio.run(main())
    stored = keys(backend)
    assert len(stored) == len(set(stored)) == 640
    assert backend.runner.commits < 640 / 2
    for task in range(64):
        mine = [key for key in stored if key.startswith(f"{task}-")]
        assert mine == [f"{task}-{number}" for number in range(10)]


def test_four_processes_of_four_threads(path: Path, backend: SqliteBackend) -> None:
    program = """
        b = open_store()
        def many(t):
            ids = [b.write(put(f"{sys.argv[2]}-{t}-{n}")) for n in range(40)]
            assert ids == sorted(ids)
        threads = [threading.Thread(target=many, args=(t,)) for t in range(4)]
        [t.start() for t in threads]; [t.join() for t in threads]
        print(b.runner.units, b.runner.commits); b.close()
    """
    running = [process(path, program, str(number)) for number in range(4)]
    counts = [tuple(map(int, finish(each).split())) for each in running]
    assert [units for units, _ in counts] == [160] * 4
    assert sum(commits for _, commits in counts) < 640 * 0.6
    assert len(keys(backend)) == 640
    assert [row[0] for row in backend.read(lambda tx: tx.rows("count"))] == [640]


# -- one bad unit


def test_one_that_refuses_harms_no_other(backend: SqliteBackend) -> None:
    def refuse(tx: Transaction) -> None:
        tx.run("put", key="half", body=None)
        raise NotFound("note", "x")

    def twice(tx: Transaction) -> None:
        tx.run("put_new", key="double", body=None)
        tx.run("put_new", key="double", body=None)

    outcomes = Together(backend).run(a=Put("a"), refuse=refuse, twice=twice, b=Put("b"))
    assert isinstance(outcomes["refuse"], NotFound)
    assert isinstance(outcomes["twice"], StoreError)
    assert isinstance(outcomes["twice"].__cause__, apsw.ConstraintError)
    assert (outcomes["a"], outcomes["b"]) == (1, 2)
    assert keys(backend) == ["a", "b"]
    assert backend.runner.commits == 2, "a constraint cost more than one rerun"


def test_a_full_disk_inside_a_savepoint_loses_nothing_of_the_others(
    backend: SqliteBackend,
) -> None:
    """SQLITE_FULL rolls the whole transaction back; a next SAVEPOINT would commit by itself."""
    backend.write(lambda tx: tx.run("no_room"))
    outcomes = Together(backend).run(
        a=Put("a"), big=Put("big", 400_000), c=Put("c"), refuse=Put("big too", 400_000)
    )
    assert isinstance(outcomes["big"], StoreFull)
    assert isinstance(outcomes["refuse"], StoreFull)
    assert keys(backend) == ["a", "c"]
    assert backend.write(Put("a")) == outcomes["a"]
    assert backend.write(Put("c")) == outcomes["c"]
    backend.write(lambda tx: tx.run("room"))
    backend.write(Put("big", 400_000))
    assert keys(backend) == ["a", "c", "big"]


def test_a_unit_that_hides_a_fault_commits_nothing(backend: SqliteBackend) -> None:
    backend.write(lambda tx: tx.run("no_room"))

    def hides(tx: Transaction) -> str:
        tx.run("put", key="before", body=None)
        with contextlib.suppress(StoreFull):
            tx.run("put", key="big", body=bytes(400_000))
        with contextlib.suppress(StoreError):
            tx.run("put", key="after", body=None)
        with contextlib.suppress(StoreError):
            tx.batch("put", [{"key": "after too", "body": None}])
        return "looks well"

    with pytest.raises(StoreError, match="ended inside a unit"):
        backend.write(hides)
    outcomes = Together(backend).run(a=Put("a"), hides=hides, b=Put("b"))
    assert isinstance(outcomes["hides"], StoreError)
    assert keys(backend) == ["a", "b"]


def test_a_unit_that_hides_any_fault_commits_nothing(backend: SqliteBackend) -> None:
    """Also one after which SQLite itself would go on."""

    def hides(tx: Transaction) -> None:
        tx.run("put", key="half", body=None)
        with contextlib.suppress(StoreError):
            tx.run("wrong")

    with pytest.raises(StoreError, match="ended inside a unit"):
        backend.write(hides)
    assert keys(backend) == []


def test_a_constraint_is_told_even_by_a_statement_that_returns_rows(
    backend: SqliteBackend,
) -> None:
    for run in ("row", "run", "changed", "rows"):
        with pytest.raises(StoreError, match="SQLITE_CONSTRAINT_FOREIGNKEY"):
            backend.write(lambda tx, run=run: getattr(tx, run)("orphan", key="k", body=None))
    assert keys(backend) == []


def test_an_error_names_the_statement_and_no_content(backend: SqliteBackend) -> None:
    backend.write(Put("secret"))
    with pytest.raises(StoreError) as caught:
        backend.write(lambda tx: tx.run("put_new", key="secret", body=b"private"))
    assert caught.value.__notes__ == ["in statement put_new"]
    assert "SQLITE_CONSTRAINT_UNIQUE" in str(caught.value)
    for text in (str(caught.value), str(caught.value.__cause__)):
        assert "secret" not in text
        assert "private" not in text


def test_busy_when_another_program_holds_the_lock(path: Path, open_store: Open) -> None:
    backend = open_store(patience=0.2)
    backend.write(Put("a"))
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    start = time.monotonic()
    with pytest.raises(Busy, match="locked by another program") as caught:
        backend.write(Put("b"))
    assert caught.value.retryable
    assert 0.1 < time.monotonic() - start < 5
    other.execute("ROLLBACK")
    other.close()
    backend.write(Put("b"))
    assert keys(backend) == ["a", "b"]


@pytest.mark.parametrize(
    ("error", "errno", "expected"),
    [
        (apsw.FullError(), 0, StoreFull),
        (apsw.IOError(), 28, StoreFull),
        (apsw.IOError(), 27, StoreFull),
        (apsw.IOError(), 5, StoreUnusable),
        (apsw.CorruptError(), 0, Corrupt),
        (apsw.NotADBError(), 0, Corrupt),
        (apsw.BusyError(), 0, Busy),
        (apsw.LockedError(), 0, Busy),
        (apsw.CantOpenError("unable to open"), 13, StoreUnusable),
        (apsw.ReadOnlyError(), 0, StoreUnusable),
        (apsw.ConnectionClosedError(), 0, StoreClosed),
        (apsw.SQLError("near SECRET"), 0, StoreError),
    ],
)
def test_errors_get_their_type(error: apsw.Error, errno: int, expected: type[Exception]) -> None:
    translated = translate(error, errno)
    assert type(translated) is expected
    assert "SECRET" not in str(translated)
    if errno == 13:
        assert "EACCES" in str(translated)


# -- files


def test_all_files_are_private_whatever_the_umask(path: Path, open_store: Open) -> None:
    old = os.umask(0)
    try:
        backend = open_store()
        backend.write(Put("a"))
    finally:
        os.umask(old)
    names = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert names == dict.fromkeys(["s.db", "s.db-wal", "s.db-shm", "s.db.turn", "s.db.gate"], 0o600)


def test_a_clean_close_leaves_no_wal_and_refuses_the_next(
    path: Path, backend: SqliteBackend
) -> None:
    backend.write(Put("a"))

    async def use() -> None:
        assert await backend.read_async(lambda tx: tx.rows("count")) == [(1,)]
        await backend.write_async(Put("b"))

    asyncio.run(use())
    backend.change_token()
    backend.close()
    assert sorted(file.name for file in path.parent.iterdir()) == ["s.db", "s.db.gate", "s.db.turn"]
    backend.close()
    for call in (
        lambda: backend.write(Put("c")),
        lambda: keys(backend),
        backend.change_token,
        lambda: asyncio.run(backend.write_async(Put("c"))),
        lambda: asyncio.run(backend.read_async(lambda tx: tx.rows("count"))),
    ):
        with pytest.raises(StoreClosed, match="closed"):
            call()


def test_a_read_under_way_outlives_close(backend: SqliteBackend, path: Path) -> None:
    backend.write(Put("a"))

    def reader(tx: Transaction) -> int:
        backend.close()
        return int(tx.rows("count")[0][0])

    assert backend.read(reader) == 1
    assert not Path(f"{path}-wal").exists()


def test_a_store_that_is_dropped_is_closed(path: Path) -> None:
    backend = SqliteBackend(path, statements=STATEMENTS, migrations=[FIRST])
    backend.write(Put("a"))
    assert Path(f"{path}-wal").exists()
    del backend
    assert not Path(f"{path}-wal").exists()


def test_no_store_at_the_path(path: Path) -> None:
    with pytest.raises(StoreError, match="no store at"):
        SqliteBackend(path, create=False, statements=STATEMENTS, migrations=[FIRST])
    with pytest.raises(StoreError, match="cannot create"):
        SqliteBackend(path / "deeper", statements=STATEMENTS, migrations=[FIRST])
    assert list(path.parent.iterdir()) == []


def test_a_link_and_its_target_are_one_store(path: Path, open_store: Open) -> None:
    backend = open_store()
    link = path.parent / "link.db"
    link.symlink_to(path)
    with contextlib.closing(
        SqliteBackend(link, statements=STATEMENTS, migrations=[FIRST])
    ) as other:
        other.write(Put("a"))
        assert not Path(f"{link}.turn").exists()
    assert keys(backend) == ["a"]


def other_database(path: Path, journal: str) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA journal_mode = {journal}").fetchall()
    connection.execute("CREATE TABLE theirs(x)")
    connection.execute("INSERT INTO theirs VALUES (1)")
    return connection


@pytest.mark.parametrize("journal", ["delete", "wal"])
@pytest.mark.parametrize("live", [True, False])
def test_a_database_of_another_program_is_refused_untouched(
    path: Path, journal: str, live: bool
) -> None:
    connection = other_database(path, journal)
    if not live:
        connection.close()
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    with pytest.raises(StoreError, match=r"s\.db is a database of another program"):
        SqliteBackend(path, statements=STATEMENTS, migrations=[FIRST])
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before
    connection.close()


def test_a_file_that_is_no_database_is_refused_untouched(path: Path) -> None:
    path.write_text("Dear diary, " * 100)
    with pytest.raises(StoreError, match=r"s\.db is not a clew store"):
        SqliteBackend(path, statements=STATEMENTS, migrations=[FIRST])
    assert path.read_text() == "Dear diary, " * 100
    assert list(path.parent.iterdir()) == [path]


def test_a_first_page_torn_while_the_wal_was_merged_is_taken_from_the_wal(
    path: Path, open_store: Open
) -> None:
    program = "b = open_store(); b.write(put('kept', 100_000)); os.kill(os.getpid(), 9)"
    killed = process(path, program)  # the file grows, so the commit has the first page, too
    finish(killed, -signal.SIGKILL)
    with path.open("r+b") as file:
        file.write(os.urandom(512))
    assert keys(open_store()) == ["kept"]


def test_a_store_out_of_wal_mode_is_refused(path: Path, open_store: Open) -> None:
    open_store().close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = DELETE").fetchall()
    connection.close()
    with pytest.raises(StoreError, match="clew migrate --wal"):
        open_store()


# -- replaced under our feet


def test_another_file_at_the_path(path: Path, backend: SqliteBackend) -> None:
    backend.write(Put("a"))
    shutil.copy(path, path.parent / "copy")
    os.replace(path.parent / "copy", path)
    with pytest.raises(StoreReplaced, match="no longer the file that was opened"):
        backend.write(Put("b"))
    with pytest.raises(StoreReplaced):
        backend.write(Put("c"))


def test_the_file_is_gone(path: Path, backend: SqliteBackend) -> None:
    backend.write(Put("a"))
    path.unlink()
    with pytest.raises(StoreReplaced):
        backend.write(Put("b"))
    assert not path.exists()


def test_another_file_before_the_first_write(path: Path, backend: SqliteBackend) -> None:
    shutil.copy(path, path.parent / "copy")
    os.replace(path.parent / "copy", path)
    with pytest.raises(StoreReplaced):
        backend.write(Put("a"))


@pytest.mark.parametrize("settled", [True, False])
def test_the_wal_is_gone(path: Path, backend: SqliteBackend, settled: bool) -> None:
    """Also when the folder had stood still, so that only its times were looked at."""
    backend.write(Put("a"))
    assert backend._guard.identity._seen is None, "a second change would not show yet"
    if settled:
        time.sleep(0.15)
        backend.write(Put("still there"))
        assert backend._guard.identity._seen is not None
    Path(f"{path}-wal").unlink()
    with pytest.raises(StoreReplaced, match="-wal was replaced or deleted"):
        backend.write(Put("b"))


def test_a_wal_made_anew_by_this_store_itself_is_no_replacement(
    path: Path, backend: SqliteBackend
) -> None:
    backend.write(Put("a"))
    backend._writer.close()  # as after an error that its connection did not survive
    reader = backend._connections.take()
    reader.close()
    backend._connections.give_back(reader)
    assert not Path(f"{path}-wal").exists()
    (path.parent / "other").touch()  # takes the old inode, so that the new -wal gets another
    backend.write(Put("b"))
    assert keys(backend) == ["a", "b"]


def test_the_folder_is_another(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    backend = SqliteBackend(folder / "s.db", statements=STATEMENTS, migrations=[FIRST])
    backend.write(Put("a"))
    time.sleep(0.15)
    backend.write(Put("b"))
    folder.rename(tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", folder)
    with pytest.raises(StoreReplaced):
        backend.write(Put("c"))
    backend.close()


def test_another_stamp_in_the_same_file(path: Path, backend: SqliteBackend) -> None:
    backend.write(Put("a"))
    program = "b = open_store(); b.write(lambda tx: tx.run('stamp_set', stamp='new')); b.close()"
    finish(process(path, program))
    for _ in range(2):
        with pytest.raises(StoreReplaced, match="restored or replaced in place"):
            backend.write(Put("b"))
    finish(process(path, "b = open_store(patience=1); b.write(put('not locked out')); b.close()"))
    with pytest.raises(StoreReplaced, match="restored or replaced in place"):
        keys(backend)  # the numbers that handles hold may name other rows now


# -- where nobody may write

POWERLESS = """
import ctypes, struct
def powerless():  # root may write everywhere unless it gives that up
    header = struct.pack("Ii", 0x20080522, 0)
    assert ctypes.CDLL(None).capset(header, bytes(24)) == 0
from clew.errors import StoreError
def told(call, *words):
    try: call()
    except StoreError as error:
        for word in words: assert word in str(error), error
    else: raise AssertionError("no error")
"""

linux = pytest.mark.skipif(sys.platform != "linux", reason="permissions as on Linux")


@pytest.fixture
def sealed(path: Path, open_store: Open) -> Iterator[Path]:
    """The folder of a store that was closed cleanly; the test takes its rights away."""
    backend = open_store()
    backend.write(Put("kept"))
    backend.close()
    yield path.parent
    path.parent.chmod(0o700)


@linux
def test_a_store_in_a_folder_without_the_right_to_write_is_read(path: Path, sealed: Path) -> None:
    before = sorted(os.listdir(sealed))
    sealed.chmod(0o500)
    out = finish(
        process(
            path,
            POWERLESS
            + textwrap.dedent(
                """
                powerless()
                b = open_store()
                print(b.read(lambda tx: tx.rows("keys")), b.change_token() == b.change_token())
                told(lambda: b.write(put("x")), "chmod", "clew backup")
                told(lambda: asyncio.run(b.write_async(put("x"))), "chmod", "clew backup")
                b.close()
                """
            ),
        )
    )
    assert out == "[('kept',)] True\n"
    assert sorted(os.listdir(sealed)) == before


@linux
def test_a_reader_without_locks_notices_a_writer(path: Path, sealed: Path) -> None:
    reader = process(
        path,
        POWERLESS
        + textwrap.dedent(
            """
            powerless()
            b = open_store()
            b.read(lambda tx: tx.rows("keys"))
            os.chmod(os.path.dirname(sys.argv[1]), 0o700)
            w = open_store(); w.write(put("new"))
            told(lambda: b.read(lambda tx: tx.rows("keys")), "open the path again")
            w.close()
            told(lambda: b.read(lambda tx: tx.rows("keys")), "open the path again")
            told(b.change_token, "open the path again")
            b.close()
            """
        ),
    )
    sealed.chmod(0o500)
    finish(reader)


@linux
def test_commits_that_cannot_be_read_without_writing_are_not_passed_over(
    path: Path, sealed: Path
) -> None:
    killed = process(path, "b = open_store(); b.write(put('new')); os.kill(os.getpid(), 9)")
    finish(killed, -signal.SIGKILL)
    os.unlink(f"{path}-shm")
    sealed.chmod(0o500)
    program = 'powerless(); told(open_store, "was not closed cleanly", "chmod")'
    finish(process(path, POWERLESS + program))


@linux
def test_a_file_without_the_right_to_write_is_read(path: Path, sealed: Path) -> None:
    path.chmod(0o400)
    program = """
powerless()
b = open_store()
print(b.read(lambda tx: tx.rows("keys")))
told(lambda: b.write(put("x")), "chmod", "clew backup")
b.close()
"""
    assert finish(process(path, POWERLESS + program)) == "[('kept',)]\n"


@pytest.mark.parametrize("name", ["", ":memory:", "file::memory:", "file:x.db?mode=ro", "a\0b"])
def test_what_is_no_path_of_a_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"temporary folder|NUL"):
        SqliteBackend(name)
    assert os.listdir(tmp_path) == []


def test_a_folder_or_a_device_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        SqliteBackend(tmp_path)
    with pytest.raises(InputError, match="not a regular file"):
        SqliteBackend(os.devnull)


# -- forks


FORKED = """
def in_child(work):
    pid = os.fork()
    if pid == 0:
        code = 1
        try: work(); code = 0
        finally: sys.stdout.flush(); os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
def refused(path):
    try: SqliteBackend(path, statements=STATEMENTS)
    except StoreClosed as error: assert "spawn" in str(error)
    else: raise AssertionError("opened " + path)
"""


def forking(path: Path, program: str) -> str:
    return finish(process(path, FORKED + textwrap.dedent(program)))


def test_a_forked_child_cannot_use_what_its_parent_has_open(path: Path) -> None:
    out = forking(
        path,
        """
        b = open_store()
        b.write(put("parent"))
        b.read(lambda tx: tx.rows("count"))
        b.change_token()
        asyncio.run(b.write_async(put("task")))
        def in_read(tx):
            def child():
                for name in ("rows", "run"):
                    try: getattr(tx, name)("count")
                    except StoreClosed: pass
                    else: print("read in the child")
            in_child(child)
        b.read(in_read)
        def in_unit(tx):
            tx.run("put", key="in unit", body=None)
            return os.fork()
        try: pid = b.write(in_unit)
        except Exception as error: print(type(error).__name__, flush=True); os._exit(0)
        os.waitpid(pid, 0)
        def child():
            for call in (lambda: b.write(put("child")), lambda: b.read(lambda tx: 1),
                         b.change_token, lambda: asyncio.run(b.write_async(put("child"))),
                         lambda: asyncio.run(b.read_async(lambda tx: 1))):
                try: print("no error", call())
                except StoreClosed as error: assert "spawn" in str(error), error
            b.close()
            assert threading.active_count() == 1
            refused(sys.argv[1])
        in_child(child)
        b.write(put("after"))
        print([row[0] for row in b.read(lambda tx: tx.rows("keys"))])
        b.close()
        """,
    )
    assert out.split("\n")[:-1] == ["StoreError", "['parent', 'task', 'in unit', 'after']"]


def test_no_name_and_no_grandchild_opens_a_file_that_was_open_at_the_fork(path: Path) -> None:
    forking(
        path,
        """
        from clew.store.backup import backup
        first, second = open_store(), open_store()
        second.close()  # one is enough
        first.write(put("parent"))
        os.symlink(sys.argv[1], sys.argv[1] + ".soft")
        os.link(sys.argv[1], sys.argv[1] + ".hard")
        def child():
            for name in (sys.argv[1], sys.argv[1] + ".soft", sys.argv[1] + ".hard"):
                refused(name)
            try: backup(sys.argv[1], sys.argv[1] + ".copy")
            except StoreClosed: pass
            else: raise AssertionError("copied")
            in_child(lambda: refused(sys.argv[1]))
            other = SqliteBackend(sys.argv[1] + ".other")
            other.close()
        in_child(child)
        first.close()
        """,
    )
    with contextlib.closing(
        SqliteBackend(path, statements=STATEMENTS, migrations=[FIRST])
    ) as backend:
        assert keys(backend) == ["parent"]


def test_children_that_try_neither_stop_nor_harm_a_busy_parent(path: Path) -> None:
    """Forked at any moment of a commit, they keep neither the gate nor the turn, and what the
    parent and whoever comes next were told is stored."""
    out = forking(
        path,
        """
        b = open_store(patience=5)
        stop, told = threading.Event(), []
        def work(name):
            while not stop.is_set():
                key = f"{name}{len(told)}"
                b.write(put(key)); told.append(key)
        threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
        for thread in threads: thread.start()
        children = []
        for _ in range(10):
            time.sleep(0.01)
            pid = os.fork()
            if pid == 0:
                try: refused(sys.argv[1])
                except BaseException: os._exit(1)
                time.sleep(2); os._exit(0)
            children.append(pid)
        before = len(told)
        time.sleep(0.3)
        assert len(told) > before, "a child holds something"
        stop.set()
        for thread in threads: thread.join()
        b.close()
        assert not os.path.exists(sys.argv[1] + "-wal")
        b = open_store(); b.write(put("again")); told.append("again")
        for pid in children: assert os.waitpid(pid, 0)[1] == 0
        kept = {row[0] for row in b.read(lambda tx: tx.rows("keys"))}
        print(sorted(set(told) - kept))
        b.close()
        """,
    )
    assert out == "[]\n"


def test_a_child_opens_what_its_parent_had_closed(path: Path) -> None:
    out = forking(
        path,
        """
        b = open_store(); b.write(put("before")); b.change_token(); b.close()
        def child():
            own = open_store()
            for n in range(20): own.write(put(f"child{n}"))
            os.kill(os.getppid(), signal.SIGUSR1)
            for n in range(20): own.write(put(f"late{n}"))
            own.close()
        def meanwhile(*_):
            b = open_store(); b.write(put("parent")); b.close()
        signal.signal(signal.SIGUSR1, meanwhile)
        in_child(child)
        b = open_store(); print(b.read(lambda tx: tx.row("count"))[0]); b.close()
        """,
    )
    assert out == "42\n"


def spawned(path: Path) -> None:
    with contextlib.closing(
        SqliteBackend(path, statements=STATEMENTS, migrations=[FIRST])
    ) as backend:
        backend.write(Put("spawned"))


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_spawned_child_opens_what_its_parent_has_open(
    path: Path, backend: SqliteBackend, method: str
) -> None:
    backend.write(Put("parent"))
    worker = multiprocessing.get_context(method).Process(target=spawned, args=(path,))
    worker.start()
    worker.join(60)
    assert worker.exitcode == 0
    assert keys(backend) == ["parent", "spawned"]


def test_a_forked_child_that_ends_late_harms_nobody(path: Path) -> None:
    """Its inherited connections must not be closed at its exit: what SQLite takes for the last
    close of the file would delete the -wal of whoever came since."""
    parent = process(
        path,
        """
        b = open_store()
        b.write(put("parent"))
        pid = os.fork()
        if pid == 0:
            sys.stdin.readline()
            del b
            sys.exit(0)
        print(pid, flush=True)
        b.close()
        os._exit(0)
        """,
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert parent.wait(WAIT) == 0
    killed = process(path, "b = open_store(); b.write(put('killed')); os.kill(os.getpid(), 9)")
    finish(killed, -signal.SIGKILL)
    assert Path(f"{path}-wal").stat().st_size > 0
    parent.communicate("go on\n")
    until(lambda: not _alive(child), "the child's end")
    with contextlib.closing(
        SqliteBackend(path, statements=STATEMENTS, migrations=[FIRST])
    ) as backend:
        assert keys(backend) == ["parent", "killed"]


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_an_interrupted_writer_goes_on(path: Path) -> None:
    """Ctrl-C at random moments of a real writer: what it was told is stored, once, and no lock
    stays behind."""
    program = """
        import random
        b = open_store()
        begun = time.monotonic()
        for n in range(20): b.write(put(f"before {n}"))
        usual = (time.monotonic() - begun) / 20  # what the disk takes now
        def handler(*_): raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, handler)
        chance, told = random.Random(3), []
        for n in range(400):
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00005, 3 * usual))
                b.write(put(str(n)))
                signal.setitimer(signal.ITIMER_REAL, 0)
                told.append(str(n))
            except KeyboardInterrupt: pass
        signal.setitimer(signal.ITIMER_REAL, 0)
        stored = [row[0] for row in b.read(lambda tx: tx.rows("keys"))]
        assert set(told) <= set(stored) and len(stored) == len(set(stored))
        assert b.write(put("last")) > 0
        other = open_store(patience=1)
        other.write(put("other"))
        other.close()
        b.close()
        print(len(told))
    """
    assert 0 < int(finish(process(path, program))) < 400


# -- schema


def test_four_starters_make_one_store(path: Path) -> None:
    program = "b = open_store(); b.write(put(sys.argv[2])); print(b.meta); b.close()"
    running = [process(path, program, str(number)) for number in range(4)]
    assert len({finish(each) for each in running}) == 1
    with contextlib.closing(
        SqliteBackend(path, statements=STATEMENTS, migrations=[FIRST])
    ) as backend:
        assert sorted(keys(backend)) == ["0", "1", "2", "3"]


def test_a_new_store_says_who_it_is(path: Path, open_store: Open) -> None:
    meta = open_store().meta
    assert len(meta.store_id) == len(meta.stamp) == 32
    assert open_store().meta == meta
    connection = apsw.Connection(str(path))
    assert connection.pragma("application_id") == APPLICATION_ID
    assert connection.pragma("journal_mode") == "wal"
    connection.close()


def test_migrations_run_once_and_in_order(path: Path, open_store: Open) -> None:
    backend = open_store()
    backend.write(Put("kept"))
    second = Migration(2, False, "0002_pre_x", lambda: "ALTER TABLE note ADD COLUMN extra TEXT")
    third = Migration(3, True, "0003_post_x", lambda: "UPDATE note SET extra = 'yes'")
    newer = open_store(migrations=[FIRST, second, third])
    assert newer.meta == backend.meta
    assert keys(newer) == ["kept"]
    open_store(migrations=[FIRST, second, third])
    rows = dict(apsw.Connection(str(path)).execute("SELECT name, value FROM meta").fetchall())
    assert (rows["schema_version"], rows["min_writer_version"]) == ("3", "3")


def test_a_store_of_a_newer_clew(open_store: Open) -> None:
    pre = Migration(2, False, "0002_pre_x", lambda: "ALTER TABLE note ADD COLUMN extra TEXT")
    open_store(migrations=[FIRST, pre])
    open_store().write(Put("an older clew may write after a pre migration"))
    post = Migration(3, True, "0003_post_x", lambda: "ALTER TABLE note DROP COLUMN extra")
    open_store(migrations=[FIRST, pre, post])
    with pytest.raises(SchemaTooNew, match="has schema 3; this clew knows 1"):
        open_store()


def test_a_migration_that_fails_leaves_nothing(path: Path, open_store: Open) -> None:
    backend = open_store()
    backend.write(Put("a"))
    half = Migration(2, False, "0002_pre_half", lambda: "CREATE TABLE half(x); SELECT nonsense")
    with pytest.raises(StoreError, match="SQLITE_ERROR") as caught:
        open_store(migrations=[FIRST, half])
    assert caught.value.__notes__ == ["in migration 0002_pre_half"]
    orphan = Migration(2, False, "0002_pre_orphan", lambda: "UPDATE note SET parent = 99")
    with pytest.raises(StoreError, match="leaves 1 rows without their parent"):
        open_store(migrations=[FIRST, orphan])
    assert open_store().meta == backend.meta
    backend.write(Put("b"))
    assert not apsw.Connection(str(path)).table_exists("main", "half")


@pytest.mark.parametrize("step", [0, 1, 2])
def test_a_store_half_made_is_finished(path: Path, open_store: Open, step: int) -> None:
    """Killed before the first page, before WAL, before the tables."""
    path.touch()
    connection = apsw.Connection(str(path))
    if step > 0:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}").fetchall()
    if step > 1:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.close()
    open_store().write(Put("a"))


def test_the_migrations_of_the_package() -> None:
    known = migrate.known()
    assert [migration.number for migration in known] == list(range(1, len(known) + 1))
    assert "CREATE TABLE conversation(" in known[0].read()


@pytest.mark.parametrize("version", ["3.40.1", "3.51.2", "3.52.0"])
def test_an_sqlite_that_loses_commits_is_refused(version: str) -> None:
    with pytest.raises(StoreError, match="pip install -U apsw"):
        check_version(version)


@pytest.mark.parametrize("version", ["3.51.3", "3.53.0", "3.54.1", apsw.sqlite_lib_version()])
def test_a_sound_sqlite_is_accepted(version: str) -> None:
    check_version(version)
