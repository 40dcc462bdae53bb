"""The read half of a conversation's handle, and a snapshot of it at a fixed seq.

A `ConversationReader` has no method that writes; a background review gets one of a fixed seq.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

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
from clew.store.reading import ContextInputs, Frozen, Order, Reading, Span

if TYPE_CHECKING:
    from clew.store.database import Database


class ConversationReader:
    """Reads of one conversation. Each call is one consistent snapshot of the store."""

    def __init__(
        self, db: Database, no: int, id: str, profile: str, frozen: Frozen | None = None
    ) -> None:
        self._db, self._no = db, no
        self._reading = Reading(db.kit, no, frozen)
        self.id = id
        """Permanent."""
        self.profile = profile

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, profile={self.profile!r})"

    @property
    def clock(self) -> Clock:
        """The clock that the store was opened with."""
        return self._db.kit.clock

    # ------------------------------------------------------------------ the log

    def info(self) -> ConversationInfo:
        """The conversation's facts: titles, counters, flags, times."""
        return self._db.read(lambda tx: conversations.info(tx, self._no))

    def log(
        self, *, limit: int = 100, cursor: str | None = None, order: Order = "oldest",
        hidden: bool = False, first: int = 1, last: int | None = None,
    ) -> Page[Message]:  # fmt: skip
        """A page of messages, forwards from the oldest or backwards from the newest.

        With `hidden` also those that a cut hides. Only of the seqs `first` to `last`, each message
        counted where it stands. The cursor is that of the page before, in the same order; messages
        appended meanwhile neither shift nor repeat anything.
        """
        self._db.kit.limits.check_page(limit)
        span = Span(first, last)
        return self._db.read(lambda tx: self._reading.page(tx, limit, cursor, order, hidden, span))

    def messages(
        self, *, hidden: bool = False, first: int = 1, last: int | None = None
    ) -> Iterator[Message]:
        """All messages from the oldest on, read page by page; memory stays bounded."""
        cursor: str | None = None
        while True:
            page = self.log(limit=500, cursor=cursor, hidden=hidden, first=first, last=last)
            yield from page.items
            if page.next is None:
                return
            cursor = page.next

    def message(self, name: str | int) -> Message:
        """One message by seq, or by uid or key; hidden ones too. NotFound."""
        return self._db.read(lambda tx: self._reading.message(tx, name))

    def blob(self, digest: str) -> bytes:
        """The bytes of an image or file by the hash in its part. NotFound."""
        return self._db.read(lambda tx: self._reading.blob(tx, digest))

    # ------------------------------------------------------------------ the context

    def context_inputs(self, *, without: int | None = None) -> ContextInputs:
        """Compaction in effect and every visible message above it: what a context is built from.

        A message appended while a summary is being written is in it by definition. `without`: as
        if the compaction of that generation were undone.
        """
        return self._db.read(lambda tx: self._reading.context_inputs(tx, without))

    def snapshot(self, at: int | None = None) -> ConversationReader:
        """A read-only handle of what is here now, up to seq `at` (the head when None)."""
        frozen = self._db.read(lambda tx: self._reading.freeze(tx, at))
        return ConversationReader(self._db, self._no, self.id, self.profile, frozen)

    # ------------------------------------------------------------------ records

    def cuts(self) -> tuple[Cut, ...]:
        """All cuts by number, undone ones too."""
        return self._db.read(lambda tx: tuple(self._reading.bounds(tx).cuts))

    def compactions(self) -> tuple[Compaction, ...]:
        """All compactions, newest generation first, undone and superseded ones too."""
        return self._db.read(lambda tx: compactions.all_of(tx, self._db.kit, self._no))

    def attempts(self) -> tuple[Attempt, ...]:
        """All attempts by number."""
        return self._db.read(lambda tx: attempts.all_of(tx, self._no))

    def turns(self, limit: int = 100, before: int = 1 << 62) -> tuple[Turn, ...]:
        """Turns numbered below `before`, newest first."""
        return self._db.read(lambda tx: turns.recent(tx, self._no, limit, before))

    def approvals(self) -> tuple[Approval, ...]:
        """Calls of the open turn that a person had to allow, answered ones too."""
        return self._db.read(
            lambda tx: approvals.of_turn(tx, self._no, conversations.info(tx, self._no).turn)
        )

    def allowed_tools(self) -> tuple[str, ...]:
        """Names of the tools that a person has allowed for the whole conversation."""
        return self._db.read(lambda tx: approvals.always(tx, self._no))

    def calls(self, newest: int | None = None) -> tuple[ModelCall, ...]:
        """Model calls by number, all of them or the newest so many."""
        return self._db.read(lambda tx: calls.all_of(tx, self._no, newest))

    def usage(self) -> tuple[ModelUsage, ...]:
        """Usage by model of this conversation."""
        return self._db.read(lambda tx: calls.usage_of(tx, self._no))

    def deliveries(self, turn: int) -> tuple[Delivered, ...]:
        """The outbox rows of a turn."""
        return self._db.read(lambda tx: outbox.of_turn(tx, self._no, turn))

    def inbox(self) -> tuple[Waiting, ...]:
        """Messages that wait, in order of arrival."""
        return self._db.read(lambda tx: inbox.waiting(tx, self._db.kit, self._no))

    def todos(self) -> tuple[Todo, ...]:
        return self._db.read(lambda tx: todos.all_of(tx, self._no))

    def goal(self) -> Goal | None:
        """The active goal."""
        return self._db.read(lambda tx: goals.active(tx, self._no))

    def presence(self) -> tuple[Presence, ...]:
        return self._db.read(lambda tx: presence.all_of(tx, self._no))

    def aliases(self) -> tuple[aliases.Alias, ...]:
        """Other ids of this conversation, oldest part first."""
        return self._db.read(lambda tx: aliases.of(tx, self.profile, self.id))

    def bindings(self) -> tuple[bindings.Place, ...]:
        """The outside keys that find this conversation."""
        return self._db.read(lambda tx: bindings.of(tx, self.profile, self.id))

    def children(self, limit: int = 100) -> tuple[ConversationInfo, ...]:
        """Branches and delegates, newest first."""
        return self._db.read(lambda tx: listing.children(tx, self.profile, self._no, limit))
