"""A file system under SQLite in which the process dies, by SIGKILL, inside a chosen call."""

from __future__ import annotations

import os
import random
import signal
from typing import Any

import apsw


class DyingVFS(apsw.VFS):
    """The default file system. Once `armed`, one of the next calls that change a file or a lock is
    the last: before, after, or (of a write) in the middle of it."""

    def __init__(self, rng: random.Random) -> None:
        self.base = apsw.vfs_names()[0]
        self.armed = False
        self._left, self._when = rng.randrange(25), rng.choice(("before", "half", "after"))
        super().__init__("dying", self.base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return _DyingFile(self, name, flags)

    def now(self, when: str) -> bool:
        """Whether this is the call; `when` is the part of it that comes next."""
        if not self.armed or when != self._when:
            return False
        self._left -= 1
        return self._left < 0


class _DyingFile(apsw.VFSFile):
    def __init__(self, vfs: DyingVFS, name: Any, flags: list[int]) -> None:
        self._vfs = vfs
        super().__init__(vfs.base, name, flags)

    def _die(self, when: str) -> None:
        if self._vfs.now(when):
            os.kill(os.getpid(), signal.SIGKILL)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._die("before")
        if self._vfs.now("half"):
            super().xWrite(bytes(data)[: len(data) // 2], offset)
            os.kill(os.getpid(), signal.SIGKILL)
        super().xWrite(data, offset)
        self._die("after")

    def xTruncate(self, newsize: int) -> None:
        self._die("before")
        super().xTruncate(newsize)
        self._die("after")

    def xSync(self, flags: int) -> None:
        self._die("before")
        super().xSync(flags)
        self._die("after")

    def xLock(self, level: int) -> None:
        super().xLock(level)
        self._die("after")
