"""Copying SQLite files through SQLite's backup API, for backup and restore.

In bounded steps, each retried while a lock is held elsewhere. The source is read in one snapshot
from begin to end, so writers neither wait for a copy nor make it start over.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import apsw

from clew.errors import Corrupt, InputError, StoreError
from clew.store import migrate
from clew.store.queries import parse, read
from clew.store.sqlite_driver import FileConnection, query, translate
from clew.store.wal_holders import check_holders

Progress = Callable[[int, int], None]
"""Called with (done, of) after each step; what it raises ends the copy."""

STEP = 256
"""Pages copied at once: a MiB, some milliseconds."""
PATIENCE = 30.0
"""Seconds a step may wait for a lock."""

SQL = parse(read("upkeep.sql") + read("upkeep.sqlite.sql"))
"""The statements of backup, restore and doctor, by name."""

_SIDES = ("", "-wal", "-shm", "-journal", ".turn", ".gate", ".admit")


class Contents(NamedTuple):
    """What a store holds."""

    conversations: int
    messages: int
    last_message: int
    active_at: int | None
    """Time of the newest activity; None when there are no conversations."""


def contents(opened: apsw.Connection) -> Contents:
    return Contents(*query(opened, SQL["contents"])[0])


def check_store(path: Path) -> None:
    """Refuse what is not the file of a clew store, touching nothing."""
    if not path.exists():
        raise StoreError(f"there is no store at {path}")
    if migrate.examine(str(path)).empty:
        raise StoreError(f"{path} is empty, not a clew store")


# ---------------------------------------------------------------- pages


def copy_snapshot(source: Path, target: Path, progress: Progress | None) -> Contents | None:
    """Copy one snapshot of a store into an empty file; gives what the snapshot holds, or None
    when it is too damaged to tell."""
    expected: Contents | None = None
    with closing(_open_source(source)) as reading:
        with suppress(Corrupt):
            query(reading, SQL["begin_snapshot"])
            query(reading, SQL["hold_snapshot"])
            expected = contents(reading)
        copy_file(reading, target, progress)
    return expected


def copy_file(reading: apsw.Connection, target: Path, progress: Progress | None) -> None:
    """Copy what a connection sees into an empty file, whatever state it is in."""
    with closing(connection(target)) as writing, copying(reading, writing) as copy:
        run(copy, progress)


def read_back(copy: Path, expected: Contents | None, dest: Path) -> Contents:
    """Read every page of a copy and compare what it holds; gives that. Corrupt: the copy is then
    kept beside `dest`, under the name that the error gives."""
    try:
        with closing(connection(copy)) as opened:
            found = query(opened, SQL["integrity"])[0][0]
            held = contents(opened) if found == "ok" else None
            if held is not None and held == expected:
                return held
    except Corrupt:
        found = "a page is damaged"
    damaged = dest.with_name(f"{dest.name}.damaged-{os.urandom(4).hex()}")
    os.rename(copy, damaged)
    raise Corrupt(
        f"the copy does not read back clean ({found}), so the store or the disk is damaged. "
        f"The copy was kept as {damaged}; run `clew doctor`"
    )


def stamp_of(copy: Path) -> str | None:
    """Which life of which store this is."""
    with closing(connection(copy)) as opened:
        return dict(query(opened, SQL["meta"])).get("stamp")


def page_size_of(copy: Path) -> int:
    """Page size of a database that nobody has open."""
    with copy.open("rb") as file:
        size = int.from_bytes(file.read(18)[16:], "big")
    return 65536 if size == 1 else size


@contextmanager
def copying(
    reading: apsw.Connection, writing: apsw.Connection
) -> Generator[apsw.Backup, None, None]:
    """SQLite's backup between two connections. What it raises is typed; if the block fails,
    nothing is written."""
    try:
        with writing.backup("main", reading, "main") as copy:
            yield copy
    except apsw.Error as error:
        raise translate(error, writing.system_errno) from error


def run(copy: apsw.Backup, progress: Progress | None) -> None:
    """Copy to the end."""
    while not copy.done:
        step(copy, STEP)
        if progress is not None:
            progress(copy.page_count - copy.remaining, copy.page_count)


def step(copy: apsw.Backup, pages: int) -> None:
    """Copy some pages, waiting for a lock if need be."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            copy.step(pages)
            return
        except (apsw.BusyError, apsw.LockedError) as error:
            if time.monotonic() > deadline:
                raise translate(error) from error
            time.sleep(0.02)


def connection(path: Path) -> apsw.Connection:
    """A connection for copying to or from a file, whatever state it is in.

    The store's own settings cannot be made on a file whose schema is damaged; of them only the
    sync of each commit matters here, and it is SQLite's default.
    Raises WalLost where another works on in a -wal that was deleted: a second one would keep that
    process from saving its commits.
    """
    check_holders(os.path.realpath(path))
    with _typed(path):
        opened = FileConnection(str(path))
    opened.set_busy_timeout(int(PATIENCE * 1000))
    with suppress(Corrupt):
        query(opened, SQL["sync_each_commit"])
    return opened


def _open_source(path: Path) -> apsw.Connection:
    """A connection for reading; also to a file in a folder that nobody can write to."""
    if os.access(path.parent, os.W_OK) or os.path.exists(f"{path}-wal"):
        return connection(path)
    with _typed(path):
        return FileConnection(str(path.resolve()), immutable=True)


@contextmanager
def _typed(path: Path) -> Generator[None, None, None]:
    try:
        yield
    except apsw.Error as error:
        failure = translate(error)
        failure.add_note(f"while opening {path}")
        raise failure from error


# ---------------------------------------------------------------- files


@contextmanager
def temporary(path: Path) -> Generator[None, None, None]:
    """A new file that is gone after the block, unless it was renamed."""
    create(path)
    try:
        yield
    finally:
        remove(path)


def create(path: Path) -> None:
    """Make a new, empty file that only its owner can read."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise StoreError(f"cannot create {path}: {error.strerror}") from error


def remove(path: Path) -> None:
    """Remove a database that nobody else knows, with all that lies beside it."""
    for side in _SIDES:
        with suppress(OSError):
            os.unlink(f"{path}{side}")


def publish(partial: Path, dest: Path, force: bool) -> None:
    """Give a finished copy its name, never over a file that came meanwhile unless forced."""
    try:
        if force:
            os.replace(partial, dest)
        else:
            _link(partial, dest)
    except FileExistsError:
        raise InputError(f"{dest} was made meanwhile; give another name") from None
    except OSError as error:
        raise StoreError(f"cannot name the copy {dest}: {error.strerror}") from error
    sync_folder(dest.parent)


def _link(partial: Path, dest: Path) -> None:
    try:
        os.link(partial, dest)
    except FileExistsError:
        raise
    except OSError:  # no hard links on this file system
        if dest.exists():
            raise FileExistsError from None
        os.rename(partial, dest)


def sync_folder(folder: Path) -> None:
    """Make a new name durable, where folders can be synced."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
