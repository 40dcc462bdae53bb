"""Reads a store that lies in a folder where nobody may write.

A reader of a WAL database needs the -shm, which it cannot make there. But a store that was closed
cleanly is one file and complete, and SQLite reads it without locks if told that it is immutable.
If somebody else may write there after all, that promise can break: so the file is looked at around
every read.
"""

from __future__ import annotations

import os

from clew.errors import StoreError

WRITE_REMEDY = (
    "Nothing was written. Let this user write to the file and to its folder (chown, chmod, or "
    "mount it writable), or work on a copy: `clew backup`"
)

_Seen = tuple[int, int, int, int]


class Frozen:
    """A cleanly closed store that this process reads without locks."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen = _look(path)

    def check(self) -> None:
        """Raise StoreError if the file is no longer what it was."""
        if _in_use(self._path) or _look(self._path) != self._seen:
            raise StoreError(
                f"{self._path} was read from a folder without the right to write, and somebody "
                f"has written to it meanwhile. Close this store and open the path again"
            )


def frozen_at(path: str) -> Frozen | None:
    """The store at `path` as it is to be read where this process may not make files; None if it
    may, or if there is a -wal: then only SQLite itself knows whether it can be read."""
    if os.access(os.path.dirname(path), os.W_OK) or _in_use(path):
        return None
    return Frozen(path)


def has_unmerged(path: str) -> bool:
    """Whether there are commits beside the file that are not in it."""
    return _size(path + "-wal") > 0


def _in_use(path: str) -> bool:
    """An empty -wal without a -shm is a leftover: whoever has the store open has both."""
    return has_unmerged(path) or (os.path.exists(path + "-wal") and os.path.exists(path + "-shm"))


def _look(path: str) -> _Seen | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
