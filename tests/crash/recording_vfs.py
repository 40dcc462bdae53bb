"""A file system under SQLite that records what reaches it, in the order in which it does."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import apsw


@dataclass(frozen=True, slots=True)
class Event:
    """Something that reached the file system, or (`ack`) that the caller was told of."""

    kind: str
    """create, write, truncate, sync, delete, delete synced, ack"""
    file: str = ""
    offset: int = 0
    data: bytes = b""
    acknowledged: tuple[str, ...] = ()


class RecordingVFS(apsw.VFS):
    """The default file system, recorded. To be registered before the first store is opened, in a
    process of its own: it becomes the default one of SQLite."""

    def __init__(self, name: str) -> None:
        self.events: list[Event] = []
        self.names: set[str] = set()
        self.base = apsw.vfs_names()[0]
        super().__init__(name, self.base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return _RecordingFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        self.gone(os.path.basename(filename), bool(syncdir))

    def opened(self, name: str) -> None:
        """A file is open; unless it was known, it is new."""
        if name not in self.names:
            self.names.add(name)
            self.events.append(Event("create", name))

    def gone(self, name: str, synced: bool = False) -> None:
        """A file was removed, and its folder synced."""
        self.names.discard(name)
        self.events.append(Event("delete synced" if synced else "delete", name))

    def acknowledge(self, *what: str) -> None:
        """The caller has been told that this is stored (or is about to give it up)."""
        self.events.append(Event("ack", acknowledged=what))


class _RecordingFile(apsw.VFSFile):
    def __init__(self, vfs: RecordingVFS, name: Any, flags: list[int]) -> None:
        filename = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._vfs, self._name = vfs, os.path.basename(filename or "")
        super().__init__(vfs.base, name, flags)
        if self._name:  # files without a name are temporary
            vfs.opened(self._name)

    def _say(self, kind: str, offset: int = 0, data: bytes = b"") -> None:
        if self._name:
            self._vfs.events.append(Event(kind, self._name, offset, data))

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self._say("write", offset, bytes(data))

    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self._say("truncate", newsize)

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self._say("sync")
