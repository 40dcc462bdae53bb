"""The file of a spool: made, reserved, locked, written. Knows bytes and places, no messages.

Every change is made under the file's lock, by whoever has the file at its path open: a file that
was removed or replaced meanwhile is noticed then, so that nothing is ever accepted into a file that
nobody would find. What is written is on disk when the call returns.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress

from clew.ids import random_bits
from clew.store.spool.at import read_at, write_at
from clew.store.spool.lock import lock, unlock
from clew.store.spool.record import (
    CHANGES_AT,
    EMPTY,
    FIRST,
    GONE,
    HEADER,
    MARK_AT,
    PENDING,
    SLOT_SIZE,
    STATE_AT,
    Scan,
    State,
    epoch_of,
    frame,
    scan,
    slot,
)

CHUNK = 1 << 20
_sync = getattr(os, "fdatasync", os.fsync)


class Replaced(OSError):
    """The file at the path is not the one that is open."""


class SpoolFile:
    """An open spool. `size`: bytes to reserve. Raises OSError: there is no room for it, or no
    right. Not for several threads at once."""

    def __init__(self, path: str, size: int) -> None:
        self.path = path
        self._fd = _opened(path)
        self._settled = False
        """Whether the file's name and its room are on disk."""
        try:
            with self.held():
                self._prepare(size)
        except BaseException:
            self.close()
            raise
        self.room = os.fstat(self._fd).st_size
        """Bytes of the file: records beyond it have no reserved space."""

    def close(self) -> None:
        """Release the descriptor. May be repeated."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    @contextmanager
    def held(self) -> Generator[None, None, None]:
        """Under the file's lock. Raises Replaced when the path names another file by now."""
        lock(self._fd)
        try:
            self._check()
            yield
        finally:
            if self._fd >= 0:
                unlock(self._fd)

    def mark(self) -> int:
        """EMPTY, PENDING or GONE, as anybody wrote it last. Half a microsecond, and no lock."""
        found = read_at(self._fd, 1, MARK_AT)
        return found[0] if found else GONE

    def changes(self) -> int:
        """How often anybody has changed the file."""
        return int.from_bytes(read_at(self._fd, 8, CHANGES_AT), "little")

    # ------------------------------------------------------------------ under the lock

    def epoch(self) -> bytes:
        """The epoch of now."""
        found = epoch_of(read_at(self._fd, FIRST, 0))
        if found is None:
            raise Replaced(f"{self.path} has lost its head")
        return found[1]

    def scan(self) -> Scan:
        """All records."""
        return scan(_tail(self._fd), self.epoch())

    def state_at(self, at: int) -> bytes:
        """The state of the record that begins there."""
        return read_at(self._fd, 1, at + STATE_AT)

    def append(self, framed: bytes, at: int) -> None:
        """Write a record at the end. OSError: there is no room, and what was there stays."""
        # A header of zeros behind it, so that what a torn record left there is not looked at.
        data = framed + bytes(min(HEADER, max(0, self.room - at - len(framed))))
        self._pwrite(bytes((PENDING,)), MARK_AT)
        self._pwrite(data, at)
        self._count()
        self._settle()

    def set_state(self, places: Sequence[int], state: bytes) -> None:
        """Write the state of the records that begin at these places."""
        for at in places:
            self._pwrite(state, at + STATE_AT)
        self._count()
        _sync(self._fd)

    def wipe(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Zeros over these bytes (from, to): what a person wrote does not stay behind."""
        for first, end in ranges:
            for at in range(first, end, CHUNK):
                self._pwrite(bytes(min(CHUNK, end - at)), at)
        _sync(self._fd)

    def set_mark(self, mark: int) -> None:
        """Tell others whether there is something to bring in."""
        self._pwrite(bytes((mark,)), MARK_AT)
        self._count()

    def empty(self, end: int) -> None:
        """Begin anew: zeros up to `end`, another epoch, nothing pending."""
        self.wipe([(FIRST, end)])
        self._begin()
        self.set_mark(EMPTY)
        _sync(self._fd)

    def remove(self) -> None:
        """Take the file away; others who have it open see GONE."""
        self._pwrite(bytes((GONE,)), MARK_AT)
        with suppress(OSError):
            os.unlink(self.path)

    def replace_by(self, records: Sequence[tuple[bytes, State]]) -> None:
        """Put another file with just these payloads in its place; others see GONE. Whole or not at
        all: it gets the name when it is on disk. OSError: there is no room for it."""
        beside = f"{self.path}.new"
        with suppress(FileNotFoundError):
            os.unlink(beside)
        other = SpoolFile(beside, self.room)
        try:
            with other.held():
                other._fill(records)
            os.replace(beside, self.path)
            _sync_folder(self.path)
        finally:
            other.close()
        self._pwrite(bytes((GONE,)), MARK_AT)

    def _fill(self, records: Sequence[tuple[bytes, State]]) -> None:
        epoch, at = self.epoch(), FIRST
        for number, (payload, state) in enumerate(records, 1):
            framed = frame(payload, number, epoch, state)
            self._pwrite(framed, at)
            at += len(framed)
        self.set_mark(PENDING if any(state == "pending" for _, state in records) else EMPTY)
        self._settle()

    # ------------------------------------------------------------------ inside

    def _check(self) -> None:
        here = os.fstat(self._fd)
        try:
            there = os.stat(self.path)
        except FileNotFoundError:
            raise Replaced(f"{self.path} was removed") from None
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino) or not here.st_nlink:
            raise Replaced(f"{self.path} was replaced")

    def _prepare(self, size: int) -> None:
        """Reserve the room and write the head, where they are not there yet."""
        have = os.fstat(self._fd).st_size
        if have < size:
            _reserve(self._fd, have, size)
        head = read_at(self._fd, FIRST, 0)
        if epoch_of(head) is not None:
            return
        if head.strip(b"\0") or _tail(self._fd).strip(b"\0"):
            raise ForeignFile(f"{self.path} is no spool, or its head is damaged")
        self._begin()

    def _begin(self) -> None:
        """A new epoch, in the slot that does not count now."""
        before = epoch_of(read_at(self._fd, FIRST, 0))
        sequence = before[0] + 1 if before else 1
        self._pwrite(slot(sequence, random_bits(64).to_bytes(8, "big")), sequence % 2 * SLOT_SIZE)

    def _pwrite(self, data: bytes, at: int) -> None:
        view = memoryview(data)
        while view:
            done = write_at(self._fd, view, at)
            view, at = view[done:], at + done

    def _count(self) -> None:
        self._pwrite((self.changes() + 1).to_bytes(8, "little"), CHANGES_AT)

    def _settle(self) -> None:
        """Have it on disk; the first time also the file's name and its room."""
        if self._settled:
            _sync(self._fd)
            return
        os.fsync(self._fd)
        _sync_folder(self.path)
        self._settled = True


def peek(path: str) -> tuple[Scan, int]:
    """What is in the file at a path, and its size, for who only looks. Writes nothing. OSError."""
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
    try:
        lock(fd)
        size = os.fstat(fd).st_size
        found = epoch_of(read_at(fd, FIRST, 0))
        if found is not None:
            return scan(_tail(fd), found[1]), size
        if read_at(fd, FIRST, 0).strip(b"\0"):
            raise ForeignFile(f"{path} is no spool, or its head is damaged")
        return Scan((), FIRST, False), size
    finally:
        os.close(fd)


class ForeignFile(OSError):
    """The file at the path is something else."""


def _opened(path: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _tail(fd: int) -> bytes:
    """All from the first record on; only its header when there is none."""
    at, pieces = FIRST + HEADER, [read_at(fd, HEADER, FIRST)]
    if not pieces[0].strip(b"\0"):
        return pieces[0]
    while piece := read_at(fd, CHUNK, at):
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces)


def _reserve(fd: int, have: int, size: int) -> None:
    """Have the blocks now: when the disk is full it is too late."""
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, 0, size)
            return
        for at in range(have, size, CHUNK):
            write_at(fd, bytes(min(CHUNK, size - at)), at)
    except OSError:
        with suppress(OSError):
            os.ftruncate(fd, have)
        raise


def _sync_folder(path: str) -> None:
    """Have the file's name on disk. Windows has no such thing."""
    if os.name != "nt":
        folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
