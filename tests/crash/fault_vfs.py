"""A file system under SQLite in which one call fails, or every call from one on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import apsw


class Call(NamedTuple):
    """A call that reached the file system."""

    method: str
    kind: str
    """Which file: db, -wal, -journal; the same of the search file behind `search `."""


class Fault(NamedTuple):
    """How a call fails: an error of SQLite, maybe after half the bytes were written."""

    name: str
    code: int
    short: bool = False


def _io(name: str, extended: int) -> Fault:
    return Fault(name, extended)


FULL = Fault("disk full", apsw.SQLITE_FULL)
FAULTS = {
    "xRead": (_io("EIO", apsw.SQLITE_IOERR_READ),),
    "xWrite": (
        _io("EIO", apsw.SQLITE_IOERR_WRITE), FULL,
        Fault("disk full, half written", apsw.SQLITE_FULL, short=True),
    ),
    "xTruncate": (_io("EIO", apsw.SQLITE_IOERR_TRUNCATE),),
    "xSync": (_io("EIO", apsw.SQLITE_IOERR_FSYNC),),
    "xFileSize": (_io("EIO", apsw.SQLITE_IOERR_FSTAT),),
    "xLock": (_io("EIO", apsw.SQLITE_IOERR_LOCK), Fault("locked", apsw.SQLITE_BUSY)),
    "xOpen": (Fault("cannot open", apsw.SQLITE_CANTOPEN),),
    "xDelete": (_io("EIO", apsw.SQLITE_IOERR_DELETE),),
    "xAccess": (_io("EIO", apsw.SQLITE_IOERR_ACCESS),),
}  # fmt: skip
"""What can fail, and how. The shared memory of the WAL is not reached through a VFS of APSW."""


class FaultVFS(apsw.VFS):
    """The default file system, which counts calls and fails those it is told to."""

    def __init__(self) -> None:
        self.base = apsw.vfs_names()[0]
        self.calls: list[Call] | None = None
        self._rule: tuple[int, Fault, bool] | None = None
        self.failed = 0
        super().__init__("faulty", self.base, makedefault=True)

    def record(self) -> None:
        """Count from here on; nothing fails."""
        self.calls, self._rule, self.failed = [], None, 0

    def fail(self, nth: int, fault: Fault, on: bool = False) -> None:
        """Count from here on; the call of this number fails so, and with `on` all of its method
        that come later, too."""
        self.record()
        self._rule = nth, fault, on

    def heal(self) -> None:
        """No call fails any more."""
        self._rule = None

    def fault(self, method: str, name: str) -> Fault | None:
        """Note a call; how it is to fail."""
        if self.calls is None or method not in FAULTS or not name:
            return None
        at, call = len(self.calls), Call(method, _kind(name))
        self.calls.append(call)
        if self._rule is None:
            return None
        nth, fault, on = self._rule
        same = on and at > nth and self.calls[nth].method == method
        if at != nth and not same:
            return None
        self.failed += 1
        return fault

    def check(self, method: str, name: str) -> None:
        """Raise if the call is to fail."""
        if fault := self.fault(method, name):
            raise apsw.exception_for(fault.code)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        filename = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        self.check("xOpen", filename)
        return _FaultFile(self, name, filename, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.check("xDelete", filename)
        super().xDelete(filename, syncdir)

    def xAccess(self, pathname: str, flags: int) -> bool:
        self.check("xAccess", pathname)
        return super().xAccess(pathname, flags)


class _FaultFile(apsw.VFSFile):
    def __init__(self, vfs: FaultVFS, name: Any, filename: str, flags: list[int]) -> None:
        self._vfs, self._name = vfs, filename
        super().__init__(vfs.base, name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:
        self._vfs.check("xRead", self._name)
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        if fault := self._vfs.fault("xWrite", self._name):
            if fault.short:
                super().xWrite(bytes(data)[: len(data) // 2], offset)
            raise apsw.exception_for(fault.code)
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self._vfs.check("xTruncate", self._name)
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        self._vfs.check("xSync", self._name)
        super().xSync(flags)

    def xFileSize(self) -> int:
        self._vfs.check("xFileSize", self._name)
        return super().xFileSize()

    def xLock(self, level: int) -> None:
        self._vfs.check("xLock", self._name)
        super().xLock(level)


def _kind(path: str) -> str:
    name = os.path.basename(path)
    search, _, journal = name.partition(".search")[1], *name.rpartition("-")[1:]
    return f"{'search ' if search else ''}{'-' + journal if '-' in name else 'db'}"


def each(calls: list[Call]) -> Iterator[tuple[int, Call, Fault]]:
    """Every call with every way in which it can fail."""
    for nth, call in enumerate(calls):
        for fault in FAULTS[call.method]:
            yield nth, call, fault
