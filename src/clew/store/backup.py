"""Backups of a store while it is in use, and the way back."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from clew.errors import Corrupt, InputError
from clew.store.copying import (
    SQL,
    Contents,
    Progress,
    check_store,
    connection,
    contents,
    copy_snapshot,
    publish,
    temporary,
)
from clew.store.restore import Restoration, Restored, restore
from clew.store.sqlite_driver import query


def backup(
    path: str | os.PathLike[str], dest: str | os.PathLike[str], *, force: bool = False,
    progress: Progress | None = None,
) -> Path:  # fmt: skip
    """Copy the store at `path` to the new file `dest`, while others read and write it.

    One snapshot, readable by its owner only, read back and compared before it gets its name; a
    failed backup leaves nothing. `progress` counts pages. Raises InputError when `dest` exists
    (unless `force`) or is in use, StoreFull, and Corrupt when the copy cannot be read back: it is
    then kept under the name that the error gives.
    """
    source, target = Path(path).expanduser(), Path(dest).expanduser()
    check_store(source)
    _check_dest(source, target, force)
    partial = target.with_name(f"{target.name}.partial-{os.urandom(4).hex()}")
    with temporary(partial):
        expected = copy_snapshot(source, partial, progress)
        _read_back(partial, target, expected)
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


def _read_back(partial: Path, dest: Path, expected: Contents | None) -> None:
    """Read every page of a copy and compare what it holds."""
    try:
        with closing(connection(partial)) as copy:
            found = query(copy, SQL["integrity"])[0][0]
            if found == "ok" and contents(copy) == expected:
                return
    except Corrupt:
        found = "a page is damaged"
    damaged = dest.with_name(f"{dest.name}.damaged-{os.urandom(4).hex()}")
    os.rename(partial, damaged)
    raise Corrupt(
        f"the copy does not read back clean ({found}), so the store or the disk is damaged. "
        f"The copy was kept as {damaged}; run `clew doctor`"
    )


__all__ = ["Progress", "Restoration", "Restored", "backup", "restore"]
