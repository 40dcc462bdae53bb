"""Damage and faults: what stops a store, what only fails a call, and what is tried again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import clew
from clew.errors import (
    Busy,
    Corrupt,
    Quarantined,
    StoreError,
    StoreFull,
    StoreReplaced,
    StoreUnusable,
)
from clew.store.sqlite import SqliteBackend
from clew.store.sqlite_driver import translate
from clew.store.sqlite_wal import to_wal
from clew.store.turnstile import Turnstile

PAGE = 4096
STATEMENTS = {
    "stamp_read": "SELECT value, 1 FROM meta WHERE name = 'stamp'",
    "copy_moved": "SELECT value FROM meta WHERE name = 'moved_to'",
    "put": "INSERT OR REPLACE INTO meta(name, value) VALUES (:name, 'x')",
    "talks": "SELECT no, id, profile FROM conversation ORDER BY no",
    "messages": "SELECT sum(length(parts)) FROM message",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.db"
    with closing(clew.open(path)) as store:
        for number in range(40):
            talk = store.profile("p").conversation(f"k{number}")
            talk.add({"role": "user", "content": f"{number} " + os.urandom(700).hex()})
    return path


class Faults(apsw.VFS):
    """A file system whose reads fail when it is told to."""

    def __init__(self) -> None:
        self.left = 0
        super().__init__("faults", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return FaultyFile(self, name, flags)


class FaultyFile(apsw.VFSFile):
    def __init__(self, faults: Faults, name: Any, flags: list[int]) -> None:
        self._faults = faults
        super().__init__("unix", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:
        if self._faults.left:
            self._faults.left -= 1
            error = apsw.IOError("made for the test")
            error.extendedresult = apsw.SQLITE_IOERR_READ  # type: ignore[attr-defined]
            raise error
        return super().xRead(amount, offset)


@pytest.fixture
def faults() -> Iterator[Faults]:
    default = apsw.vfs_names()[0]
    faults = Faults()
    yield faults
    faults.unregister()
    assert apsw.vfs_names()[0] == default


class Slept(list[float]):
    """A sleep that does not."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def opened(path: Path, **options: Any) -> SqliteBackend:
    return SqliteBackend(path, statements=STATEMENTS, **options)


def put(backend: SqliteBackend, name: str = "x") -> None:
    backend.write(lambda tx: tx.run("put", name=name))


def damage(path: Path, table: str) -> None:
    """Overwrite the root page of a table, below the file's name and its times: as a disk does."""
    with closing(apsw.Connection(str(path))) as outside:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        root = outside.execute(query, (table,)).fetchall()[0][0]
    before = path.stat()
    file = apsw.VFSFile("", str(path), [apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_MAIN_DB, 0])
    file.xWrite(b"\xee" * PAGE, (root - 1) * PAGE)
    file.xClose()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


# -- damage


@pytest.mark.parametrize("met_by", ["read", "write"])
def test_the_first_damage_stops_the_handle_for_good(path: Path, met_by: str) -> None:
    """S39.1 S39.2 Each later write fails at once; what can be read is read."""
    with closing(opened(path)) as backend:
        put(backend)
        damage(path, "message")
        met = backend.read if met_by == "read" else backend.write
        with pytest.raises(Corrupt):
            met(lambda tx: tx.rows("messages"))
        assert isinstance(backend.trouble, Quarantined)
        for _ in range(2):
            with pytest.raises(Quarantined, match="clew repair"):
                put(backend)
        assert len(backend.read(lambda tx: tx.rows("talks"))) == 40
        with pytest.raises(Corrupt):
            backend.read(lambda tx: tx.rows("messages"))


def test_the_wal_survives_the_close_of_a_damaged_store_byte_for_byte(path: Path) -> None:
    """S39.2 S39.3 On every Python: a close would merge it into a file that is no longer whole."""
    backend = opened(path)
    backend.change_token()
    for number in range(20):
        put(backend, f"evidence{number}")
    damage(path, "message")
    with pytest.raises(Corrupt):
        backend.read(lambda tx: tx.rows("messages"))
    wal, file = Path(f"{path}-wal").read_bytes(), path.read_bytes()
    assert wal
    backend.close()
    assert Path(f"{path}-wal").read_bytes() == wal
    assert path.read_bytes() == file


def test_others_in_the_batch_and_late_writers_change_nothing(path: Path) -> None:
    """S39.5 Not one page is written after the first error, however long it goes on."""
    with closing(opened(path)) as backend:
        put(backend)
        damage(path, "message")
        with pytest.raises(Corrupt):
            backend.write(lambda tx: tx.rows("messages"))
        before = (path.read_bytes(), Path(f"{path}-wal").read_bytes())
        for number in range(50):
            with pytest.raises(Quarantined):
                put(backend, f"late{number}")
        assert (path.read_bytes(), Path(f"{path}-wal").read_bytes()) == before


def test_pages_of_another_file_are_no_damage(path: Path) -> None:
    """S39.1 A store written over by garbage or by nothing is told as what it is."""
    with closing(opened(path)) as backend:
        put(backend)
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.truncate(0)
            file.truncate(size)
        with pytest.raises(StoreError):
            backend.read(lambda tx: tx.rows("messages"))
        with pytest.raises(StoreReplaced):
            put(backend)
        assert type(backend.trouble) is StoreReplaced


def test_a_damaged_search_file_stops_nobody(path: Path) -> None:
    """S39.1 It is thrown away and made anew."""
    with closing(clew.open(path)) as store:
        assert store.profile("p").search("1").hits
    with closing(clew.open(path)) as store:
        Path(f"{path}.search").write_bytes(os.urandom(40_000))
        assert store.profile("p").search("1").hits
        assert store.health().state == "ok"
        store.profile("p").conversation("k0").add({"role": "user", "content": "on"})


def test_a_damaged_store_sends_messages_to_the_spool(path: Path) -> None:
    """S39.4 Nothing is lost, nothing is tried for ever, and health says so."""
    with closing(clew.open(path)) as store:
        damage(path, "message")
        talk = store.profile("p").conversation("k0")
        assert talk.append([clew.user("saved")]).spooled
        assert store.health().state == "stopped"
        assert talk.append([clew.user("saved too")]).spooled
        assert store.health().spooled == 2


# -- faults of the place


def test_a_passing_fault_at_begin_is_tried_again_on_the_same_connection(
    path: Path, faults: Faults
) -> None:
    """S49.1 S49.3 Invisible to the caller, a few times, with pauses."""
    slept = Slept()
    with closing(opened(path, pause=slept)) as backend:
        faults.left = 2
        put(backend)
        assert faults.left == 0
        assert len(slept) == 2
        writer = backend._writer._current
        backend._writer._current.drop_pages()  # type: ignore[union-attr]
        faults.left = 3
        put(backend, "again")
        assert backend._writer._current is writer
        assert backend.trouble is None


def test_a_lasting_fault_at_begin_is_told(path: Path, faults: Faults) -> None:
    """S49.3 Bounded: then the caller gets the real reason, and recovery needs nobody's hand."""
    slept = Slept()
    with closing(opened(path, pause=slept)) as backend:
        faults.left = 1000
        with pytest.raises(StoreUnusable, match="SQLITE_IOERR_READ"):
            put(backend)
        assert len(slept) == 3
        faults.left = 0
        assert backend.trouble is None
        put(backend)


def test_after_the_first_statement_nothing_is_tried_again(path: Path, faults: Faults) -> None:
    """S49.3 The unit of work may have seen and done something by then."""
    slept, runs = Slept(), []

    def unit(tx: Any) -> None:
        runs.append(1)
        tx.run("put", name="half")
        faults.left = 1
        tx.rows("messages")

    with closing(opened(path, pause=slept)) as backend:
        put(backend)
        slept.clear()
        with pytest.raises(StoreUnusable):
            backend.write(unit)
        assert (len(runs), slept) == (1, [])


def test_a_list_that_cannot_be_read_is_an_error(path: Path, faults: Faults) -> None:
    """S49.2 Never an empty list."""
    with closing(clew.open(path)) as store:
        profile = store.profile("p")
        assert profile.list().items
    with closing(clew.open(path)) as store:
        profile = store.profile("p")
        faults.left = 1_000_000
        with pytest.raises(StoreUnusable):
            profile.list()
        faults.left = 0
        assert len(profile.list(limit=100).items) == 40


@pytest.mark.parametrize(
    ("code", "errno", "kind", "reason"),
    [
        (apsw.IOError, 28, StoreFull, "ENOSPC"), (apsw.CantOpenError, 28, StoreFull, "ENOSPC"),
        (apsw.IOError, 5, StoreUnusable, "EIO"), (apsw.IOError, 116, StoreUnusable, "ESTALE"),
        (apsw.IOError, 37, StoreUnusable, "ENOLCK"),
        (apsw.CantOpenError, 24, StoreUnusable, "EMFILE"),
        (apsw.ReadOnlyError, 30, StoreUnusable, "EROFS"), (apsw.IOError, 0, StoreUnusable, None),
        (apsw.FullError, 0, StoreFull, "ENOSPC"),
    ],
)  # fmt: skip
def test_faults_of_the_place_say_their_reason(
    code: type[apsw.Error], errno: int, kind: type[StoreUnusable], reason: str | None
) -> None:
    error = translate(code("x"), errno)
    assert type(error) is kind
    assert error.reason == reason
    assert not error.retryable


def test_a_turnstile_that_cannot_be_made_is_no_contention(path: Path) -> None:
    """It is told at once, with its reason; nobody waits for patience."""
    os.mkdir(f"{path}2.gate")
    turnstile = Turnstile(f"{path}2")
    with pytest.raises(StoreUnusable) as caught:
        turnstile.try_enter()
    assert caught.value.reason == "EISDIR"
    turnstile.close()


# -- the journal


def out_of_wal(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    assert connection.execute("PRAGMA journal_mode = DELETE").fetchall() == [("delete",)]
    return connection


def test_a_store_out_of_wal_mode_is_brought_back(path: Path) -> None:
    """Refused until it is asked for; then everything is there."""
    assert not to_wal(path)
    out_of_wal(path).close()
    with pytest.raises(StoreUnusable, match="clew migrate --wal"):
        clew.open(path)
    assert to_wal(path)
    with closing(clew.open(path)) as store:
        assert len(store.profile("p").list(limit=100).items) == 40
        assert store.verify() == []


def test_it_is_not_changed_while_somebody_has_it_open(path: Path) -> None:
    other = out_of_wal(path)
    other.execute("BEGIN").execute("SELECT * FROM conversation").fetchone()
    with pytest.raises(Busy):
        to_wal(path, patience=0.1)
    other.close()
    assert to_wal(path)


def test_a_stray_wal_is_not_played_into_it(path: Path) -> None:
    out_of_wal(path).close()
    Path(f"{path}-wal").write_bytes(b"x" * 5000)
    with pytest.raises(StoreError, match="belongs to another file"):
        to_wal(path)
    assert Path(f"{path}-wal").read_bytes() == b"x" * 5000
