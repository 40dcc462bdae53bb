"""Finds processes that go on in a -wal, or -shm, which has been deleted.

SQLite does not notice that its -wal has no name any more. Whoever opens the store then makes a
second one, and the commits of the two never meet. So before a store is opened, those who have it
open are asked, by /proc (Linux only; a process of another user does not show its files).

Whoever has a store open holds SQLite's lock on it, which /proc/locks tells: nobody else is looked
at. A child of a fork has inherited files, but no locks, and is nobody to be afraid of.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from clew.errors import StoreReplaced, WalLost

PROC = Path("/proc")
_DELETED = " (deleted)"
_LOOKS, _PAUSE = 4, 0.02
"""Somebody who closes the store holds the deleted -shm for a moment: that must last."""


def check_holders(
    path: str, proc: Path = PROC, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Raise WalLost if some process works with a deleted -wal or -shm of the store at `path`,
    which is absolute. Opens nothing of the store."""
    found = lost_by(path, proc)
    for _ in range(_LOOKS - 1):
        if found is not None:
            sleep(_PAUSE)
            found = lost_by(path, proc)
    if found is None:
        return
    pid, name = found
    whose = "this process" if pid == os.getpid() else f"process {pid}"
    raise WalLost(
        f"{name} was deleted while {whose} had the store open: its newest commits are only there. "
        f"Nothing was opened. Let that process close the store cleanly, which saves them (do not "
        f"kill it), then try again"
    )


def check_file(path: str) -> None:
    """Raise StoreReplaced if the store's file is gone, or was emptied, and its -wal has commits:
    SQLite would take it for a new database, and delete the -wal. Opens nothing.

    The -wal is looked at first: whoever makes a store has its first page before there is a -wal."""
    if _size(path + "-wal") and not _size(path):
        raise StoreReplaced(
            f"{path} is gone or empty, but its -wal is there, and has commits that are only in it. "
            f"Nothing was opened. Bring the file back from where it was moved to; if it is lost, "
            f"move the -wal away and `clew restore` a backup"
        )


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def lost_by(path: str, proc: Path = PROC) -> tuple[int, str] | None:
    """A process that holds a deleted side file of the store, and the file's name."""
    try:
        inode = os.stat(path).st_ino
        locks = (proc / "locks").read_text("ascii", "replace")
    except OSError:
        return None
    sides = (path + "-wal", path + "-shm")
    for pid in holders(locks, inode):
        for name in open_files(proc / str(pid) / "fd"):
            if was_deleted(name) in sides:
                return pid, name.removesuffix(_DELETED)
    return None


def holders(locks: str, inode: int) -> list[int]:
    """The processes that have a POSIX lock on a file, by the text of /proc/locks. Devices are not
    compared: on some file systems stat tells another one than the kernel means."""
    found: list[int] = []
    for line in locks.splitlines():
        fields = line.split()
        if len(fields) < 8 or fields[1] != "POSIX":
            continue  # one that waits has an arrow there
        pid, place = fields[4], fields[5]
        if place.rpartition(":")[2] == str(inode) and pid.isdecimal() and int(pid) not in found:
            found.append(int(pid))
    return found


def open_files(folder: Path) -> Iterator[str]:
    """What the descriptors of a process lead to, as far as one may look."""
    try:
        numbers = os.listdir(folder)
    except OSError:
        return
    for number in numbers:
        try:
            yield os.readlink(folder / number)
        except OSError:
            continue  # closed meanwhile


def was_deleted(name: str) -> str | None:
    """The name that a deleted file had, or None."""
    return name.removesuffix(_DELETED) if name.endswith(_DELETED) else None
