"""Notices that the files of an open store are no longer those it opened, and stops the store then.

SQLite goes on writing into a renamed or unlinked file and reports success. Only `os.stat` is used
for names: opening and closing the database, its -wal or its -shm here would drop SQLite's locks.
What stands in the file is looked at in witness.py.

A file cannot be replaced, moved or deleted without a change of its folder's ctime, which nobody
can set back, so as long as that stands still the folder is all that is asked. This is not only
cheaper: since Linux 6.13 asking a file for its times makes the next write to it update them, and
with a stat of the -wal before each commit every sync had the inode to write as well.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TypeVar

from clew.errors import (
    Corrupt,
    Quarantined,
    SchemaTooNew,
    StoreError,
    StoreMoved,
    StoreReplaced,
    StoreUnusable,
    WalLost,
)
from clew.store.backend import Transaction
from clew.store.wal_holders import check_holders
from clew.store.witness import Witness

Identity = tuple[int, int]
_E = TypeVar("_E", bound=StoreError)

_FINE, _COARSE = 100_000_000, 2_500_000_000
"""Nanoseconds after which a further change of a folder shows another ctime: where times have
fractions, and where they have not."""


class FileIdentity:
    """Device and inode of the database, and of its -wal and -shm once they are open."""

    __slots__ = ("_database", "_folder", "_path", "_seen", "_sides")

    def __init__(self, path: str) -> None:
        """Remember the database at `path`, which is absolute. To be made before SQLite opens it:
        a file swapped in between is then noticed at the first check."""
        self._path = path
        self._folder = os.path.dirname(path)
        self._database = _identity(path)
        self._sides: tuple[Identity | None, Identity | None] | None = None
        self._seen: tuple[int, int, int] | None = None
        """The folder when all was in order, or None while one change may hide another."""

    @property
    def knows_wal(self) -> bool:
        """Whether the -wal is known, and so a change of it is seen."""
        return self._sides is not None

    def check(self) -> None:
        """Raise StoreReplaced if a path names another file than before, or none. Before BEGIN."""
        try:
            folder = os.stat(self._folder)
        except OSError:
            self.look()
        else:
            seen = (folder.st_ctime_ns, folder.st_ino, folder.st_dev)
            if seen != self._seen:
                self.look()
                self._seen = seen if _settled(folder.st_ctime_ns) else None

    def see_wal(self) -> None:
        """Remember the -wal and the -shm, which stay as long as some connection of this store is
        open. To be called inside a transaction; only the first time counts."""
        if self._sides is None:
            sides = self._now()
            self._sides = sides if sides[0] is not None else None

    def forget_wal(self) -> None:
        """A connection is closed that may have been the last; its successor may create another
        -wal."""
        self._sides = None
        self._seen = None

    def look(self) -> None:
        """As `check`, and ask for each file. Any thread."""
        if _identity(self._path) != self._database:
            raise StoreReplaced(
                f"{self._path} is no longer the file that was opened: it was replaced, moved or "
                f"deleted. Nothing was written. Close this store and open the path again."
            )
        sides = self._sides
        if sides is not None and self._now() != sides:
            wrong = "-wal" if self._now()[0] != sides[0] else "-shm"
            raise WalLost(
                f"{self._path}{wrong} was replaced or deleted while the store was open. Nothing "
                f"was written. Close every store on this file, then run `clew doctor`."
            )

    def only_wal_unlinked(self) -> bool:
        """Whether the -wal has lost its name, and nothing else has changed: then closing can still
        bring into the database what only that -wal has."""
        sides, now = self._sides, self._now()
        return (
            sides is not None and now[0] is None and now[1] == sides[1]
            and _identity(self._path) == self._database
        )  # fmt: skip

    def _now(self) -> tuple[Identity | None, Identity | None]:
        return _identity(self._path + "-wal"), _identity(self._path + "-shm")


class Guard:
    """What one store asks before it writes, and why it writes no more.

    `trouble`: None while all is well. Once set it stays: a store that has met another file, or
    damage in its own, cannot know what else is wrong with what it has in memory.
    """

    def __init__(self, path: str) -> None:
        """To be made before SQLite opens the file."""
        self.path = path
        self.identity = FileIdentity(path)
        self.witness = Witness(path)
        self.trouble: StoreError | None = None
        self._merge = self._foreign = False

    @property
    def keeps_wal(self) -> bool:
        """Whether closing must leave the -wal as it is."""
        return self.trouble is not None and not self._merge

    def admit(self) -> None:
        """Before anything is opened: nobody may be at work in a -wal without a name."""
        check_holders(self.path)

    def check(self) -> None:
        """Before a connection is opened or a transaction begins. Raises what stopped the store, or
        stops it."""
        self.refuse()
        try:
            self.identity.check()
            if not self.identity.knows_wal:
                self.admit()
        except StoreReplaced as error:
            raise self.stop(error) from None

    def refuse(self) -> None:
        """Raise what stopped the store, if anything did."""
        if self.trouble is not None:
            raise _copy(self.trouble)

    def stop(self, error: _E) -> _E:
        """No more writes; the first reason counts. Gives `error` back."""
        self.trouble = self.trouble or _copy(error)
        return error

    def explain(self, error: StoreError) -> StoreError:
        """What a fault of the engine means: pages that do not fit together may belong to another
        file, and what cannot be opened may be gone. Damage stops the store. Any thread."""
        if not isinstance(error, Corrupt | StoreUnusable) or isinstance(error, Quarantined):
            return error
        try:
            self.identity.look()
            if isinstance(error, Corrupt):
                self.witness.check_damage()
        except StoreReplaced as replaced:
            return self.stop(replaced)
        except StoreUnusable:
            pass  # the file does not let itself be looked at: the first error counts
        if isinstance(error, Corrupt) and self.trouble is None:
            self.stop(Quarantined(
                f"{self.path} is damaged, and this store writes nothing to it any more, so that "
                f"the evidence stays as it is. It said: {error} Stop what uses it; `clew doctor` "
                f"says what is wrong, and `clew repair` saves what can be read."
            ))  # fmt: skip
        return error

    def closing(self) -> None:
        """Before the last connection is closed, which would merge the -wal into the database, and
        remove whatever has its name by then: not if either is another's."""
        if self._foreign:
            return
        try:
            if self.trouble is None:
                self.identity.look()
                self.witness.check_damage()
        except StoreReplaced as error:
            self.stop(error)
        except StoreUnusable:
            pass  # SQLite will find the same, and leave the -wal to the next opening
        self._merge = isinstance(self.trouble, WalLost) and self.identity.only_wal_unlinked()

    def disown(self) -> None:
        """In the child of a fork: what is open is the parent's, and so is its end."""
        self._foreign = True


def check_stamp(transaction: Transaction, stamp: str, schema: int) -> None:
    """Raise StoreReplaced if the content is no longer what was opened: a restore changes the
    stamp, and so does copying another store's file over this one in place. StoreMoved if the store
    was moved to another place, which changes it too. SchemaTooNew if a newer clew has applied a
    step since that code of `schema` does not survive."""
    found = transaction.row("stamp_read")
    if found is not None and found[0] == stamp:
        if found[1] > schema:
            raise SchemaTooNew(
                f"a newer clew has changed the store while this one had it open: it takes code of "
                f"schema {found[1]} on, and this one knows {schema}. Nothing was written. Upgrade "
                f"clew."
            )
    else:
        moved = transaction.row("copy_moved")
        if moved is not None:
            raise StoreMoved(moved[0])
        raise StoreReplaced(
            "the store was restored or replaced in place while it was open. "
            "Nothing was written. Close this store and open the path again."
        )


def _copy(error: _E) -> _E:
    """One exception raised in several threads at once mixes their tracebacks."""
    twin = type(error).__new__(type(error), *error.args)
    twin.__dict__.update(error.__dict__)
    return twin


def _identity(path: str) -> Identity | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _settled(ctime: int) -> bool:
    """Whether the change is old enough that the next one must differ. On Windows a folder's
    ctime is when it was created, and says nothing."""
    age = time.time_ns() - ctime
    return sys.platform != "win32" and age > (_FINE if ctime % 1_000_000_000 else _COARSE)
