"""Admission to destructive work on a store's file: repair, restore, compaction, erasure, rebuilds.

One process, and one thread of it, is admitted to a file at a time. The lock is on a small file
beside the store that nobody removes: a name that is made anew would admit a second one. It fails
closed. Who cannot open or lock that file is not admitted, and is told the system's own reason; only
an answer that means "somebody has it" is waited for.

The lock is one of the open file (flock), so it ends with its holder, however that ends, and a file
that was left over holds nobody up. A child of a fork inherits the open file, and would keep the
lock of a dead parent: it closes it at once.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Protocol

from clew.errors import Busy, StoreFull, StoreUnusable
from clew.store.forks import watch

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

SUFFIX = ".admit"
POLL = 0.02
"""Seconds between two looks at a lock that somebody has."""
CONTENTION = frozenset({errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK})
"""What a lock call says when somebody has the lock. Everything else is a fault of the place."""
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NAME = 200
"""Bytes of the note about the holder."""
_FAR = 1 << 30
"""On Windows a locked byte cannot be read by others: it lies far behind the note."""


@contextmanager
def admitted(
    path: str | os.PathLike[str], what: str, timeout: float = 0.0
) -> Generator[None, None, None]:
    """Alone, among all processes, in doing `what` ("restore", "repair") to the store at `path`.

    `timeout`: seconds to wait while another is at it; 0 looks once. Raises Busy, which names the
    holder, when it stays so; StoreUnusable at once when the lock file cannot be opened or locked
    (`reason`: the system's name of the error), StoreFull when there is no space for it.
    """
    lock = Admission(os.path.realpath(path), what)
    try:
        lock.take(timeout)
        yield
    finally:
        lock.close()


class Locking(Protocol):
    """The system's lock on an open file."""

    def __call__(self, fd: int) -> None:
        """Take it, or raise OSError at once."""
        ...


if sys.platform == "win32":

    def lock_now(fd: int) -> None:
        """Lock a byte without waiting."""
        os.lseek(fd, _FAR, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

else:

    def lock_now(fd: int) -> None:
        """Lock the open file without waiting."""
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Admission:
    """One attempt at a lock, for one thread."""

    def __init__(self, path: str, what: str, locking: Locking = lock_now) -> None:
        self._store, self._name, self._what = path, path + SUFFIX, what
        self._locking = locking
        self._fd: int | None = None
        watch(self)

    def take(self, timeout: float) -> None:
        """Take the lock, or raise as `admitted` says."""
        deadline = time.monotonic() + timeout
        while not self.attempt():
            if time.monotonic() >= deadline:
                raise Busy(
                    f"{self.note()} works on {self._store} and must be alone; cannot {self._what} "
                    f"it meanwhile. Wait until that has ended, then try again"
                )
            time.sleep(POLL)
        self._write_note()

    def attempt(self) -> bool:
        """Take the lock if nobody has it."""
        while True:
            fd = self._opened()
            try:
                self._locking(fd)
            except OSError as error:
                if error.errno in CONTENTION:
                    return False
                raise self._refused("lock", error) from error
            if self._is_current(fd):
                return True
            self.close()  # somebody removed the file meanwhile: this lock is on nothing

    def note(self) -> str:
        """What the holder wrote of itself."""
        with suppress(OSError):
            fd = self._opened()
            os.lseek(fd, 0, os.SEEK_SET)
            words = os.read(fd, _NAME).decode("utf-8", "replace").split("\n")[0].split(" ", 1)
            if len(words) == 2 and words[0].isdecimal():
                return f"process {words[0]} ({words[1]})"
        return "another process"

    def close(self) -> None:
        """Give up the lock and the file. May be repeated."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def forked(self) -> None:
        """In the child of a fork: the lock is the parent's, and must end with it."""
        self.close()

    def _opened(self) -> int:
        if self._fd is None:
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
            try:
                self._fd = os.open(self._name, flags, 0o600)
            except OSError as error:
                raise self._refused("open", error) from error
        return self._fd

    def _is_current(self, fd: int) -> bool:
        """Whether the locked file is the one that the name means, so that all lock the same."""
        try:
            return os.path.samestat(os.fstat(fd), os.stat(self._name))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._refused("look at", error) from error

    def _write_note(self) -> None:
        """For the message of who has to wait; without it the lock is as good."""
        fd = self._opened()
        with suppress(OSError):
            os.ftruncate(fd, 0)
            os.lseek(fd, 0, os.SEEK_SET)
            os.write(fd, f"{os.getpid()} {self._what}\n".encode()[:_NAME])

    def _refused(self, doing: str, error: OSError) -> StoreUnusable:
        reason = None if error.errno is None else errno.errorcode.get(error.errno)
        kind = StoreFull if error.errno in _NO_SPACE else StoreUnusable
        return kind(
            f"cannot {doing} {self._name} ({reason or 'unknown'}: {error.strerror}), and without "
            f"its lock nobody may {self._what} the store. Nothing was done. Mend that, then try "
            f"again",
            reason,
        )
