"""Several versions of clew at one file, in real processes; and a crash between two steps."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import apsw
import pytest
import sample

import clew
from clew.store import migrate, upgrading
from clew.store.migrate import Migration
from clew.store.sqlite import SqliteBackend
from servers import WAIT

NEXT = migrate.known()[-1].number + 1

PROCESS = """
import sys, time
from clew.store import migrate
from clew.store.migrate import Migration
from clew.store.sqlite import SqliteBackend

def made_up(number, breaks, sql):
    return Migration(number, breaks, f"{number:04}_made_up", lambda: sql)

NEXT = migrate.known()[-1].number + 1
ADD = made_up(NEXT, False, "CREATE TABLE more(x INTEGER) STRICT; INSERT INTO more VALUES (1)")
BREAK = made_up(NEXT + 1, True, "ALTER TABLE job RENAME COLUMN at TO held_at")
LAST = made_up(NEXT + 2, False, "CREATE TABLE last(x INTEGER) STRICT")
path = sys.argv[1]
"""


class Process:
    """A program that says one line at a time, and goes on when it is told to."""

    def __init__(self, body: str, path: Path) -> None:
        code = PROCESS + textwrap.dedent(body)
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", code, str(path)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def hears(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def tell(self) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.hears()

    def end(self) -> int:
        self.process.communicate(timeout=WAIT)
        return self.process.returncode


OLD = """
    import clew
    store = clew.open(path)
    profile = store.profile("p")
    conv = profile.create(id="c")
    stored = 0
    print("open")
    for line in sys.stdin:
        try:
            conv.add({"role": "user", "content": str(stored), "id": f"k{stored}"})
            stored += 1
            print("stored")
        except clew.StoreError as error:
            try:
                conv.info()
            except clew.StoreError as again:
                print(type(error).__name__, type(again).__name__, "Upgrade" in str(error))
"""
"""The clew of now, which is the old one: it knows nothing of the steps above."""


def held(path: Path) -> list[str]:
    """The keys in the file, whatever its schema."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    rows = list(connection.execute("SELECT key FROM message ORDER BY seq"))
    connection.close()
    return [row[0] for row in rows]


def test_an_older_process_goes_on_after_a_harmless_step_and_stops_after_another(
    tmp_path: Path,
) -> None:
    """S05.1: what a newer one changed beyond it is told in its next transaction, read or write;
    nothing of it is written, and what it had stored is there."""
    path = tmp_path / "store.db"
    old = Process(OLD, path)
    assert old.hears() == "open"
    assert old.tell() == "stored"
    newer = "SqliteBackend(path, migrations=[*migrate.known(), {}]).close()"
    assert Process(newer.format("ADD"), path).end() == 0
    assert old.tell() == "stored"
    assert Process(newer.format("ADD, BREAK"), path).end() == 0
    before = held(path)
    assert old.tell() == "SchemaTooNew SchemaTooNew True"
    assert old.tell() == "SchemaTooNew SchemaTooNew True"
    assert old.end() == 0
    assert held(path) == before == ["k0", "k1"]


def test_an_older_process_that_writes_all_the_time_loses_nothing(tmp_path: Path) -> None:
    """The step waits its turn between two of its commits, and the next one is refused."""
    path = tmp_path / "store.db"
    body = """
    import clew
    conv = clew.open(path, spool=False).profile("p").create(id="c")
    n = 0
    print("open")
    try:
        while True:
            conv.add({"role": "user", "content": "x", "id": f"k{n}"})
            n += 1
    except clew.SchemaTooNew:
        print(n)
    """
    old = Process(body, path)
    assert old.hears() == "open"
    newer = "SqliteBackend(path, migrations=[*migrate.known(), ADD, BREAK]).close()"
    assert Process(newer, path).end() == 0
    stored = int(old.hears())
    assert old.end() == 0
    assert held(path) == [f"k{n}" for n in range(stored)]


def made_up(number: int, breaks: bool, sql: str) -> Migration:
    return Migration(number, breaks, f"{number:04}_made_up", lambda: sql)


ADD = made_up(NEXT, False, "CREATE TABLE more(x INTEGER) STRICT; INSERT INTO more VALUES (1)")
BREAK = made_up(NEXT + 1, True, "ALTER TABLE job RENAME COLUMN at TO held_at")
LAST = made_up(NEXT + 2, False, "CREATE TABLE last(x INTEGER) STRICT")


def schema(path: Path) -> tuple[str, set[str]]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    version = list(connection.execute("SELECT value FROM meta WHERE name = 'schema_version'"))
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
    connection.close()
    return version[0][0], tables


def test_a_process_that_is_killed_between_two_steps_leaves_the_old_schema(tmp_path: Path) -> None:
    """The steps and their version are one transaction; the next opening begins anew."""
    path = tmp_path / "store.db"
    sample.make(path)
    before = schema(path)
    body = """
    def told(number, of, name):
        print(number, of, name)
        if number == 3:
            time.sleep(600)

    SqliteBackend(path, migrations=[*migrate.known(), ADD, BREAK, LAST], progress=told)
    """
    process = Process(body, path)
    assert [process.hears() for _ in range(3)] == [
        f"{n} 3 {NEXT + n - 1:04}_made_up" for n in (1, 2, 3)
    ]
    process.process.send_signal(signal.SIGKILL)
    assert process.end() == -signal.SIGKILL
    assert schema(path) == before
    with clew.open(path) as store:
        assert store.verify() == []
    SqliteBackend(path, migrations=[*migrate.known(), ADD, BREAK, LAST]).close()
    version, tables = schema(path)
    assert version == str(NEXT + 2)
    assert {"more", "last"} < tables


def test_a_disk_that_fails_in_the_middle_leaves_the_old_schema(tmp_path: Path) -> None:
    """By any error of a step, here the last one's."""
    path = tmp_path / "store.db"
    sample.make(path)
    before = schema(path)
    full = made_up(
        NEXT + 1, False,
        "PRAGMA max_page_count = 1; CREATE TABLE big(x); INSERT INTO big "
        "SELECT randomblob(4000) FROM generate_series(1, 1000)",
    )  # fmt: skip
    with pytest.raises(clew.StoreError):
        SqliteBackend(path, migrations=[*migrate.known(), ADD, full])
    assert schema(path) == before


def test_progress_is_told_before_each_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    clew.open(path).close()
    steps: Sequence[Migration] = [*migrate.known(), ADD, LAST]
    monkeypatch.setattr(migrate, "known", lambda: steps)
    told: list[tuple[int, int, str]] = []
    upgrade = upgrading.upgrade_of(path)
    assert [step.name for step in upgrade.state().pending] == [ADD.name, LAST.name]
    assert upgrade.apply(0, lambda *step: told.append(step)) == NEXT + 2
    assert told == [(1, 2, ADD.name), (2, 2, LAST.name)]
    assert upgrade.apply(0, lambda *step: told.append(step)) == NEXT + 2
    assert len(told) == 2
