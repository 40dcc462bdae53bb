"""Notices that the files of an open store are no longer those it opened.

SQLite goes on writing into a renamed or unlinked file and reports success. Only `os.stat` is used:
opening and closing the database, its -wal or its -shm here would drop SQLite's locks.
"""

from __future__ import annotations

import os

from clew.errors import StoreReplaced


class FileIdentity:
    """Device and inode of the database, and of its -wal once a writer has it open."""

    __slots__ = ("_database", "_path", "_wal", "_wal_path")

    def __init__(self, path: str) -> None:
        """Remember the database at `path`. To be made before SQLite opens it: a file swapped in
        between is then noticed at the first check."""
        self._path = path
        self._wal_path = path + "-wal"
        self._database = _identity(path)
        self._wal: tuple[int, int] | None = None

    def check(self) -> None:
        """Raise StoreReplaced if a path names another file than before, or none. Before BEGIN."""
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

    def see_wal(self) -> None:
        """Remember the -wal, which stays as long as some connection of this store is open. To be
        called inside a transaction; only the first time counts."""
        if self._wal is None:
            self._wal = _identity(self._wal_path)

    def forget_wal(self) -> None:
        """The writer's connection is closed; its successor may create another -wal."""
        self._wal = None


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
