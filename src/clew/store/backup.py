"""Backups of a store while it is in use, and the way back."""

from __future__ import annotations

import os
from pathlib import Path

from clew.errors import InputError, StoreReplaced
from clew.store.copying import (
    Progress,
    check_store,
    copy_snapshot,
    publish,
    read_back,
    stamp_of,
    temporary,
)
from clew.store.restore import Restoration, Restored, restore


def backup(
    path: str | os.PathLike[str], dest: str | os.PathLike[str], *, force: bool = False,
    progress: Progress | None = None, stamp: str | None = None,
) -> Path:  # fmt: skip
    """Copy the store at `path` to the new file `dest`, while others read and write it.

    One snapshot, readable by its owner only, read back and compared before it gets its name; a
    failed backup leaves nothing. `progress` counts pages. Raises InputError when `dest` exists
    (unless `force`) or is in use, StoreFull, and Corrupt when the copy cannot be read back: it is
    then kept under the name that the error gives. `stamp`: that of the store that is meant;
    StoreReplaced when another one lies there.
    """
    source, target = Path(path).expanduser(), Path(dest).expanduser()
    check_store(source)
    _check_dest(source, target, force)
    partial = target.with_name(f"{target.name}.partial-{os.urandom(4).hex()}")
    with temporary(partial):
        expected = copy_snapshot(source, partial, progress)
        read_back(partial, expected, target)
        if stamp is not None and stamp_of(partial) != stamp:
            raise StoreReplaced(
                f"{source} is no longer the store that was opened, so no copy of it was kept. "
                f"Close this store and open the path again"
            )
        publish(partial, target, force)
    return target


def _check_dest(source: Path, dest: Path, force: bool) -> None:
    if not dest.parent.is_dir():
        raise InputError(f"there is no folder {dest.parent}; make it first")
    if dest.is_dir():
        raise InputError(f"{dest} is a folder; give the name of a file in it")
    if not dest.exists():
        return
    if os.path.samefile(source, dest):
        raise InputError(f"{dest} is the store itself; give another name")
    if not force:
        raise InputError(f"{dest} exists already; give another name, or force to replace it")
    if os.path.exists(f"{dest}-wal"):
        raise InputError(f"{dest} is a database that is in use; give another name")


__all__ = ["Progress", "Restoration", "Restored", "backup", "restore"]
