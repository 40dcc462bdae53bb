"""A fair gate between processes: one inside at a time, the others in the order they came.

SQLite's own lock is not fair: under synchronous=FULL a process can wait for ever beside a busy one.
Two locks on two small files mend that. Whoever has to wait takes the `turn`, marks it as taken and
waits for the `gate` with it; whoever finds the mark waits behind, even if the gate is free at that
moment. So a process that leaves and comes straight back lets the other in first.

The mark is a byte of shared memory, so that a writer without company pays for one lock only. It is
written under the turn. A process killed while it waits leaves it set: then the next one takes the
turn although it need not, and clears it.

All this is only fairness: safety stays with BEGIN IMMEDIATE, so a deleted lock file costs order,
never data. The files lie beside the database and are never the database, its -wal or its -shm:
closing a descriptor of those would drop SQLite's own POSIX locks.
"""

from __future__ import annotations

import errno
import mmap
import os
import sys

from clew.errors import StoreFull, StoreUnusable
from clew.store.admission import CONTENTION
from clew.store.forks import watch
from clew.store.frozen import WRITE_REMEDY

if sys.platform == "win32":
    from filelock import FileLock, Timeout

    class _Lock:
        """An exclusive lock on a file of its own."""

        def __init__(self, path: str) -> None:
            self._lock = FileLock(path + ".lock", mode=0o600, thread_local=False)
            self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

        def lock(self) -> None:
            self._lock.acquire(poll_interval=0.005)

        def try_lock(self) -> bool:
            try:
                self._lock.acquire(blocking=False)
            except Timeout:
                return False
            return True

        def unlock(self) -> None:
            self._lock.release(force=True)

        def close(self) -> None:
            self._lock.release(force=True)
            os.close(self.fd)

else:
    import fcntl

    class _Lock:
        """An exclusive lock on a file of its own."""

        def __init__(self, path: str) -> None:
            self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

        def lock(self) -> None:
            fcntl.flock(self.fd, fcntl.LOCK_EX)

        def try_lock(self) -> bool:
            try:
                fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in CONTENTION:
                    return False
                raise
            return True

        def unlock(self) -> None:
            fcntl.flock(self.fd, fcntl.LOCK_UN)

        def close(self) -> None:
            """Give up the descriptor. In a forked child this leaves the parent's lock alone:
            flock belongs to the open file, which both share, until the last of them closes it."""
            os.close(self.fd)


class Turnstile:
    """The gate of one database. Not for several threads: the leader of the moment uses it."""

    def __init__(self, path: str) -> None:
        self._path = path
        watch(self)
        self._turn: _Lock | None = None
        self._gate: _Lock | None = None
        self._mark: mmap.mmap | None = None

    def try_enter(self) -> bool:
        """Enter if nobody is inside and nobody waits."""
        gate, mark = self._gate, self._mark
        if gate is None or mark is None:
            _, gate, mark = self._open()
        if mark[0]:
            return False
        try:
            return gate.try_lock()
        except OSError as error:
            raise self._failed(error) from error

    def enter(self) -> None:
        """Enter, after everybody who came before. May block for as long as they take."""
        turn, gate, mark = self._open()
        try:
            turn.lock()
            try:
                mark[0] = 1
                gate.lock()
                mark[0] = 0  # before the turn is free: its next holder sets it again
            finally:
                turn.unlock()
        except OSError as error:
            raise self._failed(error) from error

    def leave(self) -> None:
        """Let the next one in. May be repeated."""
        if self._gate is not None:
            self._gate.unlock()

    def close(self) -> None:
        """Release what is held and the files. May be repeated."""
        turn, gate, mark = self._turn, self._gate, self._mark
        self._turn = self._gate = self._mark = None
        for each in (turn, gate, mark):
            if each is not None:
                each.close()

    def forked(self) -> None:
        """In the child of a fork: a descriptor left open there would keep a dead parent's lock."""
        self.close()

    def _open(self) -> tuple[_Lock, _Lock, mmap.mmap]:
        """The two locks and the mark; the files are made at the first use."""
        try:
            turn = self._turn = self._turn or _Lock(self._path + ".turn")
            gate = self._gate = self._gate or _Lock(self._path + ".gate")
            if self._mark is None:
                if os.fstat(turn.fd).st_size == 0:
                    os.ftruncate(turn.fd, 1)
                self._mark = mmap.mmap(turn.fd, 1)
        except OSError as error:
            raise self._failed(error) from error
        return turn, gate, self._mark

    def _failed(self, error: OSError) -> StoreUnusable:
        remedy = ""
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            remedy = f". {WRITE_REMEDY}"
        elif error.errno == errno.ENOLCK:
            remedy = ". Its file system gives no locks: put the store on a local disk"
        reason = errno.errorcode.get(error.errno or 0)
        kind = StoreFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else StoreUnusable
        return kind(
            f"cannot take the write turn of {self._path}: {error.strerror}{remedy}", reason
        )  # fmt: skip
