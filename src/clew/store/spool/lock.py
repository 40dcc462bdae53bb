"""A lock between processes on an open file, held for moments."""

from __future__ import annotations

import os
import sys

if sys.platform == "win32":
    import msvcrt
    import time

    _AT = 2048
    """A byte that nobody reads or writes: a locked one can be neither on Windows."""

    def lock(fd: int) -> None:
        """Wait for the lock."""
        while True:
            os.lseek(fd, _AT, os.SEEK_SET)
            try:
                msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
            except OSError:
                time.sleep(0.005)
            else:
                return

    def unlock(fd: int) -> None:
        """Let the next one in."""
        os.lseek(fd, _AT, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def lock(fd: int) -> None:
        """Wait for the lock. It belongs to the open file: two openings in one process meet, and a
        process that is killed lets go of it."""
        fcntl.flock(fd, fcntl.LOCK_EX)

    def unlock(fd: int) -> None:
        """Let the next one in."""
        fcntl.flock(fd, fcntl.LOCK_UN)
