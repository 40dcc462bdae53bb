"""clew.store.backup: copies made while others write, and the way back into a live file."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import apsw
import pytest

import clew
from clew.store import copying, migrate
from clew.store.backup import Restoration, backup, restore
from clew.store.sqlite_connections import connect


def filled(path: Path, count: int = 20) -> clew.Store:
    store = clew.open(path)
    conversation = store.profile("me").conversation("k")
    for i in range(count):
        conversation.add(clew.user(f"message {i} " + "x" * 2000))
    return store


def count(path: Path) -> int:
    with clew.open(path) as store:
        assert store.verify() == []
        return store.profile("me").conversation("k").info().message_count


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_backup_is_one_moment_while_others_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "STEP", 1)
    store = filled(tmp_path / "a.db")
    conversation = store.profile("me").conversation("k")
    steps: list[tuple[int, int]] = []

    def write(done: int, total: int) -> None:
        steps.append((done, total))
        conversation.add(clew.user(f"while copying {done}"))

    assert store.backup(tmp_path / "b.db", write) == tmp_path / "b.db"
    store.close()
    assert [done for done, _ in steps] == list(range(1, steps[-1][1] + 1))  # never began again
    assert count(tmp_path / "b.db") == 20
    assert count(tmp_path / "a.db") == 20 + len(steps)


def test_a_backup_takes_the_place_of_nothing(tmp_path: Path) -> None:
    filled(tmp_path / "a.db").close()
    path, dest = tmp_path / "a.db", tmp_path / "b.db"
    dest.write_text("precious")
    with pytest.raises(clew.InputError, match="exists already"):
        backup(path, dest)
    assert dest.read_text() == "precious"
    for wrong in (tmp_path, tmp_path / "none" / "b.db"):
        with pytest.raises(clew.InputError):
            backup(path, wrong)
    with pytest.raises(clew.InputError, match="the store itself"):
        backup(path, path, force=True)
    with clew.open(tmp_path / "other.db") as other:
        other.profile("me").conversation("k").add(clew.user("hi"))
        with pytest.raises(clew.InputError, match="in use"):
            backup(path, tmp_path / "other.db", force=True)
    assert count(backup(path, dest, force=True)) == 20
    with pytest.raises(clew.StoreError, match="there is no store"):
        backup(tmp_path / "none.db", tmp_path / "c.db")


def test_a_failed_backup_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path / "a.db").close()
    before = names(tmp_path)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backup(tmp_path / "a.db", tmp_path / "b.db", progress=stop)
    assert names(tmp_path) == before

    def full(self: apsw.Backup, pages: int) -> bool:
        raise apsw.FullError("database or disk is full")

    def step(copy: apsw.Backup, pages: int) -> None:
        full(copy, pages)

    monkeypatch.setattr(copying, "step", step)
    with pytest.raises(clew.StoreFull):
        backup(tmp_path / "a.db", tmp_path / "b.db")
    assert names(tmp_path) == before


def test_a_damaged_store_is_copied_but_told(tmp_path: Path) -> None:
    filled(tmp_path / "a.db", 200).close()
    with (tmp_path / "a.db").open("r+b") as file:
        file.seek(-4096 * 20, os.SEEK_END)
        file.write(b"\xff" * 4096 * 10)
    with pytest.raises(clew.Corrupt, match="does not read back clean"):
        backup(tmp_path / "a.db", tmp_path / "b.db")
    assert not (tmp_path / "b.db").exists()
    (kept,) = tmp_path.glob("b.db.damaged-*")
    assert kept.stat().st_size == (tmp_path / "a.db").stat().st_size
    filled(tmp_path / "c.db").close()
    with pytest.raises(clew.Corrupt, match="Nothing was changed"):
        restore(tmp_path / "c.db", kept)


def test_a_backup_from_a_folder_that_takes_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path / "a.db").close()
    real = os.access
    monkeypatch.setattr(os, "access", lambda p, mode: mode != os.W_OK and real(p, mode))
    assert count(backup(tmp_path / "a.db", tmp_path / "b.db")) == 20


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path / "a.db").close()

    def link(source: Path, dest: Path) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", link)
    assert count(backup(tmp_path / "a.db", tmp_path / "b.db")) == 20


# ---------------------------------------------------------------- restore


def test_restoring_stops_those_who_have_the_store_open(tmp_path: Path) -> None:
    store = filled(tmp_path / "a.db")
    store.backup(tmp_path / "b.db")
    conversation = store.profile("me").conversation("k")
    conversation.add(clew.user("after the backup"))
    assert store.profile("me").search("after").hits
    inode = (tmp_path / "a.db").stat().st_ino

    done = restore(tmp_path / "a.db", tmp_path / "b.db")
    assert (done.conversations, done.messages) == (1, 20)
    assert (tmp_path / "a.db").stat().st_ino == inode
    assert not (tmp_path / "a.db.search").exists()
    assert conversation.add(clew.user("lost?")).spooled  # durable, and not in the store
    with pytest.raises(clew.StoreReplaced):
        conversation.set_title("of another store")
    store.close()

    assert count(tmp_path / "a.db") == 20
    assert done.kept is not None
    assert done.kept.stat().st_mode & 0o777 == 0o600
    assert count(done.kept) == 21
    with clew.open(tmp_path / "a.db") as again:
        assert not again.profile("me").search("after").hits


def test_nothing_that_was_acknowledged_slips_between(tmp_path: Path) -> None:
    """What writers were told is stored is in the kept copy; what came after is in the spool."""
    store = filled(tmp_path / "a.db")
    store.backup(tmp_path / "b.db")
    acknowledged: list[int] = []

    def write() -> None:
        with clew.open(tmp_path / "a.db") as own:
            conversation = own.profile("me").conversation("k")
            while not (done := conversation.add(clew.user("more"))).spooled:
                acknowledged.append(done.head)

    writer = threading.Thread(target=write)
    writer.start()
    while len(acknowledged) < 5:
        pass
    done = restore(tmp_path / "a.db", tmp_path / "b.db")
    writer.join()
    store.close()
    assert done.kept is not None
    assert count(done.kept) == acknowledged[-1]
    assert count(tmp_path / "a.db") == 20


def test_a_backup_that_fails_verification_touches_nothing(tmp_path: Path) -> None:
    filled(tmp_path / "a.db").close()
    backup(tmp_path / "a.db", tmp_path / "b.db")
    connection = connect(str(tmp_path / "b.db"), 5, writer=True)
    connection.execute("UPDATE conversation SET head = head + 1")
    connection.close()
    before = names(tmp_path)
    with pytest.raises(clew.Corrupt, match="does not pass verification"):
        restore(tmp_path / "a.db", tmp_path / "b.db")
    assert names(tmp_path) == before
    assert count(tmp_path / "a.db") == 20


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "a.db").close()
    (tmp_path / "text").write_text("hello " * 100)
    (tmp_path / "empty").touch()
    other = apsw.Connection(str(tmp_path / "other.db"))
    other.execute("CREATE TABLE t(x)")
    other.close()
    for name in ("text", "empty", "other.db", "none"):
        with pytest.raises(clew.StoreError):
            restore(tmp_path / "a.db", tmp_path / name)
    with pytest.raises(clew.StoreError):
        restore(tmp_path / "other.db", tmp_path / "a.db")
    with pytest.raises(clew.InputError, match="the store itself"):
        restore(tmp_path / "a.db", tmp_path / "a.db")
    with pytest.raises(clew.InputError, match="no folder"):
        restore(tmp_path / "none" / "b.db", tmp_path / "a.db")


def test_restoring_where_nothing_is(tmp_path: Path) -> None:
    filled(tmp_path / "a.db").close()
    for name in ("new.db", "empty.db"):
        if name == "empty.db":
            (tmp_path / name).touch()
        assert restore(tmp_path / name, tmp_path / "a.db").kept is None
        assert count(tmp_path / name) == 20
    (tmp_path / "gone.db-wal").write_bytes(b"x")
    with pytest.raises(clew.StoreError, match="without its store"):
        restore(tmp_path / "gone.db", tmp_path / "a.db")


@pytest.mark.parametrize("place", [200, 4096])
def test_a_damaged_store_is_replaced_and_kept(tmp_path: Path, place: int) -> None:
    """Also when not even its schema can be read."""
    filled(tmp_path / "a.db").close()
    backup(tmp_path / "a.db", tmp_path / "b.db")
    with (tmp_path / "a.db").open("r+b") as file:
        file.seek(place)
        file.write(b"\xff" * 4096 * 10)
    done = restore(tmp_path / "a.db", tmp_path / "b.db")
    assert done.kept is not None
    assert done.kept.stat().st_size > 4096 * 10
    assert count(tmp_path / "a.db") == 20


def test_a_store_whose_mode_somebody_changed_is_put_right(tmp_path: Path) -> None:
    filled(tmp_path / "a.db").close()
    backup(tmp_path / "a.db", tmp_path / "b.db")
    connection = apsw.Connection(str(tmp_path / "a.db"))
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    restore(tmp_path / "a.db", tmp_path / "b.db")
    assert migrate.examine(str(tmp_path / "a.db")).wal
    assert count(tmp_path / "a.db") == 20


def test_another_page_size_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "a.db").close()
    filled(tmp_path / "b.db").close()
    connection = apsw.Connection(str(tmp_path / "b.db"))
    for sql in ("journal_mode = DELETE", "page_size = 8192"):
        connection.execute(f"PRAGMA {sql}").fetchall()
    connection.execute("VACUUM")
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.close()
    with pytest.raises(clew.StoreError, match="page size"):
        restore(tmp_path / "a.db", tmp_path / "b.db")
    assert count(tmp_path / "a.db") == 20


def test_two_restores_of_one_second_keep_both(tmp_path: Path) -> None:
    filled(tmp_path / "a.db").close()
    backup(tmp_path / "a.db", tmp_path / "b.db")
    kept = {restore(tmp_path / "a.db", tmp_path / "b.db").kept for _ in range(3)}
    assert len(kept) == 3


def test_a_restoration_that_is_not_applied_leaves_nothing(tmp_path: Path) -> None:
    filled(tmp_path / "a.db").close()
    backup(tmp_path / "a.db", tmp_path / "b.db")
    before = names(tmp_path)
    with Restoration(tmp_path / "a.db", tmp_path / "b.db") as ready:
        assert ready.contents.messages == 20
    assert names(tmp_path) == before
