"""A handle's own part of a store that others of the process share: its backend, until it closes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from clew.errors import StoreClosed, StoreError
from clew.store.backend import Backend, Unit
from clew.store.needles import Needles
from clew.store.values import FileTrace, StoredValue

T = TypeVar("T")

CLOSED = (
    "the store is closed: this handle's close() was called, or its `with` has ended. What was "
    "acknowledged before is stored; open the place again to go on"
)


class Lease:
    """`Backend` of one handle: calls go to the shared one until this handle is closed, whatever
    becomes of the others."""

    def __init__(self, engine: Backend, release: Callable[[Lease], None]) -> None:
        self._engine: Backend | None = engine
        self._release: Callable[[Lease], None] | None = release
        self.several, self.meta = engine.several, engine.meta

    @property
    def closed(self) -> bool:
        """Whether this handle is closed."""
        return self._engine is None

    @property
    def engine(self) -> Backend:
        """The shared backend. Raises StoreClosed."""
        engine = self._engine
        if engine is None:
            raise StoreClosed(CLOSED)
        return engine

    @property
    def trouble(self) -> StoreError | None:
        """Why the store takes no writes any more; None for a handle that is closed."""
        return None if self._engine is None else self._engine.trouble

    def write(self, unit: Unit[T]) -> T:
        engine = self._engine  # once: another thread may close the handle at any moment
        if engine is None:
            raise StoreClosed(CLOSED)
        return engine.write(unit)

    async def write_async(self, unit: Unit[T]) -> T:
        return await self.engine.write_async(unit)

    def read(self, reader: Unit[T]) -> T:
        engine = self._engine
        if engine is None:
            raise StoreClosed(CLOSED)
        return engine.read(reader)

    async def read_async(self, reader: Unit[T]) -> T:
        return await self.engine.read_async(reader)

    def change_token(self) -> int:
        return self.engine.change_token()

    def wait(self, token: int, seconds: float) -> None:
        self.engine.wait(token, seconds)

    async def wait_async(self, token: int, seconds: float) -> None:
        await self.engine.wait_async(token, seconds)

    def scrub(self) -> tuple[str, ...]:
        return self.engine.scrub()

    def values(self) -> Iterator[StoredValue]:
        return self.engine.values()

    def file_traces(self, needles: Needles) -> Iterator[FileTrace | int]:
        return self.engine.file_traces(needles)

    def close(self) -> None:
        """Refuse from now on, and let go: the last handle of a store closes it. May be repeated,
        and has to be after an error, which left the store open."""
        self._engine = None
        if self._release is not None:
            self._release(self)
            self._release = None  # a closed handle keeps nothing alive
