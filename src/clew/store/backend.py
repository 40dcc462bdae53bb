"""The waist between the store's modules and a database engine.

A module above it sees a `Transaction`: named statements with named parameters, rows as tuples. A
*unit of work* is a function of a transaction; the backend decides which transaction it runs in,
with which other units, and how often: a unit may be run again from the start when its transaction
was rolled back or its commit is in doubt, so it must have no effect but through the transaction
and must look for its keys before it inserts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

from clew.errors import StoreError
from clew.store.migrations import Meta
from clew.store.needles import Needles
from clew.store.values import FileTrace, StoredValue

Value = str | bytes | int | float | None
Row = tuple[Any, ...]
T = TypeVar("T")


class Transaction(Protocol):
    """Named statements inside one transaction. `name` is a statement of sql/*.sql."""

    def rows(self, name: str, /, **params: Value) -> list[Row]:
        """All rows, in the statement's order."""
        ...

    def row(self, name: str, /, **params: Value) -> Row | None:
        """The first row, or None."""
        ...

    def run(self, name: str, /, **params: Value) -> None:
        """Run a statement whose rows nobody wants."""
        ...

    def changed(self, name: str, /, **params: Value) -> int:
        """Run a statement; the number of rows it changed."""
        ...

    def batch(self, name: str, params: Iterable[Mapping[str, Value]]) -> None:
        """Run a statement once for each set of parameters."""
        ...


Unit = Callable[[Transaction], T]
"""A unit of work: run inside one write transaction, maybe more than once, committed once."""


class Backend(Protocol):
    """A database engine under the store."""

    @property
    def several(self) -> bool:
        """Whether one unit may append to several conversations. Not where the id of a message is
        made of its transaction and its seq."""
        ...

    @property
    def meta(self) -> Meta:
        """What the store said of itself when it was opened."""
        ...

    @property
    def trouble(self) -> StoreError | None:
        """Why this backend takes no writes any more, for good (Quarantined, StoreReplaced, ...);
        None while all is well, and on a server, which may be back at any moment. Asks nobody."""
        ...

    def write(self, unit: Unit[T]) -> T:
        """Run a unit and return its result once it is durable, or raise its error."""
        ...

    async def write_async(self, unit: Unit[T]) -> T:
        """As `write`; a cancelled caller still gets the real outcome if the unit had begun."""
        ...

    def read(self, reader: Unit[T]) -> T:
        """Run a reader on one snapshot that includes every commit acknowledged before."""
        ...

    async def read_async(self, reader: Unit[T]) -> T:
        """As `read`, off the event loop."""
        ...

    def change_token(self) -> int:
        """A number that differs whenever anybody has committed since it was last asked."""
        ...

    def wait(self, token: int, seconds: float) -> None:
        """Return after so long, or, where the engine tells, as soon as the token is another."""
        ...

    async def wait_async(self, token: int, seconds: float) -> None:
        """As `wait`, without blocking the loop."""
        ...

    def scrub(self) -> tuple[str, ...]:
        """Get rid of bytes that the engine keeps of rows that are gone, as far as it can; gives
        what keeps them beyond that. Who writes meanwhile waits; may take long."""
        ...

    def values(self) -> Iterator[StoredValue]:
        """Every text and every bytes of every row of the store, on one snapshot."""
        ...

    def file_traces(self, needles: Needles) -> Iterator[FileTrace | int]:
        """Pieces found in the engine's files, where these can be read; and after each step how many
        bytes it read."""
        ...

    def close(self) -> None:
        """Release files and connections; later calls raise StoreClosed."""
        ...
