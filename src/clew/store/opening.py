"""What an open store is made of, for a file and for a database of a server."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from clew.clock import Clock, SystemClock
from clew.config import Limits
from clew.ids import Ids
from clew.store import address, dictionary
from clew.store.backend import Backend
from clew.store.codec import Codec
from clew.store.engines import PATIENCE, open_backend
from clew.store.kit import Kit
from clew.store.search import Search, in_file, in_tables


class Parts(NamedTuple):
    """The engine, the tools, the search, and where it is: a file, or a URL without password."""

    backend: Backend
    kit: Kit
    search: Search
    place: Path | str


def open_parts(
    store: str | Path | None, clock: Clock | None, ids: Ids | None, limits: Limits | None, *,
    create: bool = True, patience: float = PATIENCE, unfinished: bool = False,
) -> Parts:  # fmt: skip
    """Open what a caller names, or CLEW_STORE. Without `create`, NoStore where there is none.
    `unfinished`: also a copy that is not finished."""
    clock = clock or SystemClock()
    place = address.parse(store)
    backend = open_backend(place, create=create, patience=patience, unfinished=unfinished)
    codec = Codec(lambda: dictionary.known(backend))
    kit = Kit(codec, ids or Ids(clock), clock, limits or Limits())
    if isinstance(place, Path):
        return Parts(backend, kit, in_file(f"{place}.search", backend, codec.parts), place)
    return Parts(backend, kit, in_tables(backend, codec.parts), place.shown)
