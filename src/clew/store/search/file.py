"""The search file on disk: made, opened, replaced and closed so that no process harms another.

SQLite finds the -wal and -shm of a database by name. So a file that takes the place of another
must never meet what that one left behind, nor the other way round. Every step that relates the
name to a file (make, open, replace, close) runs under a lock on the folder; between those steps a
process works on the file it holds. If somebody deletes the file meanwhile, that process goes on
with the old one, which is stale but never wrong, until it looks at the names again: before each
use. If somebody deletes the -wal or -shm alone, others would make new ones and the two sides would
damage each other: whoever notices has the file replaced.

Nothing here opens the store's own files, and the search file is opened by Python only to create
it: closing a descriptor would drop the locks of SQLite.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

from clew.errors import SearchUnavailable
from clew.store.search.connection import Connection, Files, Identity, translated
from clew.store.search.index import Damaged

if sys.platform != "win32":
    import fcntl

_LOCK_SECONDS = 2.0
_SIDES = ("-wal", "-shm")


def identity(path: str) -> Identity | None:
    """Which file the name means now; None if there is none."""
    with translated("stat"):
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino


def files_at(path: str) -> Files:
    """Which files the names of the search file and its companions mean now."""
    return Files(identity(path), *(identity(path + side) for side in _SIDES))


@contextmanager
def _folder(path: str) -> Generator[None]:
    """Alone, among all processes, in relating the name to a file.

    On Windows a file that is open cannot be deleted, so the name cannot change underneath.
    """
    if sys.platform == "win32":
        yield
        return
    with translated("lock"):
        descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        deadline = time.monotonic() + _LOCK_SECONDS
        while not _locked(descriptor):
            if time.monotonic() > deadline:
                raise SearchUnavailable("the folder of the search file stayed locked")
            time.sleep(0.002)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _remove(path: str) -> None:
    with translated("remove"), suppress(FileNotFoundError):
        os.unlink(path)


def open_file(path: str) -> Connection:
    """Open the search file, making an empty one if there is none.

    Raises Damaged if it must be replaced, SearchUnavailable if it cannot be used.
    """
    with _folder(path):
        if identity(path) is None:
            for side in _SIDES:
                _remove(path + side)
            with translated("create"):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        which = identity(path)
        try:
            connection = Connection(path)
        except Damaged as damaged:
            damaged.identity = which
            raise
        connection.files = files_at(path)
        return connection


def close_file(path: str, connection: Connection) -> None:
    """Close a connection. If its files are gone, it touches none of those in their place."""
    try:
        with _folder(path):
            connection.close(tidy=files_at(path) == connection.files)
    except SearchUnavailable:
        # Not alone, so nothing may be removed by name: the -wal is left to the next opener.
        connection.close(tidy=False)


def replace(path: str, judged: Identity | None) -> None:
    """Remove the file that was judged unfit; the next to open makes a new one.

    Does nothing if the name means another file by now: somebody else was faster.
    """
    with _folder(path):
        if identity(path) == judged:
            for name in (path, *(path + side for side in _SIDES)):
                _remove(name)


def bytes_on_disk(path: str) -> int:
    """Size of the file and its -wal, by stat alone."""
    total = 0
    for name in (path, path + "-wal"):
        with suppress(OSError):
            total += os.stat(name).st_size
    return total
