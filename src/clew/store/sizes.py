"""How many bytes a store takes on disk, seen from outside."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from clew.store.address import Address
from clew.store.engines import for_server
from clew.store.search.file import bytes_on_disk


class Sizes(NamedTuple):
    """Bytes of the log, and of what search needs beside it."""

    store: int
    search: int


def sizes(place: Address | Path) -> Sizes:
    """Of a file and what lies beside it, or of the tables in a database."""
    if isinstance(place, Address):
        return Sizes(*for_server("clew.store.postgres_upkeep").sizes(place))
    return Sizes(bytes_on_disk(str(place)), bytes_on_disk(f"{place}.search"))
