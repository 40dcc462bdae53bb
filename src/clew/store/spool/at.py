"""Reading and writing at an offset, which Windows does in two steps."""

from __future__ import annotations

import os
import sys
import threading

if sys.platform == "win32":
    _moving = threading.Lock()
    """Between the two steps no other thread may move the file's position."""

    def read_at(fd: int, size: int, offset: int) -> bytes:
        """At most `size` bytes from `offset` on."""
        with _moving:
            os.lseek(fd, offset, os.SEEK_SET)
            return os.read(fd, size)

    def write_at(fd: int, data: bytes | memoryview, offset: int) -> int:
        """Write at `offset`; how many bytes were written."""
        with _moving:
            os.lseek(fd, offset, os.SEEK_SET)
            return os.write(fd, data)

else:
    read_at, write_at = os.pread, os.pwrite
