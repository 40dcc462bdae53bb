"""The edge of APSW: what its errors mean to callers of the store, and rows with a type.

Texts name the kind of failure and the remedy, never a statement's parameters or a message's
content; SQLite's own text, which may quote a search query, stays in the cause.
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any, cast

import apsw

from clew.errors import Busy, Corrupt, StoreClosed, StoreError, StoreFull
from clew.store.backend import Row, Value
from clew.store.forks import Claim
from clew.store.frozen import WRITE_REMEDY

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


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
    if isinstance(error, apsw.FullError) or (
        isinstance(error, apsw.IOError) and system_errno in _NO_SPACE
    ):
        return StoreFull(f"no space left for this write ({code}); nothing of it was stored")
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return Corrupt(f"the file is damaged ({code}). Run `clew doctor`, which says what to do.")
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return Busy(
            f"the file stayed locked by another program ({code}). Nothing was written; "
            f"the same call may be repeated with the same keys."
        )
    if isinstance(error, apsw.ConstraintError):
        return StoreError(f"constraint refused the write ({code}): {error}")
    if isinstance(error, apsw.ReadOnlyError) and code != "SQLITE_READONLY_DBMOVED":
        return StoreError(f"the file takes no writes ({code}). {WRITE_REMEDY}")
    if isinstance(error, (apsw.CantOpenError, apsw.IOError, apsw.ReadOnlyError)):
        reason = f"{error}; {errno.errorcode.get(system_errno, system_errno)}"
        return StoreError(f"cannot use the file ({code}): {reason if system_errno else error}")
    if isinstance(error, apsw.ConnectionClosedError):
        return StoreClosed("the store is closed")
    return StoreError(f"SQLite failed ({code})")


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
