"""Another tool's SQLite file, read as one snapshot and never written.

The statements that read it stand with the reader of its format: they are about that tool's tables,
not ours.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import apsw
import apsw.ext

from clew.errors import InputError

Value = str | bytes | int | float | None
VALUE = 64 << 20
"""Bytes of the largest value that is read."""
TABLES = 1000
"""Tables of one file that are looked at."""


class Foreign:
    """A read-only connection inside one read transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._encoding = str(cast(Any, connection).pragma("encoding"))
        self._typed: dict[str, str] = {}

    def rows(self, sql: str, *params: Value) -> Iterator[tuple[Any, ...]]:
        """Rows of a SELECT, as they come; what is no UTF-8 in a text becomes U+FFFD. What SQLite
        refuses is an InputError."""
        try:
            typed = self._typed.get(sql) or self._typed.setdefault(sql, self._with_types(sql))
            for row in cast(Any, self._connection).execute(typed, params):
                yield tuple(map(self._value, row[::2], row[1::2]))
        except (apsw.Error, UnicodeDecodeError) as error:  # names, too, may be no UTF-8
            raise InputError(f"the database cannot be read: {error}") from None

    def _with_types(self, sql: str) -> str:
        """The statement with texts as bytes: SQLite takes any bytes for a text and would refuse to
        give them as one, and the rows behind it with it. Behind each type its value."""
        width = len(cast(Any, apsw.ext).query_info(self._connection, sql).description)
        names = [f"c{n}" for n in range(width)]
        picked = ", ".join(
            f"typeof({name}), CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB) "
            f"ELSE {name} END"
            for name in names
        )
        return f"WITH found({', '.join(names)}) AS ({sql}) SELECT {picked} FROM found"  # noqa: S608

    def _value(self, kind: str, value: Value) -> Value:
        if kind != "text" or not isinstance(value, bytes):
            return value
        return value.decode(self._encoding, "replace")

    def columns(self, table: str) -> frozenset[str]:
        """The columns of a table: versions of a tool differ in them."""
        return frozenset(
            row[0] for row in self.rows("SELECT name FROM pragma_table_info(?)", table)
        )


def loose(value: object) -> str | None:
    """A value as text, whatever it is: SQLite takes any in a column of texts."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return None if value is None else str(value)


def foreign_tables(path: Path) -> dict[str, frozenset[str]]:
    """The tables of a database and their columns; none when it cannot be read."""
    try:
        with open_foreign(path) as database:
            sql = "SELECT name FROM sqlite_schema WHERE type = 'table' LIMIT ?"
            names = [str(row[0]) for row in database.rows(sql, TABLES)]
            return {name: _columns(database, name) for name in names}
    except InputError:
        return {}


def _columns(database: Foreign, table: str) -> frozenset[str]:
    """None of a table that only an extension of SQLite could read."""
    try:
        return database.columns(table)
    except InputError:
        return frozenset()


@contextmanager
def open_foreign(path: Path) -> Generator[Foreign, None, None]:
    """Open a database that another program may be using."""
    try:
        connection = _connect(path)
    except apsw.Error as error:
        raise InputError(f"{path} cannot be opened as a database: {error}") from None
    try:
        yield Foreign(connection)
    finally:
        connection.close()


def _connect(path: Path) -> apsw.Connection:
    """Read only. Where its folder cannot be written, a file in WAL mode has to be taken as one that
    nobody changes."""
    try:
        return _begun(f"file:{quote(str(path))}?mode=ro")
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        return _begun(f"file:{quote(str(path))}?mode=ro&immutable=1")


def _begun(uri: str) -> apsw.Connection:
    connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, VALUE)
        connection.set_busy_timeout(5000)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        cast(Any, connection).execute("BEGIN").fetchall()
        cast(Any, connection).execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection
