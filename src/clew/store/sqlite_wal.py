"""Brings a store that another program has taken out of WAL mode back to it."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from clew.errors import Busy, StoreError, StoreUnusable
from clew.store import filesystem, migrate
from clew.store.admission import admitted
from clew.store.frozen import has_unmerged
from clew.store.sqlite_connections import connect
from clew.store.sqlite_driver import query

_PATIENCE = 5.0
"""Seconds."""


def to_wal(path: str | os.PathLike[str], patience: float = _PATIENCE) -> bool:
    """Put the store at `path` into WAL mode; False: it is in it already, and nothing was done.

    SQLite changes the mode under an exclusive lock, in one transaction, and plays a journal back
    that a crash has left. Raises Busy when somebody has the store open, StoreError for what is no
    store or cannot be changed, NetworkFolder.
    """
    place = os.path.realpath(path)
    if not os.path.exists(place):
        raise StoreError(f"there is no store at {place}")
    header = migrate.examine(place)
    if header.empty:
        raise StoreError(f"{place} is empty; opening it makes a store of it")
    if header.wal:
        return False
    filesystem.check_folder(Path(os.path.dirname(place)))
    with admitted(place, "convert", patience):
        if has_unmerged(place):
            raise StoreError(
                f"{place}-wal lies beside a store that is not in WAL mode: it belongs to another "
                f"file, and would be played into this one. Move it away (keep it), then try again"
            )
        with closing(connect(place, patience, writer=True)) as connection:
            mode = query(connection, "PRAGMA journal_mode = WAL")
    if mode == [("wal",)]:
        return True
    if mode == [("delete",)] or not mode:
        raise Busy(f"another program has {place} open. Close it, then try again")
    raise StoreUnusable(f"the file system of {place} does not let SQLite use WAL")
