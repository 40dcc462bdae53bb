"""The doctor of stores in files.

No file is made, no log merged, no row changed; a store that is in use may be looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path

import apsw

from clew.clock import Clock, SystemClock
from clew.errors import Corrupt, StoreError
from clew.store import doctor_files, doctor_rows, doctor_search, doctor_spool, migrate
from clew.store.copying import SQL
from clew.store.findings import Ask, Finding, size_text
from clew.store.search.file import bytes_on_disk
from clew.store.search.index import Store as Log
from clew.store.sqlite_connections import check_version
from clew.store.sqlite_driver import FileConnection, query, translate
from clew.store.vacuum import INCREMENTAL, KEPT

LARGE_WAL = 64 << 20
"""Bytes."""
_LOOKS = (
    doctor_files.permissions, doctor_files.folder, doctor_files.holders, doctor_files.disk,
    doctor_files.leftovers,
)  # fmt: skip


def diagnose(store: Path, clock: Clock | None = None) -> list[Finding]:
    """As doctor.diagnose, for a file."""
    found = list(_library())
    if not store.exists():
        return [*found, *doctor_files.no_file(store)]
    for look in _LOOKS:
        found.extend(_careful(look, store))
    found.extend(doctor_spool.look(store, None))
    if not (store.is_file() or store.is_dir()):  # to open a pipe waits for who writes into it
        said, remedy = f"{store} is not a regular file", "Give the path of a store"
        return [*found, Finding("error", "file", said, remedy, code="file.not-a-store")]
    try:
        header = migrate.examine(str(store))
    except StoreError as error:
        remedy = (
            "If it was a store: `clew repair` saves what is left, or restore a backup (clew "
            "restore). Else give the path of a store"
        )
        return [*found, Finding("error", "file", str(error), remedy, code="file.not-a-store")]
    if header.empty and os.path.exists(f"{store}-wal"):
        return [*found, *doctor_files.no_file(store)]
    if header.empty:
        remedy = "Delete it, or open it from Python, which makes a store of it"
        return [*found, Finding("warn", "file", f"{store} is empty", remedy, code="file.empty")]
    found.append(Finding("ok", "file", f"{store}, {size_text(store.stat().st_size)}"))
    if any(finding.code == "holders.wal-deleted" for finding in found):
        return found  # to open it makes a second -wal, and then that process does not merge its own
    found.extend(_inside(store, header.wal, clock or SystemClock()))
    return found


def _inside(store: Path, wal: bool, clock: Clock) -> Iterator[Finding]:
    yield from _journal(store, wal)
    try:
        with closing(quiet(str(store))) as connection:
            ask = _asking(connection)
            meta = dict(ask("meta"))
            yield _schema(meta)
            yield from doctor_rows.moved(meta)
            yield from doctor_rows.unfinished(meta)
            yield _pages(ask)
            yield from _space(ask)
            yield from doctor_rows.look(ask, f"clew.open({str(store)!r})", clock.now())
            log = Log(meta.get("store_id"), meta.get("stamp"), *ask("last_ids")[0])
    except Corrupt as error:
        yield Finding(
            "error", "integrity", f"a page of the file is damaged ({error.__cause__})",
            "Stop what writes to it, then `clew repair`, which saves what is left and changes "
            "nothing; or restore the newest backup (clew restore)",
            code="integrity.damaged",
        )  # fmt: skip
        return
    except StoreError as error:
        yield Finding(
            "error", "integrity", f"the store cannot be read: {error}",
            "Mend what the message names; the log itself may be unharmed",
            code="integrity.unreadable",
        )  # fmt: skip
        return
    yield from _search(f"{store}.search", log)


def _search(path: str, log: Log) -> Iterator[Finding]:
    if not os.path.exists(path):
        yield Finding("ok", "search", "no search file yet; the next search makes it")
        return
    try:
        with closing(quiet(path)) as connection:
            yield doctor_search.look(_asking(connection), log, bytes_on_disk(path))
    except StoreError as error:
        yield Finding(
            "warn", "search", f"the search file cannot be read: {error.__cause__ or error}",
            f"Delete it; the next search makes it anew: rm {path}",
            code="search.unreadable",
        )  # fmt: skip


def _schema(meta: Mapping[str, str]) -> Finding:
    newer = doctor_rows.newer(meta, migrate.known()[-1].number)
    if newer is not None:
        return newer
    ours, version = migrate.known()[-1].number, int(meta.get("schema_version", 0))
    if version < ours:
        return Finding("ok", "schema", f"schema {version}; the next opening brings it to {ours}")
    return Finding("ok", "schema", f"schema {version}, as this clew writes it")


def _space(ask: Ask) -> Iterator[Finding]:
    """Of a file that cannot give back what is free in it."""
    mode, free, pages = ask("space")[0]
    if mode != INCREMENTAL and free > pages // KEPT:
        yield Finding(
            "warn", "space", f"{free:,} of {pages:,} pages are free, and this file cannot become "
            "smaller: it was made without auto_vacuum",
            "New messages take them. For a smaller file: `clew repair`, which writes it anew",
            code="space.kept",
        )  # fmt: skip


def _pages(ask: Ask) -> Finding:
    found = [str(row[0]) for row in ask("quick_check")]
    if found != ["ok"]:
        return Finding(
            "error", "integrity", f"the file is damaged: {'; '.join(found)}",
            "Stop what writes to it, then `clew repair`, which saves what is left and changes "
            "nothing; or restore the newest backup (clew restore)",
            code="integrity.damaged",
        )  # fmt: skip
    total, unused = ask("sizes")[0]
    spare = f", {size_text(unused)} of them unused" if unused else ""
    return Finding("ok", "integrity", f"every page is in order ({size_text(total)}{spare})")


def _asking(connection: apsw.Connection) -> Ask:
    return lambda name: query(connection, SQL[name])


def quiet(path: str) -> apsw.Connection:
    """A connection that changes nothing, neither while open nor by closing.

    A -wal that is there already belongs to somebody, maybe to a crash: closing must not merge it.
    If there is none, SQLite makes one to read, and removes it on closing.
    """
    try:
        connection = FileConnection(path)
        if os.path.exists(f"{path}-wal"):
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.set_busy_timeout(5000)
    except apsw.Error as error:
        raise translate(error) from error
    query(connection, SQL["read_only"])
    return connection


def _library() -> Iterator[Finding]:
    """Whether this SQLite can be trusted."""
    version = apsw.sqlite_lib_version()
    try:
        check_version(version)
    except StoreError as error:
        yield Finding("error", "sqlite", str(error), "pip install -U apsw", code="sqlite.unsafe")
    else:
        yield Finding("ok", "sqlite", f"SQLite {version}, APSW {apsw.apsw_version()}")


def _journal(store: Path, wal: bool) -> Iterator[Finding]:
    """Whether the store is in WAL mode, and how long its log is."""
    if not wal:
        yield Finding(
            "error", "journal", "the store is not in WAL mode: another program has changed that",
            "Close all that has it open, then `clew migrate --wal`",
            code="journal.mode",
        )  # fmt: skip
        return
    size = 0
    with suppress(OSError):
        size = os.stat(f"{store}-wal").st_size
    if size > LARGE_WAL:
        yield Finding(
            "warn", "journal", f"the write-ahead log has {size_text(size)}",
            "A reader has been open for long, or a very large write went through. It is merged "
            "when the last process closes the store: restart long-running ones",
            code="journal.large",
        )  # fmt: skip
    else:
        yield Finding("ok", "journal", f"WAL mode, log {size_text(size)}")


def _careful(look: Callable[[Path], Iterator[Finding]], store: Path) -> Iterator[Finding]:
    """What a look at files finds; that it cannot look is a finding too."""
    try:
        yield from look(store)
    except OSError as error:
        yield Finding(
            "error", "file", f"cannot look at {error.filename or store}: {error.strerror}",
            "Check the permissions of the file and of its folder",
            code="file.unreadable",
        )  # fmt: skip
