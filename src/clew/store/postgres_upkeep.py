"""A look at a store's database from outside: nothing is written, no step of the schema applied."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, contextmanager

from clew.store import queries
from clew.store.address import Address
from clew.store.findings import Ask
from clew.store.postgres_driver import Connection, connect, query
from clew.store.postgres_transaction import statements

PATIENCE = 10.0
"""Seconds to connect."""
_OF_SEARCH = ("search_mark_read", "search_store")
"""Statements of the store that a look needs too."""


def _statements() -> dict[str, str]:
    own = queries.parse(queries.read("upkeep.sql") + queries.read("upkeep.postgres.sql"))
    return own | {name: statements()[name].text.decode() for name in _OF_SEARCH}


SQL = _statements()
"""By name; none has a parameter."""


@contextmanager
def looking(address: Address) -> Generator[Connection, None, None]:
    """A connection whose transactions may only read, for `asking`."""
    with closing(connect(address, PATIENCE)) as connection:
        connection.read_only = True
        yield connection


def asking(connection: Connection) -> Ask:
    """Runs a named statement in a transaction of its own. Raises StoreError."""

    def ask(name: str) -> list[tuple[object, ...]]:
        with connection.transaction():
            return query(connection, SQL[name])

    return ask


def sizes(address: Address) -> tuple[int, int]:
    """Bytes of the store's tables, and of the search index."""
    with looking(address) as connection:
        log, search, _ = asking(connection)("sizes")[0]
        return log, search
