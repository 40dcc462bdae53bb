"""An APSW VFS that counts flushes, or stands in for a disk whose every flush takes a fixed time.

It registers itself as the default, so a store opened afterwards uses it without knowing. Flushes
of the write-ahead log go through a descriptor of its own and `os.fdatasync`, because APSW keeps
the interpreter lock while it passes xSync on, which would stop every other thread meanwhile.
(That file carries no locks, so closing the descriptor drops none; the others are left to SQLite.)
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import apsw

_flush: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)


class FlushVFS(apsw.VFS):
    """Counts flushes. With `seconds` a flush of the log is a sleep of that length instead."""

    def __init__(self, seconds: float | None = None) -> None:
        self.base = apsw.vfs_names()[0]
        self.seconds = seconds
        self.count = 0
        self._lock = threading.Lock()
        super().__init__("bench-flushes", self.base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return _FlushFile(self, name, flags)

    def flushed(self) -> None:
        with self._lock:
            self.count += 1


class _FlushFile(apsw.VFSFile):
    def __init__(self, vfs: FlushVFS, name: Any, flags: list[int]) -> None:
        self._vfs = vfs
        self._log: int | None = None
        is_log = bool(flags[0] & apsw.SQLITE_OPEN_WAL)
        super().__init__(vfs.base, name, flags)
        if is_log:
            path = name.filename() if isinstance(name, apsw.URIFilename) else name
            self._log = os.open(path, os.O_RDWR)

    def xSync(self, flags: int) -> None:
        self._vfs.flushed()
        if self._log is None:
            super().xSync(flags)
        elif self._vfs.seconds is None:
            _flush(self._log)
        else:
            time.sleep(self._vfs.seconds)

    def xClose(self) -> None:
        if self._log is not None:
            os.close(self._log)
            self._log = None
        super().xClose()
