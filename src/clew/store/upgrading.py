"""Bringing a store to the schema of this clew, as an act of its operator: behind `clew migrate`.

Opening a store does the same, but for two things that only an operator can decide: the steps that
older hosts do not survive, and how a new database is split. Both are there for servers only: a file
has no other hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, Protocol

from clew.errors import InputError
from clew.store import migrate
from clew.store.address import Address
from clew.store.copying import SQL
from clew.store.doctor_sqlite import quiet
from clew.store.engines import for_server, open_backend
from clew.store.migrations import Migration, Progress, missing
from clew.store.sqlite_driver import query


class State(NamedTuple):
    """A store before something is done to it."""

    schema: int
    """0: there is no store."""
    pending: Sequence[Migration]
    foreign: bool = False
    """It came from another server by a dump, and has to be told (`restored`)."""

    @property
    def breaks(self) -> Sequence[str]:
        """The steps that cut older hosts off."""
        return [step.name for step in self.pending if step.breaks] if self.schema else []


class Upgrade(Protocol):
    """What can be done to one store."""

    def state(self) -> State:
        """What is there. Writes nothing."""
        ...

    def apply(self, partitions: int, progress: Progress | None = None) -> int:
        """Apply all steps, to an empty place too; the schema that it has now. Of several at once
        one does it, and the others find it done. `progress` is told of each before it begins."""
        ...

    def restored(self) -> None:
        """Have the numbers of a store from another server go on where they ended there."""
        ...


def upgrade_of(place: Address | Path) -> Upgrade:
    """For a file, or for a database of a server."""
    if isinstance(place, Path):
        return FileUpgrade(place)
    return for_server("clew.store.postgres_upgrade").ServerUpgrade(place)


class FileUpgrade:
    """`Upgrade` of a file: opening it does all there is to do."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def state(self) -> State:
        if not self._path.exists() or migrate.examine(str(self._path)).empty:
            return State(0, migrate.known())
        with closing(quiet(str(self._path))) as connection:
            schema = int(dict(query(connection, SQL["meta"]))["schema_version"])
        return State(schema, missing(migrate.known(), schema))

    def apply(self, partitions: int, progress: Progress | None = None) -> int:
        if partitions:
            raise InputError("partitions are for PostgreSQL; this store is a file")
        with closing(open_backend(self._path, progress=progress)):
            return self.state().schema

    def restored(self) -> None:
        raise InputError("a file needs nothing after a restore: `clew restore` does it all")
