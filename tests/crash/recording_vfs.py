"""A file system under SQLite that records what reaches it, and what a power cut makes of that.

The model of the disk: a sync makes every earlier write of that one file durable. Whatever is not
synced may be there or not, in any order, within and across files; a write may be torn at 512 bytes,
and a torn sector may hold anything. Directories are taken as durable: a store is made before the
recording starts.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import apsw

SECTOR = 512


@dataclass(frozen=True)
class Event:
    """Something that reached the disk, or (`ack`) that the caller was told of."""

    kind: str
    """write, truncate, sync, delete, ack"""
    file: str = ""
    offset: int = 0
    data: bytes = b""
    acknowledged: Any = None


class RecordingVFS(apsw.VFS):
    """The default file system, recorded. `lies`: whether a sync of this file is only pretended."""

    def __init__(self, name: str, lies: Callable[[str], bool] = lambda _: False) -> None:
        self.events: list[Event] = []
        self.lies = lies
        self.base = apsw.vfs_names()[0]
        super().__init__(name, self.base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return _RecordingFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        self.events.append(Event("delete", os.path.basename(filename)))

    def acknowledge(self, what: Any) -> None:
        """The caller has been told that this is stored."""
        self.events.append(Event("ack", acknowledged=what))


class _RecordingFile(apsw.VFSFile):
    def __init__(self, vfs: RecordingVFS, name: Any, flags: list[int]) -> None:
        filename = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._vfs, self._name = vfs, os.path.basename(filename or "")
        super().__init__(vfs.base, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self._vfs.events.append(Event("write", self._name, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self._vfs.events.append(Event("truncate", self._name, newsize))

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        if not self._vfs.lies(self._name):
            self._vfs.events.append(Event("sync", self._name))


@dataclass
class Disk:
    """What is durable, and what was written since the last sync of its file."""

    durable: dict[str, bytearray] = field(default_factory=dict[str, bytearray])
    pending: list[Event] = field(default_factory=list[Event])
    acknowledged: list[Any] = field(default_factory=list[Any])

    def take(self, event: Event) -> None:
        """One more event."""
        match event.kind:
            case "ack":
                self.acknowledged.append(event.acknowledged)
            case "sync":
                for other in self.pending:
                    if other.file == event.file:
                        _apply(self.durable, other)
                self.pending = [other for other in self.pending if other.file != event.file]
            case "delete":
                self.durable.pop(event.file, None)
                self.pending = [other for other in self.pending if other.file != event.file]
            case _:
                self.pending.append(event)

    def after_power_cut(self, how: str, rng: random.Random) -> dict[str, bytes]:
        """The files as they may be: `none`, `all` or `some` of the pending events are there, or
        `torn` pieces of them."""
        files = {name: bytearray(data) for name, data in self.durable.items()}
        for event in self.pending:
            if how == "all" or (how in ("some", "torn") and rng.random() < 0.5):
                torn = how == "torn" and event.kind == "write" and rng.random() < 0.5
                for piece in _torn(event, rng) if torn else (event,):
                    _apply(files, piece)
        return {name: bytes(data) for name, data in files.items()}


def _apply(files: dict[str, bytearray], event: Event) -> None:
    content = files.setdefault(event.file, bytearray())
    if event.kind == "truncate":
        del content[event.offset :]
        return
    if len(content) < event.offset:
        content.extend(bytes(event.offset - len(content)))
    content[event.offset : event.offset + len(event.data)] = event.data


def _torn(event: Event, rng: random.Random) -> Iterator[Event]:
    """Some sectors of a write, a few of them with anything in them."""
    for start in range(0, len(event.data), SECTOR):
        sector = event.data[start : start + SECTOR]
        chance = rng.random()
        if chance < 0.1:
            sector = rng.randbytes(len(sector))
        if chance < 0.6:
            yield Event("write", event.file, event.offset + start, sector)
