"""Upgrade of a store on PostgreSQL, as the owner of its tables."""

from __future__ import annotations

from contextlib import closing

from clew.store import postgres_migrate
from clew.store.address import Address
from clew.store.engines import PATIENCE
from clew.store.migrations import Progress
from clew.store.postgres_driver import connect
from clew.store.upgrading import State


class ServerUpgrade:
    """`Upgrade` of a database of a server."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def state(self) -> State:
        with closing(connect(self._address, PATIENCE)) as connection:
            meta = postgres_migrate.meta_of(connection)
            pending = postgres_migrate.pending(connection)
            if meta is None:
                return State(0, pending)
            return State(int(meta["schema_version"]), pending, postgres_migrate.ahead(connection))

    def apply(self, partitions: int, progress: Progress | None = None) -> int:
        with closing(connect(self._address, PATIENCE)) as connection:
            postgres_migrate.finish(connection, partitions, progress=progress)
            meta = postgres_migrate.meta_of(connection)
            return 0 if meta is None else int(meta["schema_version"])

    def restored(self) -> None:
        with closing(connect(self._address, PATIENCE)) as connection:
            postgres_migrate.restored(connection)
