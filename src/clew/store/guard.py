"""Notices that the files of an open store are no longer those it opened.

SQLite goes on writing into a renamed or unlinked file and reports success. Only `os.stat` is used:
opening and closing the database, its -wal or its -shm here would drop SQLite's locks.

A file cannot be replaced, moved or deleted without a change of its folder's ctime, which nobody
can set back, so as long as that stands still the folder is all that is asked. This is not only
cheaper: since Linux 6.13 asking a file for its times makes the next write to it update them, and
with a stat of the -wal before each commit every sync had the inode to write as well.
"""

from __future__ import annotations

import os
import sys
import time

from clew.errors import StoreMoved, StoreReplaced
from clew.store.backend import Transaction

Identity = tuple[int, int]

_FINE, _COARSE = 100_000_000, 2_500_000_000
"""Nanoseconds after which a further change of a folder shows another ctime: where times have
fractions, and where they have not."""


class FileIdentity:
    """Device and inode of the database, and of its -wal once a writer has it open."""

    __slots__ = ("_database", "_folder", "_path", "_seen", "_wal", "_wal_path")

    def __init__(self, path: str) -> None:
        """Remember the database at `path`, which is absolute. To be made before SQLite opens it:
        a file swapped in between is then noticed at the first check."""
        self._path = path
        self._wal_path = path + "-wal"
        self._folder = os.path.dirname(path)
        self._database = _identity(path)
        self._wal: Identity | None = None
        self._seen: tuple[int, int, int] | None = None
        """The folder when all was in order, or None while one change may hide another."""

    def check(self) -> None:
        """Raise StoreReplaced if a path names another file than before, or none. Before BEGIN."""
        try:
            folder = os.stat(self._folder)
        except OSError:
            self._look()
        else:
            seen = (folder.st_ctime_ns, folder.st_ino, folder.st_dev)
            if seen != self._seen:
                self._look()
                self._seen = seen if _settled(folder.st_ctime_ns) else None

    def see_wal(self) -> None:
        """Remember the -wal, which stays as long as some connection of this store is open. To be
        called inside a transaction; only the first time counts."""
        if self._wal is None:
            self._wal = _identity(self._wal_path)

    def forget_wal(self) -> None:
        """The writer's connection is closed; its successor may create another -wal."""
        self._wal = None
        self._seen = None

    def _look(self) -> None:
        if _identity(self._path) != self._database:
            raise StoreReplaced(
                f"{self._path} is no longer the file that was opened: it was replaced, moved or "
                f"deleted. Nothing was written. Close this store and open the path again."
            )
        if self._wal is not None and _identity(self._wal_path) != self._wal:
            raise StoreReplaced(
                f"{self._wal_path} was replaced or deleted while the store was open. Nothing was "
                f"written. Close every store on this file, then run `clew doctor`."
            )


def check_stamp(transaction: Transaction, stamp: str) -> None:
    """Raise StoreReplaced if the content is no longer what was opened: a restore changes the
    stamp, and so does copying another store's file over this one in place. StoreMoved if the store
    was moved to another place, which changes it too."""
    if transaction.row("stamp_read") != (stamp,):
        moved = transaction.row("copy_moved")
        if moved is not None:
            raise StoreMoved(moved[0])
        raise StoreReplaced(
            "the store was restored or replaced in place while it was open. "
            "Nothing was written. Close this store and open the path again."
        )


def _identity(path: str) -> Identity | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _settled(ctime: int) -> bool:
    """Whether the change is old enough that the next one must differ. On Windows a folder's
    ctime is when it was created, and says nothing."""
    age = time.time_ns() - ctime
    return sys.platform != "win32" and age > (_FINE if ctime % 1_000_000_000 else _COARSE)
