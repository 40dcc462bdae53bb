"""SQL behind clew's back: how each engine is reached, and what it says in words of its own.

The same statements damage and read both engines; in them `{zeros16}` and the other `words`
stand for what each engine writes in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import psycopg

Run = Callable[[str], list[tuple[Any, ...]]]
"""Runs statements; the rows of the last."""


class Raw(NamedTuple):
    """One engine without clew."""

    connect: Callable[[Any], AbstractContextManager[Run]]
    """A connection to the store at a place, constraints as they are."""
    unguarded: Callable[[Any], AbstractContextManager[Run]]
    """One for which triggers and foreign keys, and checks where possible, do not count."""
    refusal: type[Exception]
    """What a constraint raises."""
    columns: str
    """Statement: (table, column, type in capitals) of everything that is stored."""
    own_texts: frozenset[str]
    """TEXT columns that no other engine has: made by clew, or names that another column refuses."""
    words: Mapping[str, str]

    def say(self, statement: str, **more: object) -> str:
        """The statement in this engine's words."""
        return statement.format(**self.words, **more)


@contextmanager
def _sqlite(path: Path, *settings: str) -> Generator[Run]:
    with closing(apsw.Connection(str(path))) as connection:
        for setting in settings:
            connection.execute(f"PRAGMA {setting}").fetchall()
        yield lambda statements: connection.execute(statements).fetchall()


@contextmanager
def _postgres(url: str, *settings: str) -> Generator[Run]:
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        for setting in settings:
            connection.execute(f"SET {setting}".encode())

        def run(statements: str) -> list[tuple[Any, ...]]:
            cursor = connection.execute(statements.encode())
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description else []

        yield run


SQLITE = Raw(
    connect=lambda path: _sqlite(path, "foreign_keys = ON"),
    unguarded=lambda path: _sqlite(path, "foreign_keys = OFF", "ignore_check_constraints = ON"),
    refusal=apsw.ConstraintError,
    columns="SELECT t.name, c.name, c.type FROM sqlite_schema t, pragma_table_info(t.name) c "
    "WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite!_%' ESCAPE '!'",
    own_texts=frozenset(),
    words={
        "free": "DROP TRIGGER message_never_changes;",
        "zeros16": "zeroblob(16)", "zeros32": "zeroblob(32)",
        "zero": "x'00'", "torn": "x'01ff'",
        "as_bytes": "CAST({column} AS BLOB)",
    },
)  # fmt: skip

POSTGRES = Raw(
    connect=_postgres,
    unguarded=lambda url: _postgres(url, "session_replication_role = replica"),
    refusal=psycopg.errors.IntegrityError,
    columns="SELECT table_name, column_name, upper(data_type) FROM information_schema.columns "
    "WHERE table_schema = 'public'",
    own_texts=frozenset({
        "conversation_id.id", "conversation_id.profile",
        "search_mark.store_id", "search_mark.stamp", "search_mark.profile",
    }),
    words={
        "free": "",
        "zeros16": f"'\\x{'00' * 16}'::bytea", "zeros32": f"'\\x{'00' * 32}'::bytea",
        "zero": r"'\x00'::bytea", "torn": r"'\x01ff'::bytea",
        "as_bytes": "convert_to({column}, 'UTF8')",
    },
)  # fmt: skip
