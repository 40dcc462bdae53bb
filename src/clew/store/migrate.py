"""Brings a file to the schema of this code, and refuses files that are not for it.

All migrations that are missing, `pre` and `post`, are applied at open in one transaction with the
version row, so a crash or a second starter leaves nothing half done.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import apsw

from clew import startup
from clew.errors import SchemaTooNew, StoreError, StoreUnusable
from clew.store import forks, migrations
from clew.store.migrations import Meta, Migration, Progress
from clew.store.sqlite_driver import query, translate

APPLICATION_ID = 0x636C6577
"""`clew`, in the header of every store; `file` shows it."""

_MAGIC = b"SQLite format 3\0"
_SET = (
    "INSERT INTO meta(name, value) VALUES (?, ?) "
    "ON CONFLICT(name) DO UPDATE SET value = excluded.value"
)
_KEEP = "INSERT INTO meta(name, value) VALUES (?, ?) ON CONFLICT(name) DO NOTHING"


class Header(NamedTuple):
    """What the first page says."""

    empty: bool
    wal: bool


def known() -> Sequence[Migration]:
    """The migrations of this code, oldest first."""
    return migrations.known("sqlite")


def examine(path: str) -> Header:
    """Refuse a file that is not a clew store, with nothing written to it or beside it.

    Reads the header below SQLite's file layer, which keeps this process' locks as they are;
    opening another's database as one would create its -wal or play back its journal.
    """
    forks.check(path)
    try:
        file = apsw.VFSFile("", path, [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])
        try:
            header = file.xRead(100, 0)
        finally:
            file.xClose()
    except apsw.Error as error:
        failure = translate(error)
        failure.add_note(f"while looking at {path}")
        raise failure from error
    if not header:
        return Header(empty=True, wal=False)
    if header[:16] != _MAGIC:
        header = _header_in_wal(path)
    if header[:16] != _MAGIC:
        raise StoreError(f"{path} is not a clew store, nor any SQLite database")
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise StoreError(f"{path} is a database of another program, not a clew store")
    return Header(empty=False, wal=header[18:20] == b"\2\2")


def _header_in_wal(path: str) -> bytes:
    """The newest first page in the -wal, or nothing. A power cut while the -wal was being merged
    can leave the first page torn; SQLite then takes it from there."""
    if not os.path.exists(path + "-wal"):
        return b""
    found = b""
    try:
        file = apsw.VFSFile(
            "", path + "-wal", [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_WAL, 0]
        )
        try:
            size, frame = file.xFileSize(), 24 + int.from_bytes(file.xRead(4, 8), "big")
            for start in range(32, size - frame + 1, frame):
                head = file.xRead(124, start)
                if head[:4] == b"\0\0\0\1" and head[24:40] == _MAGIC:
                    found = head[24:]
        finally:
            file.xClose()
    except apsw.Error:
        return b""  # neither can SQLite read it
    return found


def current(connection: apsw.Connection, steps: Sequence[Migration]) -> Meta | None:
    """What the store says of itself if its schema is up to date, by one SELECT; None if there is
    something to migrate; SchemaTooNew if a newer clew has changed it beyond this code."""
    try:
        if not connection.table_exists("main", "meta"):
            return None
    except apsw.Error as error:
        raise translate(error, connection.system_errno) from error
    return _judge(_record(connection), steps[-1].number)


def migrate(
    connection: apsw.Connection,
    steps: Sequence[Migration],
    random: Callable[[int], bytes] = os.urandom,
    progress: Progress | None = None,
) -> Meta:
    """Make a new file a store, or bring an old store up to date. The connection is for writing.

    All steps and the version row are one transaction: whatever ends it in between, a crash too,
    leaves the old schema, and the next opening begins anew."""
    if query(connection, "SELECT count(*) FROM sqlite_schema") == [(0,)]:
        _found(connection)
    elif query(connection, "PRAGMA journal_mode") != [("wal",)]:
        raise StoreUnusable(
            "the store is not in WAL mode: another program has changed that. Close all that has it "
            "open, then `clew migrate --wal` changes it back"
        )
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 0)  # dropping a rebuilt table would act
    query(connection, "BEGIN IMMEDIATE")
    try:
        meta = current(connection, steps) or _apply(connection, steps, random, progress)
        query(connection, "COMMIT")
    except BaseException:
        if connection.in_transaction:
            query(connection, "ROLLBACK")
        raise
    return meta


def _found(connection: apsw.Connection) -> None:
    """Mark an empty file as ours before all else, so that the mark is in the file itself and not
    only in its -wal; then WAL, which is there for good."""
    # As one: a first page without the mark would be another program's, for a second starter and,
    # after a crash, for ever. Not IMMEDIATE, which would make the page before its kind is chosen.
    query(
        connection,
        "BEGIN; PRAGMA auto_vacuum = INCREMENTAL; "
        f"PRAGMA application_id = {APPLICATION_ID}; COMMIT",
    )
    mode = query(connection, "PRAGMA journal_mode = WAL")
    if mode != [("wal",)]:
        raise StoreError(f"this file system does not let SQLite use WAL (mode {mode[0][0]!r})")


def _apply(
    connection: apsw.Connection, steps: Sequence[Migration], random: Callable[[int], bytes],
    progress: Progress | None,
) -> Meta:  # fmt: skip
    """Apply what is missing. Inside the transaction: a second starter finds it done."""
    found = connection.table_exists("main", "meta")
    before = int(_record(connection)["schema_version"]) if found else 0
    missing = migrations.missing(steps, before)
    startup.report("bringing the store up to date", migrations.SECONDS)
    for number, migration in enumerate(missing, 1):
        if progress is not None:
            progress(number, len(missing), migration.name)
        try:
            query(connection, migration.read())
        except StoreError as error:
            error.add_note(f"in migration {migration.name}")
            raise
    if before and (orphans := query(connection, "PRAGMA foreign_key_check")):
        raise StoreError(f"migrating from {before} leaves {len(orphans)} rows without their parent")
    query(connection, _SET, ("schema_version", str(steps[-1].number)))
    query(connection, _SET, ("min_writer_version", str(migrations.floor(steps))))
    query(connection, _KEEP, ("store_id", random(16).hex()))
    query(connection, _KEEP, ("stamp", random(16).hex()))
    return migrations.meta_from(_record(connection))


def _record(connection: apsw.Connection) -> Mapping[str, str]:
    return dict(query(connection, "SELECT name, value FROM meta"))


def _judge(rows: Mapping[str, str], ours: int) -> Meta | None:
    version = int(rows["schema_version"])
    if version > ours and int(rows["min_writer_version"]) > ours:
        raise SchemaTooNew(
            f"the store has schema {version}; this clew knows {ours} and may not write to it. "
            f"Upgrade clew."
        )
    return migrations.meta_from(rows) if version >= ours else None
