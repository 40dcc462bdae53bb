"""Every released store opens; a new one and a migrated one are the same; no starter meets half."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import apsw
import pytest
import sample

import clew
from clew.store import migrate
from clew.store.migrate import Migration
from clew.store.sqlite import SqliteBackend

DATA = Path(__file__).parent.parent / "data"
SAMPLES = sorted(set(DATA.glob("store-*.sql")) - set(DATA.glob("store-*.postgres.sql")))
NEXT = migrate.known()[-1].number + 1


def schema(path: Path) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(path))
    rows = list(
        connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY 1, 2")
    )
    rows += connection.execute("SELECT * FROM end_reason ORDER BY 1")
    connection.close()
    return rows


def made_up(number: int, breaks: bool, sql: str) -> Migration:
    """A migration of a version to come."""
    return Migration(number, breaks, f"{number:04}_made_up", lambda: sql)


def opened(path: Path, migrations: Sequence[Migration]) -> None:
    SqliteBackend(path, migrations=migrations).close()


# ---------------------------------------------------------------- old stores


def test_there_is_a_sample_of_this_version() -> None:
    assert DATA / f"store-{clew.__version__}.sql" in SAMPLES


@pytest.mark.parametrize("script", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_of_every_version_opens_and_verifies(script: Path, tmp_path: Path) -> None:
    sample.load(script, tmp_path / "old.db")
    with clew.open(tmp_path / "old.db") as store:
        sample.check(store)


@pytest.mark.parametrize("script", SAMPLES, ids=lambda path: path.stem)
def test_a_migrated_store_has_the_schema_of_a_new_one(script: Path, tmp_path: Path) -> None:
    sample.load(script, tmp_path / "old.db")
    opened(tmp_path / "old.db", migrate.known())
    opened(tmp_path / "new.db", migrate.known())
    assert schema(tmp_path / "old.db") == schema(tmp_path / "new.db")


def test_one_migration_at_a_time_leads_to_the_same_schema(tmp_path: Path) -> None:
    known = [*migrate.known(), made_up(NEXT, False, "CREATE TABLE more(x INTEGER) STRICT")]
    for count in range(1, len(known) + 1):
        opened(tmp_path / "steps.db", known[:count])
    opened(tmp_path / "once.db", known)
    assert schema(tmp_path / "steps.db") == schema(tmp_path / "once.db")


def test_files_are_numbered_without_gaps() -> None:
    assert [m.number for m in migrate.known()] == list(range(1, NEXT))


# ---------------------------------------------------------------- newer stores, failures


def test_a_newer_store_that_allows_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    additive = made_up(NEXT, False, "CREATE TABLE more(x INTEGER) STRICT")
    opened(path, [*migrate.known(), additive])
    with clew.open(path) as store:
        store.profile("p").create().append([clew.user("written by the older one")])
        assert store.verify() == []
    opened(path, [*migrate.known(), additive])


def test_a_newer_store_that_does_not_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    breaking = made_up(NEXT, True, "CREATE TABLE more(x INTEGER) STRICT")
    opened(path, [*migrate.known(), breaking])
    before = path.read_bytes()
    with pytest.raises(clew.SchemaTooNew, match="Upgrade clew"):
        clew.open(path)
    assert path.read_bytes() == before
    opened(path, [*migrate.known(), breaking])


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE more(x); INSERT INTO no_such_table VALUES (1)",
        "CREATE TABLE more(x); DELETE FROM conversation WHERE no = 1",  # leaves orphans
    ],
)
def test_a_migration_that_fails_leaves_the_store_as_it_was(sql: str, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    sample.make(path)
    before = schema(path)
    with pytest.raises(clew.StoreError):
        opened(path, [*migrate.known(), made_up(NEXT, False, sql)])
    assert schema(path) == before
    with clew.open(path) as store:
        assert store.verify() == []


def test_other_files_are_refused_untouched(tmp_path: Path) -> None:
    text, other = tmp_path / "text.db", tmp_path / "other.db"
    text.write_text("these are notes, not a database\n" * 40)
    connection = apsw.Connection(str(other))
    connection.execute("CREATE TABLE theirs(x); INSERT INTO theirs VALUES (1)")
    connection.close()
    for path in (text, other):
        before = path.read_bytes()
        with pytest.raises(clew.StoreError, match="not a clew store"):
            clew.open(path)
        assert path.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"text.db", "other.db"}


# ---------------------------------------------------------------- many at once

STARTER = """
import sys
from clew.store import migrate
from clew.store.migrate import Migration
from clew.store.sqlite import SqliteBackend
sys.stdin.readline()
more = Migration(int(sys.argv[2]), False, "made up", lambda: "CREATE TABLE more(x INTEGER) STRICT")
backend = SqliteBackend(sys.argv[1], migrations=[*migrate.known(), more])
print(backend.meta.store_id)
backend.close()
"""


@pytest.mark.parametrize("there_already", [False, True])
def test_concurrent_starters_agree(there_already: bool, tmp_path: Path) -> None:
    """Some find no file, or an old one; one of them makes it, or migrates it; all go on."""
    path = tmp_path / "store.db"
    if there_already:
        sample.make(path)
    starters = [
        subprocess.Popen(
            [sys.executable, "-c", STARTER, str(path), str(NEXT)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(6)
    ]  # fmt: skip
    for starter in starters:
        assert starter.stdin is not None
        starter.stdin.write("\n")
        starter.stdin.flush()
    answers = [starter.communicate(timeout=60) for starter in starters]
    assert [error for _, error in answers if error] == []
    assert len({answer for answer, _ in answers}) == 1
    assert any(row[1] == "more" for row in schema(path))
    with clew.open(path) as store:
        assert store.verify() == []
