"""What store/reader.py is, for asyncio.

Generated from that by scripts/aio.py; a change belongs there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from clew.clock import Clock
from clew.domain.compactions import Attempt, Compaction
from clew.domain.conversations import ConversationInfo, Page
from clew.domain.cuts import Cut
from clew.domain.messages import Message, Waiting
from clew.domain.notes import Goal, Presence, Todo
from clew.domain.turns import Approval, Delivered, ModelCall, ModelUsage, Turn
from clew.store import (
    aliases,
    approvals,
    attempts,
    bindings,
    calls,
    compactions,
    conversations,
    goals,
    inbox,
    listing,
    outbox,
    presence,
    todos,
    turns,
)
from clew.store.aio.database import AsyncDatabase
from clew.store.reading import ContextInputs, Frozen, Order, Reading, Span


class AsyncConversationReader:
    """Reads of one conversation. Each call is one consistent snapshot of the store."""

    def __init__(
        self, db: AsyncDatabase, no: int, id: str, profile: str, frozen: Frozen | None = None
    ) -> None:
        self._db, self._no = (db, no)
        self._reading = Reading(db.kit, no, frozen)
        self.id = id
        "Permanent."
        self.profile = profile

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, profile={self.profile!r})"

    @property
    def clock(self) -> Clock:
        """The clock that the store was opened with."""
        return self._db.kit.clock

    async def info(self) -> ConversationInfo:
        """The conversation's facts: titles, counters, flags, times."""
        return await self._db.read(lambda tx: conversations.info(tx, self._no))

    async def log(
        self,
        *,
        limit: int = 100,
        cursor: str | None = None,
        order: Order = "oldest",
        hidden: bool = False,
        first: int = 1,
        last: int | None = None,
    ) -> Page[Message]:
        """A page of messages, forwards from the oldest or backwards from the newest.

        With `hidden` also those that a cut hides. Only of the seqs `first` to `last`, each message
        counted where it stands. The cursor is that of the page before, in the same order; messages
        appended meanwhile neither shift nor repeat anything.
        """
        self._db.kit.limits.check_page(limit)
        span = Span(first, last)
        return await self._db.read(
            lambda tx: self._reading.page(tx, limit, cursor, order, hidden, span)
        )

    async def messages(
        self, *, hidden: bool = False, first: int = 1, last: int | None = None
    ) -> AsyncIterator[Message]:
        """All messages from the oldest on, read page by page; memory stays bounded."""
        cursor: str | None = None
        while True:
            page = await self.log(limit=500, cursor=cursor, hidden=hidden, first=first, last=last)
            for item in page.items:
                yield item
            if page.next is None:
                return
            cursor = page.next

    async def message(self, name: str | int) -> Message:
        """One message by seq, or by uid or key; hidden ones too. NotFound."""
        return await self._db.read(lambda tx: self._reading.message(tx, name))

    async def blob(self, digest: str) -> bytes:
        """The bytes of an image or file by the hash in its part. NotFound."""
        return await self._db.read(lambda tx: self._reading.blob(tx, digest))

    async def context_inputs(self, *, without: int | None = None) -> ContextInputs:
        """Compaction in effect and every visible message above it: what a context is built from.

        A message appended while a summary is being written is in it by definition. `without`: as
        if the compaction of that generation were undone.
        """
        return await self._db.read(lambda tx: self._reading.context_inputs(tx, without))

    async def snapshot(self, at: int | None = None) -> AsyncConversationReader:
        """A read-only handle of what is here now, up to seq `at` (the head when None)."""
        frozen = await self._db.read(lambda tx: self._reading.freeze(tx, at))
        return AsyncConversationReader(self._db, self._no, self.id, self.profile, frozen)

    async def cuts(self) -> tuple[Cut, ...]:
        """All cuts by number, undone ones too."""
        return await self._db.read(lambda tx: tuple(self._reading.bounds(tx).cuts))

    async def compactions(self) -> tuple[Compaction, ...]:
        """All compactions, newest generation first, undone and superseded ones too."""
        return await self._db.read(lambda tx: compactions.all_of(tx, self._db.kit, self._no))

    async def attempts(self) -> tuple[Attempt, ...]:
        """All attempts by number."""
        return await self._db.read(lambda tx: attempts.all_of(tx, self._no))

    async def turns(self, limit: int = 100, before: int = 1 << 62) -> tuple[Turn, ...]:
        """Turns numbered below `before`, newest first."""
        return await self._db.read(lambda tx: turns.recent(tx, self._no, limit, before))

    async def approvals(self) -> tuple[Approval, ...]:
        """Calls of the open turn that a person had to allow, answered ones too."""
        return await self._db.read(
            lambda tx: approvals.of_turn(tx, self._no, conversations.info(tx, self._no).turn)
        )

    async def allowed_tools(self) -> tuple[str, ...]:
        """Names of the tools that a person has allowed for the whole conversation."""
        return await self._db.read(lambda tx: approvals.always(tx, self._no))

    async def calls(self, newest: int | None = None) -> tuple[ModelCall, ...]:
        """Model calls by number, all of them or the newest so many."""
        return await self._db.read(lambda tx: calls.all_of(tx, self._no, newest))

    async def usage(self) -> tuple[ModelUsage, ...]:
        """Usage by model of this conversation."""
        return await self._db.read(lambda tx: calls.usage_of(tx, self._no))

    async def deliveries(self, turn: int) -> tuple[Delivered, ...]:
        """The outbox rows of a turn."""
        return await self._db.read(lambda tx: outbox.of_turn(tx, self._no, turn))

    async def inbox(self) -> tuple[Waiting, ...]:
        """Messages that wait, in order of arrival."""
        return await self._db.read(lambda tx: inbox.waiting(tx, self._db.kit, self._no))

    async def todos(self) -> tuple[Todo, ...]:
        return await self._db.read(lambda tx: todos.all_of(tx, self._no))

    async def goal(self) -> Goal | None:
        """The active goal."""
        return await self._db.read(lambda tx: goals.active(tx, self._no))

    async def presence(self) -> tuple[Presence, ...]:
        return await self._db.read(lambda tx: presence.all_of(tx, self._no))

    async def aliases(self) -> tuple[aliases.Alias, ...]:
        """Other ids of this conversation, oldest part first."""
        return await self._db.read(lambda tx: aliases.of(tx, self.profile, self.id))

    async def bindings(self) -> tuple[bindings.Place, ...]:
        """The outside keys that find this conversation."""
        return await self._db.read(lambda tx: bindings.of(tx, self.profile, self.id))

    async def children(self, limit: int = 100) -> tuple[ConversationInfo, ...]:
        """Branches and delegates, newest first."""
        return await self._db.read(lambda tx: listing.children(tx, self.profile, self._no, limit))
