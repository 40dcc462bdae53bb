"""Getting rid of bytes that an SQLite file keeps after their rows are gone, and looking for them.

SQLite leaves old bytes in three places: in pages that are free, in the free part of pages in use
(rows that grew, shrank or moved to a neighbour left copies there; secure_delete clears what is
deleted, and not those), and in the -wal until it is overwritten. Only a file that is written anew
has none: VACUUM reads the rows, and nothing else, and writes every page. Then the -wal is cut to
nothing. Both wait for their turn as any writer; who writes meanwhile waits, readers go on.

Files are read through SQLite's own VFS: to close a descriptor of the database would drop its locks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any, cast

import apsw

from clew.errors import Busy
from clew.store.admission import admitted
from clew.store.needles import SIXTEEN, Needles
from clew.store.sqlite_connections import connect
from clew.store.sqlite_driver import query, translate
from clew.store.turnstile import Turnstile
from clew.store.values import FileTrace, StoredValue, stored

CHUNK = 1 << 20
_COPIES = (".replaced", ".bak", ".backup", ".restore", ".repair", ".broken", ".copy", ".old")


def scrub(path: str, patience: float) -> tuple[str, ...]:
    """Write the file anew and cut its -wal; gives the copies that lie beside it.

    Raises Busy when others keep it, StoreFull when there is no room for a second file of its size.
    """
    with admitted(path, "erasure", patience):
        turnstile = Turnstile(path)
        turnstile.enter()
        try:
            connection = connect(path, patience, writer=True)
            try:
                query(connection, "PRAGMA secure_delete = ON")
                query(connection, "VACUUM")
                cut_wal(connection, path, patience)
            finally:
                connection.close(True)
        finally:
            turnstile.close()
    return copies(path)


def copies(path: str) -> tuple[str, ...]:
    """What lies beside the file under its name and may hold the same: nobody but a person may
    delete it."""
    folder, name = os.path.split(path)
    own = {name + side for side in ("", "-wal", "-shm", ".turn", ".gate", ".admit")}
    beside = sorted(n for n in os.listdir(folder or ".") if n.startswith(name) and n not in own)
    found = [n for n in beside if any(mark in n for mark in _COPIES)]
    return (
        *(f"{os.path.join(folder, n)} is a copy of before: delete it" for n in found),
        "backups made before hold it until they are deleted",
    )


def cut_wal(connection: apsw.Connection, path: str, patience: float) -> None:
    """Copy the -wal into the file and cut it to nothing; who reads an older state is waited for."""
    deadline = time.monotonic() + patience
    while query(connection, "PRAGMA wal_checkpoint(TRUNCATE)")[0][0]:
        if time.monotonic() > deadline:
            raise Busy(
                f"a reader keeps an older state of {path}, so {path}-wal cannot be cut; end "
                f"the programs that read it, and give the command again"
            )
        time.sleep(0.02)


def values(connection: apsw.Connection) -> Iterator[StoredValue]:
    """Every text and every bytes of every table of the store; closes the connection."""
    run: Any = cast(Any, connection).execute
    try:
        tables = run(
            "SELECT name FROM sqlite_schema WHERE type = 'table' "
            "AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name"
        ).fetchall()
        for (table,) in tables:
            columns = [row[1] for row in run(f'PRAGMA table_info("{table}")').fetchall()]
            for row in run(f'SELECT * FROM "{table}"'):  # noqa: S608 (names are the schema's own)
                yield from stored(table, columns, row)
    except apsw.Error as error:
        raise translate(error, connection.system_errno) from error
    finally:
        connection.close(True)


def traces(path: str, needles: Needles) -> Iterator[FileTrace | int]:
    """Pieces found in the database and its -wal; of each step also how many bytes were read."""
    kinds = (("", apsw.SQLITE_OPEN_MAIN_DB), ("-wal", apsw.SQLITE_OPEN_WAL))
    for side, kind in kinds:
        try:
            flags = [kind | apsw.SQLITE_OPEN_READONLY, 0]
            file = apsw.VFSFile("", path + side, flags)
        except apsw.CantOpenError:
            continue  # there is no -wal
        try:
            yield from _read(file, path + side, needles)
        finally:
            file.xClose()


def _read(file: apsw.VFSFile, name: str, needles: Needles) -> Iterator[FileTrace | int]:
    """In pieces that overlap by a little less than a needle, and begin at a word."""
    at, size = 0, file.xFileSize()
    while at < size:
        data = file.xRead(min(CHUNK + 2 * SIXTEEN, size - at), at)
        yield min(CHUNK, len(data))
        for place, piece in needles.find(data):
            yield FileTrace(name, at + place, piece)
        at += CHUNK
