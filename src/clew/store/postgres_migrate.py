"""Brings a PostgreSQL database to the schema of this code, and refuses one that is not for it.

Many hosts share a store, and are upgraded one after the other. Opening applies what is harmless to
older ones (`pre`); what is not (`post`) is applied by `clew migrate`, once the operator knows that
none is left. Older code that runs nevertheless is refused inside its next write (clew_guard).

The table `meta` is locked by whoever migrates: of hosts that start together the others wait, and
find it done.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import takewhile

import psycopg

from clew import startup
from clew.errors import InputError, SchemaTooNew, StoreError
from clew.store.engines import NoStore
from clew.store.migrations import (
    SECONDS,
    Meta,
    Migration,
    Progress,
    floor,
    known,
    meta_from,
    missing,
)
from clew.store.postgres_driver import FOREIGN, OLDEST_SERVER, Connection, query, translate

MOST_PARTITIONS = 1024
_MADE = (
    "CREATE TABLE IF NOT EXISTS meta("
    'name TEXT COLLATE "C" PRIMARY KEY, value TEXT COLLATE "C" NOT NULL)'
)
_SET = (
    "INSERT INTO meta(name, value) VALUES (%s, %s) "
    "ON CONFLICT(name) DO UPDATE SET value = excluded.value"
)
_KEEP = "INSERT INTO meta(name, value) VALUES (%s, %s) ON CONFLICT(name) DO NOTHING"
_TRIES = 5


def newest() -> int:
    """The schema of this code."""
    return known("postgres")[-1].number


def prepare(
    connection: Connection, steps: Sequence[Migration] | None = None, *, create: bool = True,
    progress: Progress | None = None,
) -> Meta:  # fmt: skip
    """For opening: make a store of an empty database if told to, add what is missing, or refuse."""
    steps = known("postgres") if steps is None else steps
    _check_server(connection)
    found = meta_of(connection)
    if found is None and not create:
        raise NoStore(
            f"the database {connection.info.dbname!r} holds no store yet; make one with "
            f"`clew migrate`"
        )
    if found is None or _missing(found, steps):
        found = _migrate(connection, steps, False, 0, progress)
    _check_ids(connection)
    return _judge(found, steps)


def finish(
    connection: Connection, partitions: int = 0, steps: Sequence[Migration] | None = None,
    progress: Progress | None = None,
) -> Meta:  # fmt: skip
    """For `clew migrate`: apply all steps. `partitions` of message and blob, in an empty database.

    Raises SchemaTooNew, and StoreError if the user may not change tables.
    """
    steps = known("postgres") if steps is None else steps
    if not 0 <= partitions <= MOST_PARTITIONS:
        raise InputError(f"partitions is {partitions}; give a number up to {MOST_PARTITIONS}")
    _check_server(connection)
    found = meta_of(connection)
    if found is not None:
        _refuse_newer(found, steps)
    return _judge(_migrate(connection, steps, True, partitions, progress), steps)


def pending(
    connection: Connection, steps: Sequence[Migration] | None = None
) -> Sequence[Migration]:
    """The steps that `finish` would apply."""
    steps = known("postgres") if steps is None else steps
    found = meta_of(connection)
    return missing(steps, 0 if found is None else int(found["schema_version"]))


def restored(connection: Connection) -> None:
    """After a dump was restored into another server: its transactions have lower numbers than those
    in the store's ids, so that new ids would lie below the marks of followers and search."""
    with connection.transaction():
        query(connection, "LOCK TABLE conversation IN EXCLUSIVE MODE")
        (gap,) = query(
            connection,
            "SELECT greatest(0, clew_offset() + 1 + (greatest((SELECT max(id) FROM message), "
            "(SELECT max(id) FROM change), 0) - clew_newest(pg_current_snapshot())) / 1048576)",
        )[0]
        query(
            connection,
            "CREATE OR REPLACE FUNCTION clew_offset() RETURNS BIGINT LANGUAGE SQL IMMUTABLE AS "
            f"'SELECT CAST({int(gap):d} AS BIGINT)'",
        )
        query(connection, _SET, "stamp", os.urandom(16).hex())


def _check_server(connection: Connection) -> None:
    if connection.info.server_version < OLDEST_SERVER:
        raise StoreError(
            f"the server is PostgreSQL {connection.info.server_version // 10000}; clew needs "
            f"{OLDEST_SERVER // 10000} or later"
        )
    if query(connection, "SELECT current_setting('server_encoding')") != [("UTF8",)]:
        raise StoreError("the database is not UTF8; create one WITH ENCODING 'UTF8'")


def ahead(connection: Connection) -> bool:
    """Whether a store's ids lie ahead of the server: what is written then would not be found."""
    found = query(
        connection,
        "SELECT greatest((SELECT max(id) FROM message), (SELECT max(id) FROM change)) "
        ">= clew_newest(pg_current_snapshot())",
    )
    return found == [(True,)]


def _check_ids(connection: Connection) -> None:
    if ahead(connection):
        raise StoreError(
            "the store comes from another server, by a dump; run `clew migrate --restored` once, "
            "as the owner, before it is used here"
        )


def meta_of(connection: Connection) -> dict[str, str] | None:
    """What `meta` says; None for a database without a store."""
    if query(connection, "SELECT to_regclass('meta')") == [(None,)]:
        return None
    try:
        found = dict(query(connection, "SELECT name, value FROM meta"))
    except StoreError as error:
        if isinstance(error.__cause__, psycopg.errors.UndefinedColumn):
            raise _foreign("meta") from error
        raise
    if "schema_version" not in found:
        raise _foreign("meta")
    return found


def _foreign(table: str) -> StoreError:
    return StoreError(FOREIGN.format(f"a table `{table}`"))


def _refuse_foreign(connection: Connection, steps: Sequence[Migration]) -> None:
    """Where clew's tables are to be made, others may have some of these names."""
    names = [name for step in steps for name in re.findall(r"CREATE TABLE (\w+)", step.read())]
    found = connection.execute(
        "SELECT relname FROM pg_class WHERE relname = ANY(%s) "
        "AND relnamespace = to_regnamespace(quote_ident(current_schema())) ORDER BY relname",
        (names,),
    ).fetchone()
    if found is not None:
        raise _foreign(found[0])


def _missing(record: dict[str, str], steps: Sequence[Migration]) -> bool:
    """Whether this code needs a step that was not applied."""
    version = int(record["schema_version"])
    return any(not step.breaks and step.number > version for step in steps)


def _refuse_newer(record: dict[str, str], steps: Sequence[Migration]) -> None:
    version, ours = int(record["schema_version"]), steps[-1].number
    if version > ours and int(record["min_writer_version"]) > ours:
        raise SchemaTooNew(
            f"the store has schema {version}; this clew knows {ours} and may not write to it. "
            f"Upgrade clew."
        )


def _judge(record: dict[str, str], steps: Sequence[Migration]) -> Meta:
    _refuse_newer(record, steps)
    version = int(record["schema_version"])
    if _missing(record, steps):
        raise StoreError(
            f"the store has schema {version}, and what this clew needs cannot be added while older "
            f"ones may be running. Stop those, then run `clew migrate`"
        )
    return meta_from(record)


def _migrate(
    connection: Connection, steps: Sequence[Migration], finish: bool, partitions: int,
    progress: Progress | None,
) -> dict[str, str]:  # fmt: skip
    """Apply what is missing, in one transaction."""
    for left in range(_TRIES, 0, -1):
        try:
            with connection.transaction():
                return _apply(connection, steps, finish, partitions, progress)
        except psycopg.errors.InsufficientPrivilege as error:
            raise StoreError(
                "the store is not there or not up to date, and this user may not make or change "
                "tables; run `clew migrate` as their owner"
            ) from error
        except (psycopg.errors.UniqueViolation, psycopg.errors.DuplicateTable) as error:
            # Two made `meta` at once, which IF NOT EXISTS does not keep apart: it is there now.
            if left == 1:
                raise translate(error) from error
        except psycopg.Error as error:
            raise translate(error) from error
    raise AssertionError


def _apply(
    connection: Connection, steps: Sequence[Migration], finish: bool, partitions: int,
    progress: Progress | None,
) -> dict[str, str]:  # fmt: skip
    connection.execute(_MADE)
    connection.execute("LOCK TABLE meta IN SHARE ROW EXCLUSIVE MODE")
    rows = connection.execute("SELECT name, value FROM meta").fetchall()
    record: dict[str, str] = dict(rows)
    version = int(record.get("schema_version", "0"))
    if version and partitions:
        raise InputError("partitions are chosen when a store is made; this one is made already")
    fresh, applied = version == 0, version
    if fresh:
        _refuse_foreign(connection, steps)
    due = missing(steps, version)
    if not (finish or fresh):
        due = list(takewhile(lambda step: not step.breaks, due))
    startup.report("bringing the store up to date", SECONDS)
    for number, step in enumerate(due, 1):
        if progress is not None:
            progress(number, len(due), step.name)
        if step.breaks and not fresh:
            connection.execute("LOCK TABLE conversation IN EXCLUSIVE MODE")
            # Also for units that lock no conversation, between their guard and their commit.
            connection.execute("LOCK TABLE meta IN ACCESS EXCLUSIVE MODE")
        _run(connection, step, partitions)
        applied = step.number
    lowest = floor([step for step in steps if step.number <= applied])
    for name, value in (("schema_version", applied), ("min_writer_version", lowest)):
        if int(record.get(name, "0")) < value:
            connection.execute(_SET, (name, str(value)))
    for name in ("store_id", "stamp"):
        connection.execute(_KEEP, (name, os.urandom(16).hex()))
    return dict(connection.execute("SELECT name, value FROM meta").fetchall())


def _run(connection: Connection, step: Migration, partitions: int) -> None:
    text, split = step.read(), "PARTITION BY HASH(conversation_no)" if partitions else ""
    makes = partitions > 0 and "{{partitioned}}" in text
    try:
        connection.execute(text.replace("{{partitioned}}", split).encode(), prepare=False)
        for table in ("message", "blob") if makes else ():
            for rest in range(partitions):
                connection.execute(
                    f"CREATE TABLE {table}_{rest:04d} PARTITION OF {table} FOR VALUES "
                    f"WITH (MODULUS {partitions:d}, REMAINDER {rest:d})".encode()
                )
    except psycopg.Error as error:
        error.add_note(f"in migration {step.name}")
        raise
