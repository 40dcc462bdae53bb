"""One file out of a database and its -wal: what a damaged store is salvaged from.

Both are read below SQLite's file layer, which keeps the locks of this process as they are, and
copied; the store itself is not opened and not written. The frames of the -wal are then laid over
the copy. SQLite would stop at the first frame that is damaged. Here the frames behind it count, as
far as their checksums hold: each is chained to the one before, and the link is in that one's
header. A page whose newest frame is damaged is blanked, because what lies below is older.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import apsw

from clew.errors import InputError, StoreError
from clew.store.copying import Progress, create
from clew.store.sqlite_driver import translate

PAGE = 4096
"""Bytes of a page, where nothing tells."""
_CHUNK = 1 << 20
_HEAD = 32
_FRAME = 24
_MAGIC = (0x377F0682, 0x377F0683)
_SIZES = frozenset(1 << power for power in range(9, 17))


class Staged(NamedTuple):
    """The copy. `frames`: those laid over it; `lost_frames`: damaged ones; `unread`: bytes that
    the disk refused to give."""

    path: Path
    page_size: int
    frames: int
    lost_frames: int
    unread: int


class _Frame(NamedTuple):
    page: int
    commit: int
    """Pages of the database after this transaction; 0 within one."""
    at: int


def stage(store: Path, target: Path, progress: Progress | None) -> Staged:
    """Copy a store and its -wal to the new file `target`, as one database.

    Raises StoreError when the store cannot be read at all, or somebody wrote to it meanwhile.
    """
    wal = Path(f"{target}-wal")
    before = written(store)
    create(target)
    unread = _copy(store, target, apsw.SQLITE_OPEN_MAIN_DB, progress)
    if os.path.exists(f"{store}-wal"):
        create(wal)
        unread += _copy(Path(f"{store}-wal"), wal, apsw.SQLITE_OPEN_WAL, None)
    if written(store) != before:
        raise StoreError(
            f"{store} was written to while it was copied. Stop what writes to it, then try again"
        )
    if not target.stat().st_size and not (wal.exists() and wal.stat().st_size):
        raise InputError(f"{store} is empty: there is nothing to salvage")
    page_size, frames, lost = _merge(target, wal)
    wal.unlink(missing_ok=True)
    return Staged(target, page_size, frames, lost, unread)


Written = tuple[tuple[int, int, int] | None, ...]
"""Inode, size and time of the last write: of the database and its -wal."""


def written(store: Path) -> Written:
    """What tells whether somebody has written to a store meanwhile."""
    found: list[tuple[int, int, int] | None] = []
    for name in (str(store), f"{store}-wal"):
        try:
            status = os.stat(name)
        except OSError:
            found.append(None)
        else:
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)


def _copy(source: Path, target: Path, kind: int, progress: Progress | None) -> int:
    """Copy a file that SQLite may have open; gives how many bytes could not be read."""
    try:
        file = apsw.VFSFile("", str(source.resolve()), [apsw.SQLITE_OPEN_READONLY | kind, 0])
    except apsw.Error as error:
        raise translate(error) from error
    unread = 0
    try:
        size = file.xFileSize()
        with target.open("r+b") as out:
            for at in range(0, size, _CHUNK):
                length = min(_CHUNK, size - at)
                pieces, missed = _read(file, at, length)
                unread += missed
                out.write(pieces)
                if progress is not None:
                    progress(at + length, size)
    except apsw.Error as error:
        raise translate(error) from error
    finally:
        file.xClose()
    return unread


def _read(file: apsw.VFSFile, at: int, length: int) -> tuple[bytes, int]:
    """A piece of a file, zeros where the disk gives none, and how many those are."""
    try:
        return file.xRead(length, at), 0
    except apsw.IOError:
        if length <= PAGE:
            return bytes(length), length
    pieces: list[bytes] = []
    unread = 0
    for place in range(at, at + length, PAGE):
        piece, missed = _read(file, place, min(PAGE, at + length - place))
        pieces.append(piece)
        unread += missed
    return b"".join(pieces), unread


def _merge(image: Path, wal: Path) -> tuple[int, int, int]:
    """Lay the frames over the image: page size, frames used, frames that are damaged."""
    with image.open("r+b") as file:
        head = file.read(100)
        page_size = int.from_bytes(head[16:18], "big") if head[:16] == b"SQLite format 3\0" else 0
        page_size = 65536 if page_size == 1 else page_size
        if not wal.exists() or wal.stat().st_size <= _HEAD:
            return (page_size if page_size in _SIZES else PAGE), 0, 0
        with wal.open("rb") as log:
            said = int.from_bytes(log.read(_HEAD)[8:12], "big")
            page_size = page_size if page_size in _SIZES else said if said in _SIZES else PAGE
            good, lost, damaged = _frames(log, page_size)
            _lay(file, log, page_size, good, lost)
        return page_size, len(good), damaged


def _frames(log: BinaryIO, page_size: int) -> tuple[list[_Frame], set[int], int]:
    """The frames up to the last whole transaction; the pages that have lost a frame which no later
    one makes good; how many frames are damaged."""
    log.seek(0)
    head = log.read(_HEAD)
    magic = int.from_bytes(head[:4], "big")
    order = ">" if magic == _MAGIC[1] else "<"
    whole = magic in _MAGIC and _checksum(order, (0, 0), head[:24]) == _link(head[24:32])
    salt, before = (head[16:24], _link(head[24:32])) if whole else (b"", None)
    good: list[_Frame] = []
    bad: list[tuple[int, int, int]] = []
    """(place, page, how many good ones came before) of those damaged."""
    for at, header, data in _each(log, page_size):
        salt = salt or header[8:16]
        page, commit = struct.unpack(">II", header[:8])
        if header[8:16] != salt:
            before = None  # the end, or a header that is damaged: what follows tells
            bad.append((at, 0, len(good)))
            continue
        holds = before is not None and (
            _checksum(order, before, header[:8] + data) == _link(header[16:24])
        )
        if holds and page:
            good.append(_Frame(page, commit, at + _FRAME))
        else:
            bad.append((at, page, len(good)))
        before = _link(header[16:24])
    end = max((n for n, frame in enumerate(good, 1) if frame.commit), default=0)
    good, bad = good[:end], [item for item in bad if item[2] < end]
    newest = {frame.page: frame.at for frame in good}
    lost = {page for at, page, _ in bad if page and newest.get(page, -1) < at}
    return good, lost, len(bad)


def _each(log: BinaryIO, page_size: int) -> Iterator[tuple[int, bytes, bytes]]:
    at = _HEAD
    while True:
        log.seek(at)
        frame = log.read(_FRAME + page_size)
        if len(frame) < _FRAME + page_size:
            return
        yield at, frame[:_FRAME], frame[_FRAME:]
        at += len(frame)


def _lay(file: BinaryIO, log: BinaryIO, page_size: int, good: list[_Frame], lost: set[int]) -> None:
    if not good:
        return
    for frame in good:
        log.seek(frame.at)
        file.seek((frame.page - 1) * page_size)
        file.write(log.read(page_size))
    size = [frame.commit for frame in good if frame.commit][-1]
    for page in lost:
        if page <= size:
            file.seek((page - 1) * page_size)
            file.write(bytes(page_size))
    file.truncate(size * page_size)


def _link(data: bytes) -> tuple[int, int]:
    first, second = struct.unpack(">II", data)
    return first, second


def _checksum(order: str, before: tuple[int, int], data: bytes) -> tuple[int, int]:
    """SQLite's running checksum of a -wal."""
    first, second = before
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for at in range(0, len(words), 2):
        first = (first + words[at] + second) & 0xFFFFFFFF
        second = (second + words[at + 1] + first) & 0xFFFFFFFF
    return first, second
