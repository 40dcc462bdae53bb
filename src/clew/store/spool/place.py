"""Where the spool of a store is."""

from __future__ import annotations

import os
from pathlib import Path

from clew.config import home
from clew.store.spool.spool import Spool


def spool_path(store: Path | None, store_id: str | None) -> Path:
    """Beside a file, whatever name it was opened by; for a server's store in CLEW_HOME, or
    ~/.clew, by its id."""
    if store is not None:
        return Path(f"{os.path.realpath(store)}.spool")
    return home() / "spool" / f"{store_id}.spool"


def spool_of(place: Path | str, store_id: str, size: int) -> Spool | None:
    """The spool of a store that is open; None: it wants none (`size` 0)."""
    if not size:
        return None
    return Spool(spool_path(place if isinstance(place, Path) else None, store_id), size)


def spools_at(place: Path | None) -> list[Spool]:
    """The spools that are there, for who looks at them without the store: that of a file, or, as
    a server that is away tells no id, those of all servers' stores. Makes none."""
    if place is not None:
        paths = [spool_path(place, None)]
    else:
        paths = sorted((home() / "spool").glob("*.spool"))
    return [Spool(path, 0) for path in paths if path.exists()]
