"""Reading one conversation: the read half of a handle, and a snapshot of it at a fixed seq.

A `ConversationReader` has no method that writes; a background review gets one of a fixed seq.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct

from clew.domain.compactions import Attempt, BodyItem, Compaction
from clew.domain.conversations import ConversationInfo, Page
from clew.domain.cuts import Cut
from clew.domain.messages import Message, Waiting
from clew.domain.notes import Goal, Presence, Todo
from clew.domain.turns import Delivered, ModelCall, ModelUsage, Turn
from clew.errors import InputError, InvalidCursor, NotFound
from clew.store import (
    aliases,
    attempts,
    blobs,
    calls,
    compactions,
    conversations,
    cuts,
    goals,
    inbox,
    listing,
    log,
    outbox,
    presence,
    prompts,
    todos,
    turns,
)
from clew.store.backend import Transaction
from clew.store.prompts import ToolSchemas

if TYPE_CHECKING:
    from clew.store.database import Database


class Frozen(NamedTuple):
    """What a snapshot keeps of its conversation: later cuts and messages are not in it."""

    head: int
    cuts: tuple[Cut, ...]


class ContextInputs(Struct, frozen=True, kw_only=True):
    """All that a context is built from: one snapshot of the store."""

    conversation: ConversationInfo
    prompt: str | None
    toolset: ToolSchemas | None
    compaction: Compaction | None
    covered: tuple[tuple[BodyItem, tuple[Message, ...]], ...]
    """The items of the compaction in effect, each with the messages it names."""
    messages: tuple[Message, ...]
    """Every visible message above the compaction's cover."""
    todos: tuple[Todo, ...]
    goal: Goal | None


class ConversationReader:
    """Reads of one conversation. Each call is one consistent snapshot of the store."""

    def __init__(
        self, db: Database, no: int, id: str, profile: str, frozen: Frozen | None = None
    ) -> None:
        self._db, self._no, self._frozen = db, no, frozen
        self.id = id
        """Permanent."""
        self.profile = profile

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, profile={self.profile!r})"

    # ------------------------------------------------------------------ the log

    def info(self) -> ConversationInfo:
        """The conversation's facts: titles, counters, flags, times."""
        return self._db.read(self._info)

    def log(
        self, *, limit: int = 100, cursor: str | None = None,
        order: Literal["oldest", "newest"] = "oldest", hidden: bool = False,
    ) -> Page[Message]:  # fmt: skip
        """A page of messages, forwards from the oldest or backwards from the newest.

        With `hidden` also those that a cut hides. The cursor is that of the page before, in the
        same order; messages appended meanwhile neither shift nor repeat anything.
        """
        self._db.kit.limits.check_page(limit)
        after = _position(cursor, order)
        return self._db.read(lambda tx: self._log(tx, limit, after, order, hidden))

    def _log(
        self, tx: Transaction, limit: int, after: int | None, order: str, hidden: bool
    ) -> Page[Message]:
        _, parts, cut_list, head = self._bounds(tx)
        shown: Sequence[Cut] = () if hidden else cut_list
        backward = order == "newest"
        first, last = 1, head
        if after is not None and backward:
            last = min(last, after - 1)
        elif after is not None:
            first = after + 1
        pieces = log.ranges(parts, shown, first, last)
        found = log.read_some(tx, self._db.kit.codec, pieces, limit + 1, backward)
        more, found = len(found) > limit, found[:limit]
        cursor = f"{order[0]}{found[-1].seq}" if more else None
        if not hidden:
            found = log.in_place(tx, self._db.kit.codec, parts, cut_list, found)
        return Page(tuple(found), cursor)

    def messages(self, *, hidden: bool = False) -> Iterator[Message]:
        """All messages from the oldest on, read page by page; memory stays bounded."""
        cursor: str | None = None
        while True:
            page = self.log(limit=500, cursor=cursor, hidden=hidden)
            yield from page.items
            if page.next is None:
                return
            cursor = page.next

    def message(self, name: str | int) -> Message:
        """One message by seq, or by uid or key; hidden ones too. NotFound."""
        return self._db.read(lambda tx: self._message(tx, name))

    def _message(self, tx: Transaction, name: str | int) -> Message:
        _, parts, _, head = self._bounds(tx)
        codec = self._db.kit.codec
        if isinstance(name, int):
            return log.at(tx, codec, parts, name)
        for no, _, last in reversed(parts):
            row = tx.row("message_by_key", no=no, key=name, last=min(last, head))
            if row is not None:
                return log.at(tx, codec, parts, row[0])
        try:
            return log.at(tx, codec, parts, log.seq_of(tx, parts, name))
        except InputError:
            raise NotFound("message", name) from None

    def blob(self, digest: str) -> bytes:
        """The bytes of an image or file by the hash in its part. NotFound."""

        def get(tx: Transaction) -> bytes:
            _, parts, _, _ = self._bounds(tx)
            return blobs.get(tx, [no for no, _, _ in reversed(parts)] or [self._no], digest)

        return self._db.read(get)

    # ------------------------------------------------------------------ the context

    def context_inputs(self) -> ContextInputs:
        """Compaction in effect and every visible message above it: what a context is built from.

        A message appended while a summary is being written is in it by definition.
        """
        return self._db.read(self._context_inputs)

    def _context_inputs(self, tx: Transaction) -> ContextInputs:
        kit = self._db.kit
        info, parts, cut_list, head = self._bounds(tx)
        compaction = compactions.effective(tx, kit, self._no, cut_list, head)
        covered: list[tuple[BodyItem, tuple[Message, ...]]] = []
        first = 1
        if compaction is not None:
            first = compaction.covers_to + 1
            covered = compactions.expand(tx, kit, parts, cut_list, compaction)
        found = log.read(tx, kit.codec, log.ranges(parts, cut_list, first, head))
        return ContextInputs(
            conversation=info,
            prompt=prompts.prompt_of(tx, kit, self._no),
            toolset=prompts.toolset_of(tx, kit, self._no),
            compaction=compaction,
            covered=tuple(covered),
            messages=tuple(log.in_place(tx, kit.codec, parts, cut_list, found)),
            todos=todos.all_of(tx, self._no),
            goal=goals.active(tx, self._no),
        )

    def snapshot(self, at: int | None = None) -> ConversationReader:
        """A read-only handle of what is here now, up to seq `at` (the head when None)."""

        def freeze(tx: Transaction) -> Frozen:
            _, _, cut_list, head = self._bounds(tx)
            if at is not None and not 0 <= at <= head:
                raise InputError(f"seq {at} is not within 0..{head}")
            return Frozen(head if at is None else at, tuple(cut_list))

        frozen = self._db.read(freeze)
        return ConversationReader(self._db, self._no, self.id, self.profile, frozen)

    # ------------------------------------------------------------------ records

    def cuts(self) -> tuple[Cut, ...]:
        """All cuts by number, undone ones too."""
        return self._db.read(lambda tx: tuple(self._bounds(tx)[2]))

    def compactions(self) -> tuple[Compaction, ...]:
        """All compactions, newest generation first, undone and superseded ones too."""
        return self._db.read(lambda tx: compactions.all_of(tx, self._db.kit, self._no))

    def attempts(self) -> tuple[Attempt, ...]:
        """All attempts by number."""
        return self._db.read(lambda tx: attempts.all_of(tx, self._no))

    def turns(self, limit: int = 100, before: int = 1 << 62) -> tuple[Turn, ...]:
        """Turns numbered below `before`, newest first."""
        return self._db.read(lambda tx: turns.recent(tx, self._no, limit, before))

    def calls(self) -> tuple[ModelCall, ...]:
        """Model calls by number."""
        return self._db.read(lambda tx: calls.all_of(tx, self._no))

    def usage(self) -> tuple[ModelUsage, ...]:
        """Usage by model of this conversation."""
        return self._db.read(lambda tx: calls.usage(tx, self.profile, self._no, 0))

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

    def children(self, limit: int = 100) -> tuple[ConversationInfo, ...]:
        """Branches and delegates, newest first."""
        return self._db.read(lambda tx: listing.children(tx, self.profile, self._no, limit))

    # ------------------------------------------------------------------ shared

    def _info(self, tx: Transaction) -> ConversationInfo:
        return conversations.info(tx, self._no)

    def _bounds(
        self, tx: Transaction
    ) -> tuple[ConversationInfo, list[log.Segment], Sequence[Cut], int]:
        """The row, where its seqs are stored, its cuts and its head; a snapshot's are frozen."""
        info = self._info(tx)
        head = info.head if self._frozen is None else self._frozen.head
        cut_list = cuts.all_of(tx, self._no) if self._frozen is None else self._frozen.cuts
        base = tx.row("conversation_base_of", no=self._no) if info.base else None
        origin = None if base is None else base[0]
        return info, log.segments(tx, self._no, info.base, origin, head), cut_list, head


def _position(cursor: str | None, order: str) -> int | None:
    if cursor is None:
        return None
    if cursor[:1] != order[0] or not cursor[1:].isdecimal():
        raise InvalidCursor(cursor)
    return int(cursor[1:])


__all__ = ["ContextInputs", "ConversationReader", "Frozen"]
