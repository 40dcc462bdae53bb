"""The server of a run and its databases.

The run makes a server of its own, with syncs, or uses the one that CLEW_BENCH_POSTGRES names. Its
databases have the prefix of the run, so that they can be dropped however a job ended.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, LiteralString
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from benchmarks.envs import WORK
from clew.testing.postgres import Server

ADDRESS = "CLEW_BENCH_POSTGRES"
_PREFIX = "CLEW_BENCH_PREFIX"
_SETTINGS = {
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "maintenance_work_mem": "512MB",
    "max_connections": "200",
}
"""Memory for the largest store, and no checkpoint in the middle of a round."""
_TOLD = ("fsync", "synchronous_commit", "shared_buffers", "max_wal_size", "wal_sync_method")


@contextmanager
def running() -> Generator[None]:
    """A server for the jobs, told to them by the environment."""
    os.environ[_PREFIX] = f"bench_{secrets.token_hex(4)}"
    if os.environ.get(ADDRESS):
        try:
            yield
        finally:
            drop_all()
        return
    folder = WORK / f"postgres-{os.getpid()}"
    WORK.mkdir(exist_ok=True)
    with Server.start(folder, settings=_SETTINGS, durable=True) as server:
        os.environ[ADDRESS] = server.url()
        try:
            yield
        finally:
            del os.environ[ADDRESS]
    shutil.rmtree(folder, ignore_errors=True)


def facts() -> str:
    """The server's version and what decides its speed."""
    with _connect() as connection:
        found = connection.execute("SHOW server_version").fetchone()
        settings = [(name, connection.execute(f"SHOW {name}").fetchone()) for name in _TOLD]
    assert found is not None
    told = ", ".join(f"{name} {value[0]}" for name, value in settings if value)
    return f"PostgreSQL {found[0].split()[0]}, {told}"


def url(label: str) -> str:
    """Where the database of this label is, or would be."""
    return urlsplit(os.environ[ADDRESS])._replace(path=f"/{_name(label)}").geturl()


def has(label: str) -> bool:
    """Whether this run has made it."""
    with _connect() as connection:
        query = "SELECT 1 FROM pg_database WHERE datname = %s"
        return connection.execute(query, (_name(label),)).fetchone() is not None


def create(label: str, template: str | None = None) -> str:
    """Make a database, as a copy of another one that nobody uses; its URL."""
    base = "template1" if template is None else _name(template)
    _run("CREATE DATABASE {} TEMPLATE {}", _name(label), base)
    return url(label)


def rename(label: str, to: str) -> None:
    """Give a database that nobody uses another label."""
    _run("ALTER DATABASE {} RENAME TO {}", _name(label), _name(to))


def drop(label: str) -> None:
    """Drop a database, if it is there."""
    _run("DROP DATABASE IF EXISTS {} WITH (FORCE)", _name(label))


def drop_all() -> None:
    """Drop every database of this run."""
    with _connect() as connection:
        query = "SELECT datname FROM pg_database WHERE starts_with(datname, %s)"
        names = connection.execute(query, (os.environ[_PREFIX],)).fetchall()
    for (name,) in names:
        _run("DROP DATABASE {} WITH (FORCE)", name)


def _name(label: str) -> str:
    return f"{os.environ.get(_PREFIX, 'bench')}_{label}".replace("-", "_")


def _connect() -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(os.environ[ADDRESS], autocommit=True)


def _run(statement: LiteralString, *names: str) -> None:
    with _connect() as connection:
        identifiers = map(sql.Identifier, names)
        connection.execute(sql.SQL(statement).format(*identifiers))
