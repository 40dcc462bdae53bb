"""The PostgreSQL database that tests share: one server for the run, emptied for each test.

Where the server cannot be started the run fails; nothing is skipped.
"""

from __future__ import annotations

from functools import cache

import psycopg

from clew.testing.postgres import Server

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
