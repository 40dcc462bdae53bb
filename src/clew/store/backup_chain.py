"""Incremental backups: a folder of points, of which each can be restored by itself.

A backup takes one snapshot of the store, reads that copy back, stores the pages that no pack has,
and rebuilds the new point from the disk before it counts as made. The point's file comes last, so a
run that is interrupted leaves packs without a point, which the next prune takes away. One process
at a time works on a folder.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from clew.clock import Clock, SystemClock
from clew.errors import Corrupt
from clew.store.admission import admitted
from clew.store.backup_packs import Packs, Writer, unusable
from clew.store.backup_points import (
    Point,
    check_point,
    find,
    forget,
    is_chain,
    new_id,
    objects_of,
    packs_in,
    points,
    prepare,
    save,
    store_pages,
)
from clew.store.copying import (
    Contents,
    Progress,
    check_store,
    copy_snapshot,
    create,
    page_size_of,
    read_back,
    remove,
)
from clew.store.findings import counted
from clew.store.restore import problems_in

PATIENCE = 30.0
"""Seconds to wait for another backup into the same folder."""
WASTE = 0.5
"""A pack of which less is needed is written anew by a prune."""


def backup_point(
    store: str | os.PathLike[str], folder: str | os.PathLike[str], keep: int | None = None,
    progress: Progress | None = None, clock: Clock | None = None,
) -> Point:  # fmt: skip
    """Back the store up into the folder, which is made if need be; others may write meanwhile.

    `keep`: so many newest points stay, older ones go; None: all stay. `progress` counts pages, of
    the copy and then of reading back: when this returns, the point was rebuilt from disk and
    compared. Raises InputError, Busy, StoreFull, and Corrupt when the store or a pack is damaged;
    then nothing that was there is touched.
    """
    source, place = Path(store).expanduser(), Path(folder).expanduser()
    check_store(source)
    prepare(place)
    with admitted(place / "points", "back up into", PATIENCE):
        _sweep(place)
        point = _make(source, place, progress, clock or SystemClock())
        if keep is not None:
            _prune(place, keep)
    return point


def prune_points(folder: str | os.PathLike[str], keep: int) -> list[Point]:
    """Delete all but the newest `keep` points, and what they alone needed; gives those deleted."""
    place = Path(folder).expanduser()
    points(place)  # refuses what is no chain before a lock file is made in it
    with admitted(place / "points", "prune", PATIENCE):
        _sweep(place)
        return _prune(place, keep)


def extract(
    folder: Path, point: Point, dest: Path, progress: Progress | None = None
) -> Contents:  # fmt: skip
    """Rebuild a point as the new file `dest`. Corrupt names the pack that is damaged."""
    create(dest)
    try:
        with dest.open("r+b") as file:
            check_point(Packs(packs_in(folder)), point, file.write, progress)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        remove(dest)
        raise unusable(error, f"cannot write {dest}") from error
    except BaseException:
        remove(dest)
        raise
    return Contents(point.conversations, point.messages, point.last_message, point.active_at)


def rehearse(folder: Path, point: Point, progress: Progress | None = None) -> None:
    """Restore a point into a scratch place and verify it there. Corrupt when it could not be
    restored, or an invariant does not hold in it."""
    with admitted(folder / "points", "test", PATIENCE):
        _sweep(folder)
        with scratch(folder / f".test-{os.urandom(4).hex()}.db") as path:
            _check(path, point, extract(folder, point, path, progress))


def test_point(folder: str | os.PathLike[str], point: Point) -> None:
    """`rehearse` without progress."""
    rehearse(Path(folder).expanduser(), point)


@contextmanager
def scratch(path: Path) -> Generator[Path, None, None]:
    """A name for a file that is gone after the block."""
    try:
        yield path
    finally:
        remove(path)


def parse_place(text: str | os.PathLike[str]) -> tuple[Path, str | None] | None:
    """The folder and point that FOLDER or FOLDER@POINT names; None when it names no chain."""
    whole = Path(text).expanduser()
    if is_chain(whole):
        return whole, None
    name, sign, id = whole.name.rpartition("@")
    folder = whole.with_name(name) if sign and name else None
    return (folder, id or None) if folder is not None and is_chain(folder) else None


def _make(source: Path, place: Path, progress: Progress | None, clock: Clock) -> Point:
    with scratch(place / f".copy-{os.urandom(4).hex()}.db") as copy:
        create(copy)
        held = read_back(copy, copy_snapshot(source, copy, progress), place / "copy.db")
        packs = Packs(packs_in(place))
        writer = Writer(packs_in(place), packs.places)
        page_size = page_size_of(copy)
        with copy.open("rb") as file:
            root, size, digest = store_pages(file, page_size, writer)
        writer.finish()
    at = clock.now()
    point = Point(
        id=new_id(place, at), created_at=at, size=size, page_size=page_size, sha256=digest,
        root=root.hex(), conversations=held.conversations, messages=held.messages,
        last_message=held.last_message, active_at=held.active_at, added=writer.written,
    )  # fmt: skip
    check_point(Packs(packs_in(place)), point, lambda page: None, progress)
    save(place, point)
    return point


def _check(path: Path, point: Point, expected: Contents) -> None:
    read_back(path, expected, path)
    problems = problems_in(path, SystemClock())
    if problems:
        raise Corrupt(
            f"the point {point.id} does not pass verification "
            f"({counted(len(problems), 'problem')}, the first: {problems[0].invariant} "
            f"{problems[0].detail}). Run `clew verify` on the store"
        )


def _prune(place: Path, keep: int) -> list[Point]:
    """Points go first, then packs that nobody needs: whatever stops this, all points that are
    there can be restored."""
    known = points(place)
    gone, kept = _split(known, max(1, keep))
    for point in gone:
        forget(place, point)
    packs = Packs(packs_in(place))
    needed: set[bytes] = set()
    with suppress(Corrupt):  # a damaged pack: nobody knows what is needed, so nothing goes
        for point in kept:
            needed.update(objects_of(packs, point))
        _drop(place, packs, needed)
    return gone


def _split(known: Sequence[Point], keep: int) -> tuple[list[Point], list[Point]]:
    return list(known[:-keep]), list(known[-keep:])


def _drop(place: Path, packs: Packs, needed: set[bytes]) -> None:
    """Delete packs without need, after what is needed of the wasteful ones was written anew."""
    if packs.damaged:
        return
    held: dict[str, list[bytes]] = {path.name: [] for path in packs_in(place).glob("*.pack")}
    total = dict.fromkeys(held, 0)
    live = dict.fromkeys(held, 0)
    for name, where in packs.places.items():
        total[where.pack] += where.size
        if name in needed:
            live[where.pack] += where.size
            held[where.pack].append(name)
    wasteful = [pack for pack in held if live[pack] < WASTE * total[pack] or not live[pack]]
    writer = Writer(packs_in(place), {})
    for pack in wasteful:
        for name in held[pack]:
            writer.add(packs.get(name))
    writer.finish()
    fresh = Packs(packs_in(place), writer.made)
    for pack in wasteful:
        if pack not in writer.made and fresh.places.keys() >= set(held[pack]):
            _unlink(place, pack)


def _unlink(place: Path, pack: str) -> None:
    try:
        os.unlink(packs_in(place) / pack)
    except OSError as error:
        raise unusable(error, f"cannot delete the pack {pack}") from error


def _sweep(place: Path) -> None:
    """Remove what an interrupted run left; nobody else is at work in this folder."""
    for pattern in (".copy-*", ".test-*", ".*.partial-*", "packs/.*.partial-*"):
        for path in place.glob(pattern):
            with suppress(OSError):
                path.unlink()


__all__ = [
    "Point", "backup_point", "extract", "find", "parse_place", "points", "prune_points", "rehearse",
    "test_point",
]  # fmt: skip
