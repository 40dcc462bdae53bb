"""Other tools' databases, with values that SQLite takes and Python does not."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from clew.domain.parts import Text
from clew.errors import InputError
from clew.importers.foreign import foreign_tables, loose, open_foreign
from clew.importers.records import Damaged, Record
from clew.importers.registry import FORMATS
from clew.importers.source import Source
from strategies.files import EXAMPLE, FORMS, Form

DATABASES = [form for form in FORMS if form.name in (
    "goose-database", "opencode-database", "hermes-database", "openai-agents",
)]  # fmt: skip


def written(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)
    return path


def test_values_come_as_they_are_and_texts_as_far_as_they_can_be_read(tmp_path: Path) -> None:
    path = written(
        tmp_path / "x.db",
        "CREATE TABLE t (n INTEGER PRIMARY KEY, v)",
        "INSERT INTO t VALUES (1, CAST(x'61ff62' AS TEXT)), (2, x'61ff62'), (3, NULL), (4, 1.5), "
        "(5, CAST(x'610062' AS TEXT)), (6, 9223372036854775807), (7, 'é')",
    )
    with open_foreign(path) as database:
        assert list(database.rows("SELECT n, v FROM t WHERE n < ? ORDER BY n DESC", 8)) == [
            (7, "é"), (6, 2**63 - 1), (5, "a\0b"), (4, 1.5), (3, None), (2, b"a\xffb"),
            (1, "a\ufffdb"),
        ]  # fmt: skip
        assert list(database.rows("SELECT count(*), max(v) FROM t WHERE n = 7")) == [(1, "é")]


def test_a_database_in_utf_16(tmp_path: Path) -> None:
    path = written(
        tmp_path / "x.db", "PRAGMA encoding = 'UTF-16le'", "CREATE TABLE t (v)",
        "INSERT INTO t VALUES ('データ')",
    )  # fmt: skip
    with open_foreign(path) as database:
        assert list(database.rows("SELECT v FROM t")) == [("データ",)]


def test_tables_and_their_columns(tmp_path: Path) -> None:
    path = written(tmp_path / "x.db", "CREATE TABLE a (x, y)", "CREATE TABLE b (z)")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA writable_schema = 1")
        database.execute(
            "INSERT INTO sqlite_schema VALUES "
            "('table', 'c', 'c', 0, 'CREATE VIRTUAL TABLE c USING unheard_of(q)')"
        )
    assert foreign_tables(path) == {
        "a": frozenset(("x", "y")), "b": frozenset(("z",)), "c": frozenset(),
    }  # fmt: skip


def test_what_sqlite_refuses_is_an_error_of_ours(tmp_path: Path) -> None:
    path = written(tmp_path / "x.db", "CREATE TABLE t (v)")
    with open_foreign(path) as database, pytest.raises(InputError, match="no such column"):
        list(database.rows("SELECT absent FROM t"))
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"SQLite format 3\0" + b"\xff" * 4000)
    assert foreign_tables(broken) == {}


@pytest.mark.parametrize(("value", "text"), [(None, None), (b"a\xff", "a\ufffd"), (5, "5")])
def test_any_value_as_text(value: object, text: str | None) -> None:
    assert loose(value) == text


@pytest.mark.parametrize("form", DATABASES, ids=lambda form: form.name)
def test_what_is_no_utf_8_costs_itself_alone(form: Form, tmp_path: Path) -> None:
    path = form.write(EXAMPLE, tmp_path)
    with closing(sqlite3.connect(path)) as database, database:
        database.text_factory = bytes
        changed = sum(_hurt(database, name.decode()) for (name,) in database.execute(
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite%'"
        ).fetchall())  # fmt: skip
    assert changed == 1
    format = next(each for each in FORMATS if each.name == form.format)
    events = list(format.read(Source(path)))
    texts = [p.text for e in events if isinstance(e, Record) for p in e.parts if type(p) is Text]
    assert texts == [
        "What is in here?", "I \ufffd look.", "Two files: “a” and b.",
        "ありがとう \x1b[31m", "どうも",
    ]  # fmt: skip
    assert not [event for event in events if isinstance(event, Damaged)]


def _hurt(database: sqlite3.Connection, table: str) -> int:
    """Put a byte that is no UTF-8 into what the model said; how many values were changed."""
    count = 0
    for _, column, *_ in database.execute(f"PRAGMA table_info({table})").fetchall():
        name = column.decode()
        rows = database.execute(f"SELECT rowid, {name} FROM {table}").fetchall()
        for row, value in rows:
            if isinstance(value, bytes) and b"I look." in value:
                count += 1
                database.execute(
                    f"UPDATE {table} SET {name} = CAST(? AS TEXT) WHERE rowid = ?",
                    (value.replace(b"I look.", b"I \xff look."), row),
                )
    return count
