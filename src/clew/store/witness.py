"""Notices a file that was written over in place: the same inode, other content.

`cp backup.db agent.db` leaves no trace that SQLite looks for. It goes on with pages of its cache,
of the -wal and of the new file, and what was acknowledged vanishes. An older copy of the same store
has the same stamp, too. What tells it is order: the sum of all row numbers that were ever given
(SQLite keeps them, for AUTOINCREMENT) only grows. So do, in the file itself, whatever checkpoints
bring there.

Between two checkpoints nobody writes to the file, so a `stat` before each transaction is all that
is asked usually. When the file was written, its pages are dropped from the cache, and then both
must be at least what they were: the sum that SQL tells, without the cache, and the one that stands
in the file, below SQLite. A file whose schema has another number (a migration, a VACUUM) is only
compared with what has the same one, but never goes back.

What this cannot see: a copy that is as new as what this handle knows of, which does no harm; and a
copy made wholly within one tick of the clock that files get their times from (4 ms; on Linux 6.13
and newer there is none).
"""

from __future__ import annotations

import os
from typing import NamedTuple

import apsw

from clew.errors import StoreReplaced
from clew.store.salvage_records import Unreadable, record, varint
from clew.store.sqlite_driver import translate

Written = tuple[int, int, int]
"""Size, and when its content and its inode were changed."""
_MAGIC = b"SQLite format 3\0"
_LEAF = 13


class Layout(NamedTuple):
    """What SQL tells of a store. `sum`: of the numbers given."""

    cookie: int
    meta_root: int
    sequence_root: int
    sum: int


class Raw(NamedTuple):
    """What the file tells, below SQLite. `ours`: it has the stamp of the store."""

    cookie: int
    ours: bool
    sum: int | None


class Witness:
    """What one store last saw of its file. Only the holder of the write turn moves it."""

    __slots__ = ("_known", "_path", "_raw", "_stamp", "_written")

    def __init__(self, path: str) -> None:
        """Remember how the file is, before SQLite opens it."""
        self._path = path
        self._stamp = b""
        self._written = written(path)
        self._known: Layout | None = None
        self._raw: Raw | None = None

    def start(self, layout: Layout | None, stamp: str) -> None:
        """Remember what is there as the store is opened; `layout` as it is read in it."""
        self._known, self._stamp = layout, stamp.encode()
        if layout is not None:
            self._raw = look(self._path, layout, self._stamp)

    def moved(self) -> bool:
        """Whether the file was written since it was last looked at."""
        return written(self._path) != self._written

    def committed(self, total: int) -> None:
        """This store has committed; the sum is now this."""
        known = self._known
        if known is not None and total > known.sum:
            self._known = known._replace(sum=total)

    def check(self, layout: Layout | None) -> None:
        """Raise StoreReplaced if the file went back. `layout` is read in a transaction that has
        the write lock, past the cache. After StoreUnusable nothing is known, and the next
        transaction asks again."""
        when = written(self._path)  # first: what comes after is seen the next time
        known = self._known
        if known is not None and layout is not None:
            back = layout.cookie == known.cookie and layout.sum < known.sum
            if back or layout.cookie < known.cookie:
                raise self._replaced()
        if layout is not None:
            found = look(self._path, layout, self._stamp)
            if contradicts(found, self._raw, layout.cookie):
                raise self._replaced()
            self._raw = found
        self._known, self._written = layout, when

    def check_damage(self) -> None:
        """Raise StoreReplaced if that explains why pages of the file do not fit together. Changes
        nothing, and may be asked by any thread."""
        known = self._known
        if known is not None and self.moved():
            found = look(self._path, known, self._stamp)
            if contradicts(found, self._raw, None):
                raise self._replaced()

    def _replaced(self) -> StoreReplaced:
        return StoreReplaced(
            f"{self._path} was written over in place: it holds an older or another store than "
            f"before. Nothing was written. Close every store on this file; then bring the right "
            f"content in by `clew restore`, never by cp"
        )


def contradicts(found: Raw | None, before: Raw | None, newest: int | None) -> bool:
    """Whether the file cannot have become what it is by checkpoints. `newest`: the number of the
    schema in the log; None where that cannot be asked."""
    if before is None:
        return found is not None and newest is not None and found.cookie > newest
    if found is None or found.cookie < before.cookie:
        return True
    if newest is not None and found.cookie > newest:
        return True
    if found.cookie != before.cookie:
        return False  # a migration or a VACUUM: nothing to compare with
    if before.ours and not found.ours:
        return True
    return before.sum is not None and (found.sum is None or found.sum < before.sum)


def written(path: str) -> Written | None:
    """When and how large the file was last written; None: it is not there."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def look(path: str, layout: Layout, stamp: bytes) -> Raw | None:
    """What stands in the file itself; None if it is no database. Through SQLite's file layer,
    which keeps this process' locks as they are. StoreUnusable when the disk does not let us look:
    that says nothing of the content."""
    try:
        file = apsw.VFSFile("", path, [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])
        try:
            header = file.xRead(100, 0)
            if len(header) < 100 or header[:16] != _MAGIC:
                return None
            size = int.from_bytes(header[16:18], "big")
            size = 65536 if size == 1 else size
            meta = file.xRead(size, (layout.meta_root - 1) * size)
            sequence = file.xRead(size, (layout.sequence_root - 1) * size)
        finally:
            file.xClose()
    except apsw.Error as error:
        failure = translate(error)
        failure.add_note(f"while looking at {path}")
        raise failure from error
    cookie = int.from_bytes(header[40:44], "big")
    return Raw(cookie, stamp in meta, sum_of(sequence))


def sum_of(page: bytes) -> int | None:
    """The sum of the numbers in a page of sqlite_sequence; None if it is no such page."""
    if len(page) < 8 or page[0] != _LEAF:
        return None
    total = 0
    try:
        for cell in range(int.from_bytes(page[3:5], "big")):
            at = int.from_bytes(page[8 + 2 * cell : 10 + 2 * cell], "big")
            size, at = varint(page, at)
            _, at = varint(page, at)
            name, number = record(page[at : at + size])
            if not isinstance(name, str) or not isinstance(number, int):
                return None
            total += number
    except (Unreadable, ValueError):
        return None
    return total
