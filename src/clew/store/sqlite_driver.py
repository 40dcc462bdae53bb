"""The edge of APSW: what its errors mean to callers of the store, and rows with a type.

Texts name the kind of failure and the remedy, never a statement's parameters or a message's
content; SQLite's own text, which may quote a search query, stays in the cause.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import apsw

from clew.errors import (
    Busy,
    Corrupt,
    StoreClosed,
    StoreError,
    StoreFull,
    StoreReplaced,
    StoreUnusable,
)
from clew.store.backend import Row, Value
from clew.store.codec import DictionaryGone
from clew.store.forks import Claim
from clew.store.frozen import WRITE_REMEDY

T = TypeVar("T")

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NO_RIGHT = "chown, chmod, or mount it writable"
_REMEDIES = {
    "EIO": "the disk reports a fault: see the system's log (dmesg), copy the store to another disk",
    "ENOLCK": "the file system gives no locks: put the store on a local disk",
    "ESTALE": "the network file system has lost the file: put the store on a local disk",
    "EROFS": _NO_RIGHT, "EACCES": _NO_RIGHT, "EPERM": _NO_RIGHT,
    "EMFILE": "this process has too many files open: raise its limit (ulimit -n)",
    "ENFILE": "the system has too many files open",
}  # fmt: skip
_RETRIES, _PAUSE = 3, 0.05
_LASTING = frozenset({"EROFS", "EACCES", "EPERM", "ENOLCK", "ESTALE", "EMFILE", "ENFILE"})
"""What does not pass in a moment. Not a list of what does: after a read that came out short the
system's number is that of something else."""


class FileConnection(apsw.Connection):
    """A connection to an existing file, known to `forks` while it is open.

    `immutable`: SQLite takes no locks and makes no files, which only fits a file that nobody
    writes to. Raises StoreClosed, before anything is touched, for a file that was open in the
    parent at a fork.
    """

    def __init__(
        self, path: str, *, immutable: bool = False, statementcachesize: int = 100
    ) -> None:
        self._claim = Claim(path)
        name, flags = path, apsw.SQLITE_OPEN_READWRITE
        if immutable:
            name = f"{Path(path).absolute().as_uri()}?immutable=1"
            flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        try:
            super().__init__(name, flags=flags, statementcachesize=statementcachesize)
        except BaseException:
            self._claim.release()
            raise
        try:
            self._claim.confirm()
        except BaseException:
            self.close(True)
            raise

    def close(self, force: bool = False) -> None:
        """Close; in the child of a fork, do nothing: the connection is the parent's."""
        if self._claim.ours:
            super().close(force)
            self._claim.release()


def query(connection: apsw.Connection, sql: str, params: tuple[Value, ...] = ()) -> list[Row]:
    """Run statements outside any unit of work: all rows, or the typed error. (`execute` alone
    stops at the first row: what follows a pragma that answers would not run.)"""
    try:
        return cast(Any, connection).execute(sql, params).fetchall()
    except apsw.Error as error:
        raise translate(error, connection.system_errno) from error


def translate(error: apsw.Error, system_errno: int = 0) -> StoreError:
    """The typed error; raise it `from error`. `system_errno` of the connection tells a quota or a
    file size limit, which SQLite reports as an I/O error, from a broken disk."""
    code = _code(error)
    reason = errno.errorcode.get(system_errno) if system_errno else None
    if isinstance(error, apsw.FullError) or (
        isinstance(error, (apsw.IOError, apsw.CantOpenError)) and system_errno in _NO_SPACE
    ):
        return StoreFull(
            f"no space left for this write ({code}); nothing of it was stored. Free some space: "
            f"the next write then goes through by itself", reason or "ENOSPC",
        )  # fmt: skip
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return Corrupt(f"the file is damaged ({code}). Run `clew doctor`, which says what to do.")
    if isinstance(error, (apsw.BusyError, apsw.LockedError)) or code == "SQLITE_PROTOCOL":
        return Busy(
            f"the file stayed locked by another program ({code}). Nothing was written; "
            f"the same call may be repeated with the same keys."
        )
    if isinstance(error, apsw.ConstraintError) and "(I-23)" in str(error):
        return DictionaryGone(str(error))
    if isinstance(error, apsw.ConstraintError):
        return StoreError(f"constraint refused the write ({code}): {error}")
    if code == "SQLITE_READONLY_DBMOVED":
        return StoreReplaced("the file was moved or deleted while it was open. Nothing was written")
    if isinstance(error, apsw.ReadOnlyError):
        return StoreUnusable(f"the file takes no writes ({code}). {WRITE_REMEDY}", reason)
    if isinstance(error, (apsw.CantOpenError, apsw.IOError)):
        told = f"{error}; {reason or system_errno}" if system_errno else f"{error}"
        remedy = f". {_REMEDIES[reason]}" if reason in _REMEDIES else ""
        return StoreUnusable(f"cannot use the file ({code}): {told}{remedy}", reason)
    if isinstance(error, apsw.ConnectionClosedError):
        return StoreClosed("the store is closed")
    return StoreError(f"SQLite failed ({code})")


def again(action: Callable[[], T], pause: Callable[[float], None]) -> T:
    """Do what begins a transaction, and a few times more if an I/O error comes that may pass: a
    disk under load, an antivirus. On the same connection, and only as long as nothing was done in
    it: closing it to heal would drop the locks of others on the file. `pause` sleeps."""
    for _ in range(_RETRIES):
        try:
            return action()
        except StoreUnusable as error:
            passing = isinstance(error.__cause__, apsw.IOError) and error.reason not in _LASTING
            if isinstance(error, StoreFull) or not passing:
                raise
        pause(_PAUSE)
    return action()


def _code(error: apsw.Error) -> str:
    """SQLite's name of the error, as in SQLITE_IOERR_WRITE."""
    extended = getattr(error, "extendedresult", None)
    names = apsw.mapping_extended_result_codes
    if isinstance(extended, int) and extended in names:
        return str(names[extended])
    result = getattr(error, "result", None)
    if isinstance(result, int) and result in apsw.mapping_result_codes:
        return str(apsw.mapping_result_codes[result])
    return type(error).__name__
