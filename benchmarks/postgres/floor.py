"""The floor: psycopg alone, with the rows that clew wrote, ready to be sent.

An append is one transaction in one pipeline, its statements prepared: the row, the conversation's
new values, the commit. The tables are clones of those that clew made, so the indexes are the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

_COLUMNS = """
SELECT column_name FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = %s ORDER BY ordinal_position
"""
_LISTED = "SELECT no, title_user, preview FROM conversation WHERE title_user = ANY(%s) ORDER BY no"
_LOCK = "SELECT head FROM conversation WHERE no = %b FOR UPDATE"
_MOVE = """
UPDATE conversation SET head = %b, message_count = %b, active_at = %b, preview = %b WHERE no = %b
"""
_MOVE_ON = """
UPDATE conversation SET head = head + 1, message_count = message_count + 1, active_at = %b,
  preview = %b WHERE no = %b
"""
_NEXT = "(SELECT head + 1 FROM conversation WHERE no = %b)"
_VOLUME = """
SELECT count(*), sum(octet_length(parts)), (SELECT sum(head) FROM conversation) FROM message
"""
_CONTEXT = """
SELECT seq, uid, role, parts, created_at, key, turn, author, api_group, replaces, tokens, meta
FROM message WHERE conversation_no = %b AND seq BETWEEN 1 AND %b ORDER BY seq
"""


Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True)
class Append:
    """A message's row by column, and the conversation's preview then."""

    row: dict[str, Any]
    preview: str | None


def connect(url: str) -> Connection:
    """A connection that prepares what it runs and begins no transaction by itself."""
    return psycopg.connect(url, autocommit=True, prepare_threshold=0)


def columns(connection: Connection, table: str) -> list[str]:
    """The columns of a table."""
    return [name for (name,) in connection.execute(_COLUMNS, (table,))]


def written(url: str, titles: Sequence[str]) -> dict[str, list[Append]]:
    """Every append that clew made to these conversations, one message each, by title."""
    appends: dict[str, list[Append]] = defaultdict(list)
    with connect(url) as connection:
        names = columns(connection, "message")
        query = f"SELECT {', '.join(names)} FROM message WHERE conversation_no = %s ORDER BY seq"  # noqa: S608
        for no, title, preview in connection.execute(_LISTED, (list(titles),)).fetchall():
            for row in connection.execute(query.encode(), (no,)):
                appends[title].append(Append(dict(zip(names, row, strict=True)), preview))
    return appends


def volume(url: str) -> tuple[Any, ...]:
    """Messages of a store, the bytes of their bodies, and what the conversations say of them."""
    return _rows(url, _VOLUME)[0]


def numbers(url: str) -> dict[str, int]:
    """The numbers of a store's conversations by title."""
    return dict(
        _rows(url, "SELECT title_user, no FROM conversation WHERE title_user <> '' ORDER BY no")
    )


def ids(url: str) -> dict[str, str]:
    """Their ids by title."""
    return dict(
        _rows(url, "SELECT title_user, id FROM conversation WHERE title_user <> '' ORDER BY no")
    )


def _rows(url: str, query: str) -> list[tuple[Any, ...]]:
    with connect(url) as connection:
        return connection.execute(query.encode()).fetchall()


class Floor:
    """A bare connection."""

    def __init__(self, url: str) -> None:
        self._connection = connect(url)
        names = columns(self._connection, "message")
        self._cursor = self._connection.cursor(binary=True)
        self._fields = [name for name in names if name not in ("conversation_no", "seq")]
        listed = ", ".join(["conversation_no", "seq", *self._fields])
        values = ", ".join("%b" for _ in self._fields)
        insert = f"INSERT INTO message({listed}) VALUES (%b, "  # noqa: S608
        self._insert = f"{insert}%b, {values})".encode()
        self._insert_next = f"{insert}{_NEXT}, {values})".encode()

    def append(self, append: Append, no: int) -> None:
        """One message by the only writer of its conversation."""
        row, execute = append.row, self._cursor.execute
        seq = row["seq"]
        with self._connection.pipeline():
            execute("BEGIN")
            execute(self._insert, (no, seq, *map(row.__getitem__, self._fields)))
            execute(_MOVE, (seq, seq, row["created_at"], append.preview, no))
            execute("COMMIT")

    def append_next(self, append: Append, no: int) -> None:
        """One message by one of several writers: locked first, then as the next."""
        row, execute = append.row, self._cursor.execute
        with self._connection.pipeline():
            execute("BEGIN")
            execute(_LOCK, (no,))
            execute(self._insert_next, (no, no, *map(row.__getitem__, self._fields)))
            execute(_MOVE_ON, (row["created_at"], append.preview, no))
            execute("COMMIT")

    def context(self, no: int) -> list[tuple[Any, ...]]:
        """The rows of a conversation, not decoded."""
        return self._cursor.execute(_CONTEXT, (no, 1 << 62)).fetchall()

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Any query, for the floor's side of a measurement."""
        return self._cursor.execute(query.encode(), tuple(values)).fetchall()

    def close(self) -> None:
        self._connection.close()
