"""What a fork does to stores: those that are open are the parent's, and so are their files.

SQLite keeps, in the memory of a process, a table of the files it has open and the locks it holds
on them. A forked child inherits the table but not the locks. On a file in the table it would
believe to hold what it never took, and others, who see no lock, would delete the -wal under it:
commits it has acknowledged would be gone. Nothing in the child can mend the table. So every file
is known here while it is open through SQLite, and one that was open at a fork is refused in the
child for ever. Device and inode decide, whatever the name; as the child inherits the descriptors
too, no other file can get that inode while it lives.

Sets and no lock: each step on them is atomic, and a lock might be held for ever in the child.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol

from clew.errors import StoreClosed

_REMEDY = (
    "Start workers by the spawn or forkserver method of multiprocessing, or by exec; "
    "or close every store before forking"
)
INHERITED = (
    f"this store was opened by the parent of a forked process and cannot be used in the child. "
    f"{_REMEDY}"
)

Identity = tuple[int, int]
"""Device and inode."""


class Forkable(Protocol):
    """Something that a forked child inherits and must not use."""

    def forked(self) -> None:
        """Become unusable without touching what is shared with the parent. Runs in the child,
        where the other threads are gone and their locks may be held for ever."""
        ...


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()
_open: set[Claim] = set()
_tainted: set[Identity] = set()


class Claim:
    """One opening of a file through SQLite. To be made before it, and released after closing:
    a fork in between taints the file needlessly, the other order would miss it."""

    __slots__ = ("_files", "_path")

    def __init__(self, path: str) -> None:
        """Raises StoreClosed if the file was open in the parent when this process was forked."""
        self._path = path
        self._files: tuple[Identity, ...] = ()
        self.confirm()
        _open.add(self)

    def confirm(self) -> None:
        """Look again, after opening: another file may have taken the name just before."""
        self._files = (*self._files, *check(self._path))

    @property
    def ours(self) -> bool:
        """Whether this process made it and has not released it."""
        return self in _open

    def release(self) -> None:
        """The file is closed. May be repeated."""
        _open.discard(self)

    def taint(self) -> None:
        """In the child: refuse its file from now on."""
        _tainted.update(self._files)


def check(path: str) -> tuple[Identity, ...]:
    """Which file is at `path`, or none. Raises StoreClosed if it was open in the parent when this
    process was forked."""
    try:
        status = os.stat(path)
    except OSError:
        return ()  # opening it says what is wrong
    file = (status.st_dev, status.st_ino)
    if file in _tainted:
        raise StoreClosed(
            f"{path} was open in the parent when this process was forked. SQLite cannot lock it "
            f"in the child, and commits would be lost. {_REMEDY}"
        )
    return (file,)


def watch(inherited: Forkable) -> None:
    """Call `inherited.forked()` in the child of every fork from now on."""
    _watched.add(inherited)


def _after_fork() -> None:
    for claim in _open:
        claim.taint()
    _open.clear()
    for inherited in list(_watched):
        inherited.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
