"""What an open store is made of, for a file and for a database of a server."""

from __future__ import annotations

import os
import weakref
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import NamedTuple

from clew.clock import Clock, SystemClock
from clew.config import Limits
from clew.errors import StoreClosed
from clew.ids import Ids
from clew.store import address, dictionary, registry
from clew.store.address import Address
from clew.store.backend import Backend
from clew.store.codec import Codec
from clew.store.engines import PATIENCE, open_backend
from clew.store.frozen import frozen_at
from clew.store.kit import Kit
from clew.store.lease import CLOSED, Lease
from clew.store.registry import Shared, identity_of
from clew.store.search import Search, in_file, in_tables

"""Seconds that one step of a migration may take before a watched start is taken for one that
hangs."""


class Parts(NamedTuple):
    """What a handle is made of: its hold of the engine, its tools, its search, and where it is: a
    file, or a URL without password."""

    backend: Lease
    kit: Kit
    search: Search
    place: Path | str


def open_parts(
    store: str | Path | None, clock: Clock | None, ids: Ids | None, limits: Limits | None, *,
    create: bool = True, patience: float = PATIENCE, unfinished: bool = False, share: bool = True,
    wait: bool = True,
) -> Parts:  # fmt: skip
    """Open what a caller names, or CLEW_STORE. Without `create`, NoStore where there is none.
    `unfinished`: also a copy that is not finished. `share`: with all of this process who wait as
    long as `patience` says (store/registry.py); without, an engine of its own. `wait`: so long for
    a server that is away, too; without, Unavailable at once."""
    clock = clock or SystemClock()
    place = address.parse(store)
    share = share and not unfinished and not _frozen(place)

    def make() -> Shared:
        return _shared(place, open_backend(
            place, create=create, patience=patience, unfinished=unfinished, wait=wait,
        ))  # fmt: skip

    if share:
        held = registry.acquire(_key(place, patience), make, patience)
    else:
        held = registry.alone(make())
    kit = Kit(held.shared.codec, ids or Ids(clock), clock, limits or Limits())
    shown = place if isinstance(place, Path) else place.shown
    return Parts(held.lease, kit, Search(held.shared.search), shown)


def _key(place: Path | Address, patience: float) -> Hashable:
    """What two openings have in common that share a store. Files are told apart by where their
    names lead; that it is the same file, too, is looked at for each (Shared.fits)."""
    where = os.path.realpath(place) if isinstance(place, Path) else place
    return where, patience


def _shared(place: Path | Address, backend: Backend) -> Shared:
    codec = Codec(_Dictionaries(backend))
    if isinstance(place, Path):
        search = in_file(f"{os.path.abspath(place)}.search", backend, codec.parts)
        real = Path(os.path.realpath(place))
        return Shared(backend, codec, search, real, identity_of(real))
    return Shared(backend, codec, in_tables(backend, codec.parts))


def _frozen(place: Path | Address) -> bool:
    """A store read without locks must be looked at anew by each who opens it: by then its folder
    may take writes."""
    return (
        isinstance(place, Path) and place.exists()
        and frozen_at(os.path.realpath(place)) is not None
    )  # fmt: skip


class _Dictionaries:
    """The store's dictionaries by number. Knows the backend weakly: a value of a handle that is
    closed must not keep it open."""

    def __init__(self, backend: Backend) -> None:
        self._backend = weakref.ref(backend)

    def __call__(self) -> Mapping[int, bytes]:
        backend = self._backend()
        if backend is None:
            raise StoreClosed(CLOSED)
        return dictionary.known(backend)
