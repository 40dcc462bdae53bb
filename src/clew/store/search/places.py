"""Where the index of a store is kept."""

from __future__ import annotations

from clew.store.backend import Backend
from clew.store.search.engine import Engine
from clew.store.search.file_index import FileIndex
from clew.store.search.reading import Decode, Reader
from clew.store.search.table_index import TableIndex


def in_file(path: str, backend: Backend, decode: Decode) -> Engine:
    """Search with an index in the file at `path`, made when it is first needed.

    `decode` turns stored parts into values; it raises Corrupt for damaged ones, and has to know
    every dictionary.
    """
    reader = Reader(decode)
    return Engine(FileIndex(path, backend, reader), backend, reader)


def in_tables(backend: Backend, decode: Decode) -> Engine:
    """Search with an index in the tables of the store's own database. `decode` as of `in_file`."""
    reader = Reader(decode)
    return Engine(TableIndex(backend, reader), backend, reader)
