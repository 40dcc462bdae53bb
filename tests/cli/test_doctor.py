"""clew.store.doctor: what it finds, and that it changes nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

import clew
from clew.store import doctor_files, doctor_rows, doctor_sqlite, filesystem
from clew.store.doctor import Finding, diagnose
from clew.store.sqlite_connections import connect
from clew.testing.clock import FakeClock


class State(NamedTuple):
    """What a folder looks like from outside."""

    names: dict[str, tuple[int, int]]

    @classmethod
    def of(cls, folder: Path) -> State:
        status = {path.name: path.stat() for path in folder.iterdir()}
        return cls({name: (found.st_mtime_ns, found.st_size) for name, found in status.items()})


def looked_at(path: Path, **given: Any) -> list[Finding]:
    """The findings; nothing beside the store may have changed."""
    before = State.of(path.parent)
    found = diagnose(path, **given)
    assert State.of(path.parent) == before
    return found


def one(found: list[Finding], subject: str, level: str) -> Finding:
    (finding,) = [f for f in found if f.subject == subject and f.level != "ok"]
    assert finding.level == level
    assert finding.remedy
    return finding


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.db"
    with clew.open(path) as store:
        store.profile("me").conversation("k").add(clew.user("hi"))
    return path


def sql(path: Path, *statements: str) -> None:
    connection = connect(str(path), 5, writer=True)
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.close()


def test_a_healthy_store(path: Path) -> None:
    found = looked_at(path)
    assert {finding.level for finding in found} == {"ok"}
    subjects = [finding.subject for finding in found]
    assert subjects == [
        "sqlite", "permissions", "disk", "spool", "file", "journal", "schema", "integrity",
        "contents", "turns", "dictionary", "search",
    ]  # fmt: skip


def test_a_store_in_use_is_looked_at_as_it_is(path: Path) -> None:
    """Its log is neither merged nor made anew."""
    with clew.open(path) as store:
        store.profile("me").conversation("k").add(clew.user("again"))
        assert (path.parent / "a.db-wal").stat().st_size > 0
        assert {finding.level for finding in looked_at(path)} == {"ok"}
        store.profile("me").conversation("k").add(clew.user("and again"))


def test_what_a_crash_left_is_not_touched(path: Path, tmp_path: Path) -> None:
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    with clew.open(path) as store:
        store.profile("me").conversation("k").add(clew.user("in the log only"))
        for name in ("a.db", "a.db-wal"):
            shutil.copyfile(path.parent / name, crashed / name)
            (crashed / name).chmod(0o600)
    size = (crashed / "a.db-wal").stat().st_size
    found = diagnose(crashed / "a.db")
    assert (crashed / "a.db-wal").stat().st_size == size
    assert "2 messages" in next(f.what for f in found if f.subject == "contents")


def test_no_store_and_no_database(tmp_path: Path) -> None:
    assert "no store" in one(looked_at(tmp_path / "none.db"), "file", "warn").what
    (tmp_path / "lost.db-wal").write_bytes(b"x")
    assert "-wal is there" in one(looked_at(tmp_path / "lost.db"), "file", "error").what
    (tmp_path / "empty.db").touch(0o600)
    one(looked_at(tmp_path / "empty.db"), "file", "warn")
    (tmp_path / "text.db").write_text("hello " * 50)
    one(looked_at(tmp_path / "text.db"), "file", "error")


@pytest.mark.skipif(os.name == "nt", reason="no modes")
def test_permissions(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.chmod(0o644)
    assert f"chmod 600 {path}" in (one(looked_at(path), "permissions", "warn").remedy or "")
    path.chmod(0o600)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "may not write" in one(looked_at(path), "permissions", "error").what


def test_disk_and_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(path)
    for free, level in ((1000, "error"), (200 << 20, "ok")):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: usage._replace(free=free))
        assert next(f for f in looked_at(path) if f.subject == "disk").level == level
    monkeypatch.setattr(doctor_files, "LOW_DISK", 0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    one(looked_at(path), "disk", "warn")
    monkeypatch.setattr(filesystem, "file_system", lambda _: "nfs4")
    assert "network" in one(looked_at(path), "folder", "error").what


def test_the_journal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_sqlite, "LARGE_WAL", 10)
    with clew.open(path) as store:
        store.profile("me").conversation("k").add(clew.user("again"))
        one(looked_at(path), "journal", "warn")
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = DELETE").fetchall()
    connection.close()
    assert "not in WAL mode" in one(looked_at(path), "journal", "error").what


def test_an_old_sqlite(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.45.1")
    assert "pip install" in (one(looked_at(path), "sqlite", "error").remedy or "")


def test_the_schema(path: Path) -> None:
    sql(path, "UPDATE meta SET value = '99' WHERE name = 'schema_version'")
    assert all(finding.level == "ok" for finding in looked_at(path))
    sql(path, "UPDATE meta SET value = '99' WHERE name = 'min_writer_version'")
    assert "newer clew" in one(looked_at(path), "schema", "error").what
    sql(path, "UPDATE meta SET value = '0' WHERE name = 'schema_version'")
    assert any("next opening" in finding.what for finding in looked_at(path))


def test_a_store_that_was_moved(path: Path) -> None:
    sql(path, "INSERT INTO meta(name, value) VALUES ('moved_to', '/new/place.db')")
    assert "/new/place.db" in one(looked_at(path), "schema", "error").what


def test_damaged_pages(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with clew.open(path) as store:
        conversation = store.profile("me").conversation("k")
        conversation.append([clew.user(os.urandom(1500).hex()) for _ in range(100)])
    whole = path.read_bytes()
    for place, level in ((len(whole) - 4096 * 8, "error"), (4096, "error"), (200, "error")):
        path.write_bytes(whole[:place] + b"\xff" * 4096 * 4 + whole[place + 4096 * 4 :])
        finding = one(looked_at(path), "integrity", level)
        assert "restore" in (finding.remedy or "")
    path.write_bytes(whole)
    sql(path, "DROP TABLE inbox")
    assert "cannot be read" in one(looked_at(path), "integrity", "error").what


def test_open_turns(path: Path) -> None:
    with clew.open(path) as store:
        conversation = store.profile("me").conversation("k")
        turn = conversation.begin_turn([clew.user("go")])
        assert isinstance(turn, clew.TurnHandle)
        running = next(f for f in looked_at(path) if f.subject == "turns")
        assert running.what.startswith("1 running")
        late = FakeClock(start=(turn.right.held_at or 0) + 10 * turn.right.ttl)
        stale = one(looked_at(path, clock=late), "turns", "warn")
        assert conversation.id in stale.what
        turn.wait()
        waiting = next(f for f in looked_at(path) if f.subject == "turns")
        assert "1 waiting for a person" in waiting.what


def test_many_names_are_shortened(path: Path) -> None:
    with clew.open(path) as store:
        for _ in range(doctor_rows.SHOWN + 3):
            store.profile("me").create().begin_turn([clew.user("go")], holder="nobody", ttl=1)
    assert "and 3 more" in one(looked_at(path), "turns", "warn").what


def test_messages_that_wait_without_a_turn(path: Path) -> None:
    with clew.open(path) as store:
        conversation = store.profile("me").conversation("k")
        conversation.begin_turn([clew.user("go")])
        conversation.append([clew.user("more")])
        conversation.interrupt_turn()
        if not conversation.inbox():
            pytest.skip("interrupting moved it to the log")
    assert "1 message wait" in one(looked_at(path), "inbox", "warn").what


def test_interrupted_deletions(path: Path) -> None:
    sql(path, "UPDATE conversation SET binned_at = 1, deleting = 1")
    finding = one(looked_at(path), "deletions", "warn")
    assert f"clew.open('{path}').maintain()" in (finding.remedy or "")


def test_the_dictionary(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_rows, "ENOUGH", 1)
    assert "maintain()" in (one(looked_at(path), "dictionary", "warn").remedy or "")
    sql(path, "INSERT INTO dictionary(version, bytes, created_at) VALUES (1, x'00', 1)")
    assert any(f.what == "1 dictionary trained" for f in looked_at(path))


def test_leftovers(path: Path) -> None:
    killed = ("a.db.restore-0a", "a.db.partial-0b", "a.repaired-1.db.partial-0c")
    for name in (*killed, "a.db-journal", "a.replaced-1.db"):
        (path.parent / name).touch()
    found = [finding for finding in looked_at(path) if finding.subject == "leftovers"]
    assert [finding.level for finding in found] == ["warn", "warn", "ok"]
    assert all(name in found[0].what for name in killed)


def test_the_search_file(path: Path) -> None:
    def search() -> Finding:
        return next(f for f in looked_at(path) if f.subject == "search")

    assert "next search makes it" in search().what
    with clew.open(path) as store:
        store.search_index.catch_up()
    assert "all is indexed" in search().what
    with clew.open(path) as store:
        store.profile("me").conversation("k").add(clew.user("new"))
    assert "1 message not indexed yet" in search().what
    sql(path, "UPDATE meta SET value = 'another' WHERE name = 'stamp'")
    assert "another log" in search().what
    sql(path.with_name("a.db.search"), "PRAGMA user_version = 77")
    assert "format 77" in search().what
    path.with_name("a.db.search").write_bytes(b"nonsense" * 1000)
    assert search().level == "warn"
    assert "rm " in (search().remedy or "")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_in_the_place_of_the_store_is_told_and_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.db")
    errors = [found for found in diagnose(tmp_path / "a.db") if found.level == "error"]
    assert [found.code for found in errors] == ["file.not-a-store"]
