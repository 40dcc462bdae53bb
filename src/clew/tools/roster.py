"""All sources of tools, and what each offers: asked at once, remembered, asked again when due."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence

from clew.tools.api import Source, Tool
from clew.tools.backoff import Backoff
from clew.tools.errors import ToolsUnavailable
from clew.tools.names import prefix
from clew.tools.server import Server


class Shelf:
    """One source, and what it offered when it was last asked."""

    def __init__(
        self, source: Source, *, prefixed: bool = False, known: Sequence[Tool] | None = None
    ) -> None:
        """`prefixed`: the names of its tools begin with its own; `known`: what it always offers."""
        self.source, self._prefixed = source, prefixed
        self.tools: tuple[Tool, ...] = tuple(known or ())
        """What it offered last; also while it cannot be reached."""
        self.error: ToolsUnavailable | None = None
        self.listed = known is not None
        """Whether it has ever answered."""
        self._backoff = Backoff()
        self._lock = asyncio.Lock()

    async def ask(self, force: bool) -> None:
        """Ask what it offers; not before it is due, unless `force`."""
        async with self._lock:
            if not force and self._backoff.left():
                return
            try:
                self.tools = tuple(await self.source.tools())
            except ToolsUnavailable as error:
                self.error = error
                self._backoff.failed()
            else:
                self.error, self.listed = None, True
                self._backoff.worked()

    @property
    def trouble(self) -> ToolsUnavailable | None:
        """Why it cannot be reached, as far as anybody has noticed."""
        if self.error is not None or not isinstance(self.source, Server):
            return self.error
        return self.source.away

    def may_own(self, name: str) -> bool:
        """Whether a tool of this name, not offered now, may be one of this source."""
        return name.startswith(prefix(self.source.name)) if self._prefixed else True


class Roster:
    """The shelves in order: where two offer one name, the first one's counts."""

    def __init__(self, shelves: Sequence[Shelf]) -> None:
        self._shelves = tuple(shelves)

    async def ask_all(self, *, force: bool) -> None:
        """Ask every source, all at once; with `force` also those that failed a moment ago."""
        await asyncio.gather(*(shelf.ask(force) for shelf in self._shelves))

    async def ask_new(self) -> None:
        """Ask the sources that have never answered, where that is due."""
        await asyncio.gather(*(s.ask(False) for s in self._shelves if not s.listed))

    async def ask_for(self, names: Iterable[str]) -> None:
        """Ask the sources that these names need, and that have never answered."""
        missing = [name for name in names if self.find(name) is None]
        due = [
            shelf for shelf in self._shelves
            if not shelf.listed and any(map(shelf.may_own, missing))
        ]  # fmt: skip
        await asyncio.gather(*(shelf.ask(False) for shelf in due))

    def find(self, name: str) -> Tool | None:
        return next((tool for _, tool in self.offered() if tool.spec.name == name), None)

    def offered(self) -> Iterator[tuple[Shelf, Tool]]:
        """All tools, by source."""
        return ((shelf, tool) for shelf in self._shelves for tool in shelf.tools)

    def away(self, name: str | None = None) -> tuple[Shelf, ...]:
        """Sources that could not be reached when they were last asked; with `name`, those that it
        may be a tool of."""
        return tuple(
            shelf for shelf in self._shelves
            if shelf.trouble is not None and (name is None or shelf.may_own(name))
        )  # fmt: skip

    def unasked(self, name: str) -> tuple[Shelf, ...]:
        """Sources that have never answered, and that it may be a tool of."""
        return tuple(s for s in self._shelves if not s.listed and s.may_own(name))

    async def close(self) -> None:
        """Close all sources, at once."""
        await asyncio.gather(*(shelf.source.close() for shelf in self._shelves))
