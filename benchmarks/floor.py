"""The floor: APSW alone, writing the same rows into the same tables in the same transactions.

The file is a clone of one that clew made, and the rows are read back from one that clew wrote, so
schema, triggers, indexes and every byte are the same by construction. Without search.
"""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "cache_size=-32768",
    "foreign_keys=ON",
    "trusted_schema=OFF",
)

_INSERT = """
INSERT INTO message(conversation_no, seq, uid, key, turn, role, author, api_group, replaces,
  parts, meta, tokens, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_MOVE = """
UPDATE conversation SET head = ?, message_count = ?, active_at = ?, preview = ? WHERE no = ?
"""
_WRITTEN = """
SELECT conversation_no, seq, uid, key, turn, role, author, api_group, replaces, parts, meta,
  tokens, created_at
FROM message WHERE conversation_no = ? ORDER BY seq
"""
_NUMBERS = """
WITH RECURSIVE numbers(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM numbers WHERE value < ?)
"""
_CONTEXT = """
SELECT seq, uid, role, parts, created_at, key, turn, author, api_group, replaces, tokens, meta
FROM message WHERE conversation_no = ? AND seq BETWEEN 1 AND ? ORDER BY seq
"""


@dataclass(frozen=True)
class Append:
    """The parameters of one append: the message's row and the conversation's new values."""

    message: tuple[Any, ...]
    conversation: tuple[Any, ...]


def connect(path: Path) -> apsw.Connection:
    """A connection as clew sets its own up."""
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(5_000)
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


def clone(source: Path, target: Path) -> None:
    """Copy a store with the backup API: the only way that is right for a file in use."""
    origin, copy = apsw.Connection(str(source)), apsw.Connection(str(target))
    with copy.backup("main", origin, "main") as backup:
        backup.step(-1)
    copy.close()
    origin.close()


def multiply_conversations(path: Path, count: int) -> None:
    """Copy the rows of the conversation table, unpinned and ever more recent, until there are
    `count`."""
    connection = connect(path)
    described = connection.execute("PRAGMA table_info(conversation)").fetchall()
    own = {
        "id": "c.id || '-' || n.value",
        "active_at": "c.active_at + n.value * 1000000 + c.no",
        "pinned": "0",
    }
    columns = [str(row[1]) for row in described if row[1] != "no"]
    values = ", ".join(own.get(column, f"c.{column}") for column in columns)
    present = connection.execute("SELECT count(*) FROM conversation").fetchall()[0][0]
    times = -(-count // int(str(present))) - 1
    copied = f"INSERT INTO conversation({', '.join(columns)}) SELECT {values} FROM"
    connection.execute(f"{_NUMBERS} {copied} numbers n, conversation c", (times,))
    connection.close()


def written(path: Path, titles: Collection[str]) -> dict[str, list[Append]]:
    """Every append that clew made to these conversations, one message each, by title."""
    connection = connect(path)
    listed = connection.execute("SELECT no, title_user, preview FROM conversation ORDER BY no")
    appends: dict[str, list[Append]] = defaultdict(list)
    for no, title, preview in listed.fetchall():
        if title not in titles:
            continue
        for row in connection.execute(_WRITTEN, (no,)):
            seq, at = row[1], row[-1]
            appends[str(title)].append(Append(row, (seq, seq, at, preview, no)))
    connection.close()
    return appends


def volume(path: Path) -> tuple[Any, ...]:
    """Messages of a store and the bytes of their bodies."""
    connection = connect(path)
    found = connection.execute("SELECT count(*), sum(length(parts)) FROM message").fetchall()[0]
    connection.close()
    return tuple(found)


class Floor:
    """A bare connection that appends prepared rows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = connect(path)
        self._execute = self.connection.cursor().execute

    def numbers(self) -> dict[str, int]:
        """The numbers of this file's conversations by title."""
        found = self.rows("SELECT title_user, no FROM conversation WHERE title_user IS NOT NULL")
        return dict(found)

    def append(self, append: Append, no: int) -> None:
        """One message, one transaction."""
        self.commit([(append, no)])

    def commit(self, appends: Sequence[tuple[Append, int]]) -> None:
        """Several appends in one transaction."""
        execute = self._execute
        execute("BEGIN IMMEDIATE")
        for append, no in appends:
            execute(_MOVE, (*append.conversation[:4], no))
            execute(_INSERT, (no, *append.message[1:]))
        execute("COMMIT")

    def context(self, no: int) -> list[tuple[Any, ...]]:
        """The rows of a conversation, not decoded."""
        return self._execute(_CONTEXT, (no, 1 << 62)).fetchall()

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Any query, for the floor's side of a measurement."""
        return self._execute(sql, tuple(values)).fetchall()

    def close(self) -> None:
        self.connection.close()


def decode(rows: Sequence[tuple[Any, ...]], json_of: Callable[[bytes], bytes]) -> list[Any]:
    """The bodies of context rows by the standard library; `json_of` undoes the compression."""
    return [json.loads(json_of(row[3])) for row in rows]


class GroupCommit:
    """The bare asyncio group commit: one thread commits whatever waits, and answers all at once."""

    _LARGEST = 256

    def __init__(self, floor: Floor) -> None:
        self._floor = floor
        self._queue: queue.SimpleQueue[tuple[Append, int, asyncio.Future[None]] | None]
        self._queue = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    async def append(self, append: Append, no: int) -> None:
        """Durable when this returns."""
        future = self._loop.create_future()
        self._queue.put((append, no, future))
        await future

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (first := self._queue.get()) is not None:
            batch = [first]
            while len(batch) < self._LARGEST and not self._queue.empty():
                if (item := self._queue.get_nowait()) is None:
                    self._queue.put(None)
                    break
                batch.append(item)
            self._floor.commit([(append, no) for append, no, _ in batch])
            self._loop.call_soon_threadsafe(_resolve, [future for _, _, future in batch])


def _resolve(futures: Sequence[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)
