"""The engine for a place, loaded by name: who has a file needs no psycopg, and loads none."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from types import ModuleType

from clew.errors import StoreError
from clew.store.address import Address
from clew.store.backend import Backend
from clew.store.migrations import Progress

PATIENCE = 30.0
"""Seconds that a call may wait before Busy or Unavailable."""


class NoStore(StoreError):
    """There is no store at the place, and none was to be made."""


def open_backend(
    place: Address | Path, *, create: bool = True, patience: float = PATIENCE,
    unfinished: bool = False, wait: bool = False, progress: Progress | None = None,
) -> Backend:  # fmt: skip
    """The engine for a place. `create`: make a store if there is none; else NoStore. `unfinished`:
    also a copy that is not finished, for who finishes it; else StoreError. `wait`: as long as
    `patience` for a server that is away. `progress`: told of migrations."""
    backend = _opened(place, create, patience, wait, progress)
    if backend.meta.unfinished and not unfinished:
        backend.close()
        raise StoreError(
            f"{place if isinstance(place, Path) else place.shown} is a copy that is not finished; "
            f"run `clew copy` again, or delete it"
        )
    return backend


def _opened(
    place: Address | Path, create: bool, patience: float, wait: bool, progress: Progress | None
) -> Backend:
    if isinstance(place, Address):
        module = for_server("clew.store.postgres")
        return module.PostgresBackend(
            place, patience=patience, create=create, wait=wait, progress=progress
        )
    if create:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    elif not place.exists():
        import_module("clew.store.wal_holders").check_file(os.path.realpath(place))
        raise NoStore(
            f"there is no store at {place}; `clew list` says how to begin, --store names another"
        )
    return import_module("clew.store.sqlite").SqliteBackend(
        place, patience=patience, create=create, progress=progress
    )


def for_server(module: str) -> ModuleType:
    """A module that needs psycopg, or what to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise StoreError(
            "a store on PostgreSQL needs psycopg; pip install 'clew[postgres]'"
        ) from error
