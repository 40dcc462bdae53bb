"""Puts a repaired store in the place of the damaged one, which is kept.

As a restore does, where the file still takes it: pages are written into it in one transaction with
a new stamp, so that whoever has it open stops. A file that SQLite cannot open any more is replaced
by name; this is refused while any process has it open, because such a one would go on in the old.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from clew.clock import Clock
from clew.errors import Busy, InputError, StoreError, StoreFull
from clew.store.admission import admitted
from clew.store.backup_packs import unusable
from clew.store.copying import PATIENCE, Progress, remove, sync_folder
from clew.store.restore import Restoration, name_beside, write_turn
from clew.store.salvage_image import Written, written
from clew.store.search.file import identity, replace

_SIDES = ("-wal", "-shm")


class Swapped(Struct, frozen=True):
    """`kept`: the damaged store. `by_name`: the file was replaced, not written into."""

    path: Path
    kept: Path | None
    by_name: bool


def swap_in(
    path: Path, result: Path, clock: Clock, progress: Progress | None, read: Written
) -> Swapped:
    """Replace the store at `path` by the new store `result`, which is gone afterwards. `read`: how
    it was when it was copied. Busy, with nothing done, if somebody has written to it since: what
    was acknowledged then would be lost."""

    def check() -> None:
        if written(path) != read:
            raise Busy(
                f"{path} was written to since it was read: what came then is not in {result}. "
                f"Nothing was replaced. Stop what writes to it, then `clew repair --apply` again"
            )

    try:
        with Restoration(path, result, clock=clock) as ready:
            done = ready.apply(progress, check)
    except (Busy, InputError, StoreFull):
        raise
    except StoreError:
        swapped = _by_name(path, result, clock, check)
    else:
        swapped = Swapped(path, done.kept, by_name=False)
        remove(result)
    search = f"{path}.search"
    replace(search, identity(search))
    return swapped


def _by_name(path: Path, result: Path, clock: Clock, check: Callable[[], None]) -> Swapped:
    with admitted(path, "repair", PATIENCE), write_turn(path):
        _check_unused(path)
        check()
        kept = name_beside(path, "replaced", clock)
        try:
            for side in ("", *_SIDES):
                if os.path.exists(f"{path}{side}"):
                    os.link(f"{path}{side}", f"{kept}{side}")
            for side in _SIDES:  # of the old file: they must never meet the new one
                with suppress(FileNotFoundError):
                    os.unlink(f"{path}{side}")
            os.replace(result, path)
            sync_folder(path.parent)
        except OSError as error:
            raise unusable(error, f"cannot put {result} in the place of {path}") from error
    return Swapped(path, kept, by_name=True)


def _check_unused(path: Path) -> None:
    if not os.path.isdir("/proc/self/fd"):
        raise StoreError(
            f"{path} is too damaged to be written into, and this system does not tell who has it "
            f"open. Close all that has, then move it away and give the repaired file its name"
        )
    wanted = set(_identities(path))
    pids = sorted(set(_users(wanted)))
    if pids:
        raise Busy(
            f"{path} is too damaged to be written into, and has to be replaced while nobody has "
            f"it open. Stop {', '.join(f'process {pid}' for pid in pids)}, then try again"
        )


def _identities(path: Path) -> Iterator[tuple[int, int]]:
    for side in ("", *_SIDES):
        with suppress(OSError):
            status = os.stat(f"{path}{side}")
            yield status.st_dev, status.st_ino


def _users(wanted: set[tuple[int, int]]) -> Iterator[int]:
    """Processes that have one of these files open, as far as this user may see."""
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        with suppress(OSError):
            for fd in os.listdir(f"/proc/{name}/fd"):
                with suppress(OSError):
                    status = os.stat(f"/proc/{name}/fd/{fd}")
                    if (status.st_dev, status.st_ino) in wanted:
                        yield int(name)
