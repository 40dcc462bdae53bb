"""The PostgreSQL database that tests share: one server for the run, emptied for each test; and what
tests of servers need.

Where the server cannot be started the run fails; nothing is skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from time import monotonic, sleep
from typing import Any

import psycopg

from clew.store.opening import open_parts
from clew.store.store import Store
from clew.testing.postgres import Server

WAIT = 20.0
"""Seconds that a test waits for what has to come."""
_EMPTY = """
DO $$ DECLARE each TEXT; BEGIN
  SET LOCAL lock_timeout = '20s'; -- a store that a test left in a transaction is told of
  SET LOCAL session_replication_role = replica; -- in any order
  FOR each IN SELECT tablename FROM pg_tables
    WHERE schemaname = 'public' AND tablename NOT IN ('meta', 'end_reason')
  LOOP EXECUTE format('DELETE FROM %I', each); END LOOP;
END $$
"""
"""One round trip. TRUNCATE would take thirty times as long."""


@cache
def server() -> Server:
    """The server; it ends with the process."""
    return Server.start()


@cache
def _shared() -> str:
    return server().create_database()


@cache
def _connection() -> psycopg.Connection:
    return psycopg.connect(_shared(), autocommit=True)


def empty_database() -> str:
    """The URL of a database without a conversation. The store in it, if there is one, is kept:
    making a schema takes a hundred times as long."""
    _connection().execute(_EMPTY)
    return _shared()


def open_store(url: str, patience: float = WAIT) -> Store:
    """As clew.open, with another patience, and no spool: what the engine says of a message is what
    the caller gets."""
    parts = open_parts(url, None, None, None, patience=patience, share=False)
    return Store(parts, spool=False)


def ask(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Run SQL behind clew's back."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def until(condition: Callable[[], object]) -> None:
    """Wait until something is so."""
    end = monotonic() + WAIT
    while not condition():
        assert monotonic() < end
        sleep(0.005)
