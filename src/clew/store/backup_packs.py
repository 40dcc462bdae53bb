"""Packs: where the pages of incremental backups lie, each once, named by what is in it.

A pack is written whole, under a name that is the SHA-256 of its bytes, and never changed. Objects
(pages, and lists of the names of pages) stand in zstd frames of some dozens, because a page alone
hardly compresses; a table at the end says where each one is. Nothing is trusted: a frame is read
with a bound, and an object is hashed whenever it is read.

    CLEWPACK1\\n | frame ... | table as zstd | 8 bytes: size of the packed table | CLEWPACK
"""

from __future__ import annotations

import errno
import hashlib
import os
import struct
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import zstandard

from clew.errors import Corrupt, StoreFull, StoreUnusable
from clew.store.copying import sync_folder

NAME = 32
"""Bytes of an object's name, its SHA-256."""
FRAME = 256 << 10
"""Bytes in a frame before it is packed."""
PACK = 128 << 20
"""Bytes of a pack, about."""
LEVEL = 6
FRAMES_KEPT = 128
"""Unpacked frames in memory while reading: 32 MiB."""
_HEAD, _TAIL = b"CLEWPACK1\n", b"CLEWPACK"
_ROW = struct.Struct(">32sQIII")
"""Name; where its frame begins, its packed size; where the object begins in it, and its size."""
_MOST_TABLE = 1 << 30
_NO_SPACE = frozenset({"ENOSPC", "EDQUOT", "EFBIG"})


class Place(NamedTuple):
    """Where an object is."""

    pack: str
    frame: int
    packed: int
    start: int
    size: int


def name_of(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


class Writer:
    """New packs for one backup. Objects that are `known` are not written again."""

    def __init__(self, folder: Path, known: Mapping[bytes, Place]) -> None:
        self._folder = folder
        self._known = known
        self._new: set[bytes] = set()
        self._waiting: list[tuple[bytes, bytes]] = []
        self._waiting_size = 0
        self._rows: list[bytes] = []
        self._parts: list[bytes] = []
        self._size = 0
        self._compress = zstandard.ZstdCompressor(level=LEVEL).compress
        self.written = 0
        """Bytes of finished packs."""
        self.made: list[str] = []
        """Names of finished packs."""

    def add(self, data: bytes) -> bytes:
        """Have an object stored; gives its name."""
        name = name_of(data)
        if name not in self._known and name not in self._new:
            self._new.add(name)
            self._waiting.append((name, data))
            self._waiting_size += len(data)
            if self._waiting_size >= FRAME:
                self._end_frame()
            if self._size >= PACK:
                self.finish()
        return name

    def finish(self) -> None:
        """Give the pack at hand its name. All objects are durable afterwards."""
        self._end_frame()
        if not self._rows:
            return
        table = self._compress(b"".join(self._rows))
        content = b"".join((
            _HEAD, *self._parts, table, struct.pack(">Q", len(table)), _TAIL,
        ))  # fmt: skip
        self.made.append(f"{hashlib.sha256(content).hexdigest()}.pack")
        write(self._folder / self.made[-1], content)
        self.written += len(content)
        self._rows, self._parts, self._size = [], [], 0

    def _end_frame(self) -> None:
        if not self._waiting:
            return
        frame = self._compress(b"".join(data for _, data in self._waiting))
        at, start = len(_HEAD) + self._size, 0
        for name, data in self._waiting:
            self._rows.append(_ROW.pack(name, at, len(frame), start, len(data)))
            start += len(data)
        self._parts.append(frame)
        self._size += len(frame)
        self._waiting, self._waiting_size = [], 0


class Packs:
    """The packs of a folder, for reading; `only` these, if given."""

    def __init__(self, folder: Path, only: Iterable[str] | None = None) -> None:
        self._folder = folder
        self.places: dict[bytes, Place] = {}
        self.damaged: dict[str, str] = {}
        """Packs whose table cannot be read, and why."""
        self._frames: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._unpack = zstandard.ZstdDecompressor().decompress
        names = [path.name for path in folder.glob("*.pack")] if only is None else only
        for path in sorted(folder / name for name in names):
            try:
                self.places.update(self._table(path))
            except Corrupt as error:
                self.damaged[path.name] = str(error)

    def get(self, name: bytes) -> bytes:
        """An object. Corrupt, which names the pack, when it is lost or not what its name says."""
        place = self.places.get(name)
        if place is None:
            lost = "; ".join(self.damaged.values()) or "a pack is missing"
            raise Corrupt(f"the backup in {self._folder.parent} lacks {name.hex()[:12]}: {lost}")
        data = self._frame(place)[place.start : place.start + place.size]
        if name_of(data) != name:
            raise self._broken(place.pack, "what it holds was changed")
        return data

    def _frame(self, place: Place) -> bytes:
        key = (place.pack, place.frame)
        found = self._frames.get(key)
        if found is None:
            found = self._read_frame(place)
            self._frames[key] = found
            if len(self._frames) > FRAMES_KEPT:
                self._frames.popitem(last=False)
        else:
            self._frames.move_to_end(key)
        return found

    def _read_frame(self, place: Place) -> bytes:
        try:
            with (self._folder / place.pack).open("rb") as file:
                file.seek(place.frame)
                return self._unpack(file.read(place.packed), max_output_size=_MOST_TABLE)
        except (OSError, zstandard.ZstdError) as error:
            raise self._broken(place.pack, str(error)) from error

    def _table(self, path: Path) -> Iterator[tuple[bytes, Place]]:
        try:
            with path.open("rb") as file:
                head = file.read(len(_HEAD))
                size = file.seek(-16, os.SEEK_END) + 16
                tail = file.read(16)
                long = int.from_bytes(tail[:8], "big")
                if head != _HEAD or tail[8:] != _TAIL or long > size - 16 - len(_HEAD):
                    raise self._broken(path.name, "its beginning or its end is not that of a pack")
                file.seek(size - 16 - long)
                table = self._unpack(file.read(long), max_output_size=_MOST_TABLE)
        except (OSError, zstandard.ZstdError) as error:
            raise self._broken(path.name, str(error)) from error
        if len(table) % _ROW.size:
            raise self._broken(path.name, "its table is torn")
        rows = _ROW.iter_unpack(table)
        return iter([(row[0], Place(path.name, *row[1:])) for row in rows])

    def _broken(self, pack: str, why: str) -> Corrupt:
        return Corrupt(
            f"the pack {self._folder / pack} is damaged ({why}). Points that need it cannot be "
            f"restored; back up again into a new folder, and check that disk"
        )


def write(path: Path, content: bytes) -> None:
    """Make a file whole or not at all, for its owner only. StoreFull, StoreUnusable."""
    partial = path.with_name(f".{path.name}.partial-{os.urandom(4).hex()}")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
        sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            os.unlink(partial)
        raise unusable(error, f"cannot write {path}") from error


def unusable(error: OSError, what: str) -> StoreUnusable:
    """What the disk of a backup refuses, typed."""
    reason = None if error.errno is None else errno.errorcode.get(error.errno)
    kind = StoreFull if reason in _NO_SPACE else StoreUnusable
    return kind(f"{what}: {error.strerror}. Nothing was changed", reason)
