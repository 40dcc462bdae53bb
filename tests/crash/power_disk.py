"""What a disk may hold after a power cut.

The model: a sync makes every earlier write of that one file durable. Whatever is not synced may be
there or not, whatever came before or after it, within a file and across files; a write may be torn
at 512 bytes, and a torn sector may hold anything. Names of a folder (new files, deletions) reach
the disk in order, as a journal of the file system keeps them, at the latest with the next sync of
any file; until then the last of them may be missing. An older write never lands over a newer one
of the same place: the page cache holds one of them only.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from recording_vfs import Event

SECTOR = 512
HOW = ("none", "all", "some", "late", "torn", "torn last")
"""What is there of that which was not synced: nothing; all; any part of it; the newer half but not
the older; pieces of any part; all, the last write torn."""


@dataclass(frozen=True, slots=True)
class _Change:
    """An event that is not durable yet, and the file it went to."""

    event: Event
    inode: int


@dataclass
class Disk:
    """What is durable, and what was written since."""

    content: dict[int, bytearray] = field(default_factory=dict[int, bytearray])
    names: dict[str, int] = field(default_factory=dict[str, int])
    """The folder, as far as it is durable."""
    live: dict[str, int] = field(default_factory=dict[str, int])
    """The folder, as processes see it."""
    pending: list[_Change] = field(default_factory=list[_Change])
    acknowledged: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    _inodes: int = 0

    def take(self, event: Event) -> None:
        """One more event."""
        match event.kind:
            case "ack":
                self.acknowledged.append(event.acknowledged)
            case "sync":
                self._sync(self.live[event.file])
            case "create":
                self._inodes += 1
                self.live[event.file] = self._inodes
                self.content[self._inodes] = bytearray()
                self.pending.append(_Change(event, self._inodes))
            case "delete" | "delete synced":
                inode = self.live.pop(event.file, None)
                if inode is not None:
                    self.pending.append(_Change(event, inode))
                if event.kind == "delete synced":
                    self._sync(None)
            case _:
                self.pending.append(_Change(event, self.live[event.file]))

    def _sync(self, inode: int | None) -> None:
        """Writes of a file, and what the folder went through."""
        for change in self.pending:
            if _of_folder(change):
                _rename(self.names, change)
            elif change.inode == inode:
                _apply(self.content[inode], change.event)
        self.pending = [
            each for each in self.pending if not _of_folder(each) and each.inode != inode
        ]

    def after_power_cut(self, how: str, rng: random.Random) -> dict[str, bytes]:
        """The files as they may be, by name."""
        content, names = dict(self.content), dict(self.names)
        own: set[int] = set()
        for change in _surviving(self.pending, how, rng):
            if _of_folder(change):
                _rename(names, change)
                continue
            if change.inode not in own:
                own.add(change.inode)
                content[change.inode] = bytearray(content[change.inode])
            _apply(content[change.inode], change.event)
        return {name: bytes(content[inode]) for name, inode in names.items()}


def _surviving(pending: list[_Change], how: str, rng: random.Random) -> Iterator[_Change]:
    """Those of the pending changes, or pieces of them, that the disk holds."""
    folder = [change for change in pending if _of_folder(change)]
    known = {"none": 0, "all": len(folder), "torn last": len(folder)}.get(how)
    lost = set(map(id, folder[rng.randrange(len(folder) + 1) if known is None else known :]))
    half = len(pending) // 2
    for at, change in enumerate(pending):
        if _of_folder(change):
            if id(change) not in lost:
                yield change
            continue
        last = at == len(pending) - 1
        there = {"none": False, "all": True, "late": at >= half, "torn last": True}.get(how)
        if there is None:
            there = rng.random() < 0.5
        torn = (how == "torn" and rng.random() < 0.5) or (how == "torn last" and last)
        if there and torn and change.event.kind == "write":
            yield from (replace(change, event=piece) for piece in _torn(change.event, rng))
        elif there:
            yield change


def _of_folder(change: _Change) -> bool:
    return change.event.kind in ("create", "delete", "delete synced")


def _rename(names: dict[str, int], change: _Change) -> None:
    if change.event.kind == "create":
        names[change.event.file] = change.inode
    else:
        names.pop(change.event.file, None)


def _apply(content: bytearray, event: Event) -> None:
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
