"""Points of an incremental backup: what a store was at one moment, as names of its pages.

A point is a small file of JSON that names a tree: a list of lists of pages, all of them objects in
the packs. What two points have in common is stored once, so the next point of a store that did not
change is a file of a kilobyte.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from clew.clock import SECOND
from clew.errors import Corrupt, InputError
from clew.store.backup_packs import NAME, Packs, Writer, unusable, write

FORMAT = 1
PAGES = 256
"""Pages whose names stand in one list."""
MARK = "clew-backup.json"
"""The file that tells such a folder."""
_SUFFIX = ".point"
_READ = 1 << 20


class Point(Struct, frozen=True, kw_only=True):
    """One moment of a store. `added`: bytes that this backup wrote beside the point itself."""

    id: str
    created_at: int
    """Microseconds."""
    format: int = FORMAT
    size: int
    """Bytes of the store's file."""
    page_size: int
    sha256: str
    """Of the whole file."""
    root: str
    """Name of the object that lists the lists of pages, hexadecimal."""
    conversations: int
    messages: int
    last_message: int
    active_at: int | None = None
    added: int = 0


class _File(Struct, frozen=True):
    """A point on disk, with the hash of its own text: a torn file is told from a damaged pack."""

    point: msgspec.Raw
    sha256: str


def is_chain(folder: Path) -> bool:
    """Whether this folder holds incremental backups."""
    return (folder / MARK).is_file()


def packs_in(folder: Path) -> Path:
    return folder / "packs"


def store_pages(file: BinaryIO, page_size: int, writer: Writer) -> tuple[bytes, int, str]:
    """Store what a file holds: name of the root, size, SHA-256 of all."""
    whole, size = hashlib.sha256(), 0
    lists: list[bytes] = []
    while True:
        names: list[bytes] = []
        for _ in range(PAGES):
            page = file.read(page_size)
            if not page:
                break
            whole.update(page)
            size += len(page)
            names.append(writer.add(page))
        if names:
            lists.append(writer.add(b"".join(names)))
        if len(names) < PAGES:
            return writer.add(b"".join(lists)), size, whole.hexdigest()


def pages_of(packs: Packs, point: Point) -> Iterator[bytes]:
    """The pages of a point in their order. Corrupt when one is lost or damaged."""
    for names in cut(packs.get(bytes.fromhex(point.root))):
        for name in cut(packs.get(names)):
            yield packs.get(name)


def objects_of(packs: Packs, point: Point) -> Iterator[bytes]:
    """The names of all that a point needs."""
    root = bytes.fromhex(point.root)
    yield root
    for names in cut(packs.get(root)):
        yield names
        yield from cut(packs.get(names))


def cut(names: bytes) -> list[bytes]:
    """The names that a list holds."""
    return [names[at : at + NAME] for at in range(0, len(names), NAME)]


def check_point(
    packs: Packs, point: Point, take: Callable[[bytes], object],
    progress: Callable[[int, int], None] | None = None,
) -> None:  # fmt: skip
    """Read a point whole, giving each page to `take`; Corrupt when it is not what was backed up."""
    whole, size, total = hashlib.sha256(), 0, point.size // point.page_size
    for done, page in enumerate(pages_of(packs, point), 1):
        whole.update(page)
        size += len(page)
        take(page)
        if progress is not None and (done % PAGES == 0 or done == total):
            progress(done, total)
    if (size, whole.hexdigest()) != (point.size, point.sha256):
        raise Corrupt(
            f"the point {point.id} reads back as another file than the one that was backed up; "
            f"restore another point (`clew backup --list`), and check that disk"
        )


# ---------------------------------------------------------------- files


def prepare(folder: Path) -> None:
    """Make the folder of a chain, or see that it is one. InputError for any other that holds
    something."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_chain(folder):
            if any(not name.endswith(".admit") for name in os.listdir(folder)):
                raise InputError(
                    f"{folder} holds other files; give a new folder for incremental backups"
                )
            packs_in(folder).mkdir(mode=0o700)
            write(folder / MARK, msgspec.json.encode({"format": FORMAT}))
        packs_in(folder).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise unusable(error, f"cannot use {folder} for backups") from error
    found = msgspec.json.decode((folder / MARK).read_bytes(), type=dict[str, int])
    if found.get("format") != FORMAT:
        raise InputError(f"{folder} has backups of another format; upgrade clew")


def points(folder: Path) -> list[Point]:
    """All points of a chain, oldest first. Corrupt names one whose file is damaged."""
    if not is_chain(folder):
        raise InputError(f"{folder} holds no incremental backups of clew")
    found = [_read(path) for path in folder.glob(f"*{_SUFFIX}")]
    return sorted(found, key=lambda point: (point.created_at, point.id))


def find(folder: Path, id: str | None) -> Point:
    """A point by its id or a unique beginning of it; the newest for None."""
    known = points(folder)
    if not known:
        raise InputError(f"{folder} holds no point yet; `clew backup --incremental` makes one")
    if id is None:
        return known[-1]
    same = [point for point in known if point.id == id]
    matches = same or [point for point in known if point.id.startswith(id)]
    if len(matches) != 1:
        what = "several points begin with" if matches else "there is no point"
        raise InputError(f"{what} {id!r} in {folder}; `clew backup --list` shows all")
    return matches[0]


def save(folder: Path, point: Point) -> None:
    """Make a point; it is there whole or not at all."""
    text = msgspec.json.encode(point)
    file = _File(msgspec.Raw(text), hashlib.sha256(text).hexdigest())
    write(folder / f"{point.id}{_SUFFIX}", msgspec.json.encode(file))


def forget(folder: Path, point: Point) -> None:
    try:
        os.unlink(folder / f"{point.id}{_SUFFIX}")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise unusable(error, f"cannot delete the point {point.id}") from error


def new_id(folder: Path, at: int) -> str:
    """Its time, with a number when there is one of that second."""
    stem = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at // SECOND))
    number, id = 1, stem
    while (folder / f"{id}{_SUFFIX}").exists():
        number += 1
        id = f"{stem}-{number}"
    return id


def _read(path: Path) -> Point:
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_File)
        if hashlib.sha256(bytes(file.point)).hexdigest() != file.sha256:
            raise ValueError("its text is not the one that was written")
        return msgspec.json.decode(bytes(file.point), type=Point)
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        raise Corrupt(
            f"the point {path} is damaged ({error}); move it away to use the others"
        ) from error
