"""Reading one conversation inside a transaction: its log, its messages, its context inputs.

A `Reading` is fixed to a conversation and, for a snapshot, to what was there at a seq. It holds no
transaction: each method is given one, so that a handle of any kind makes a unit of work of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from clew.domain.compactions import BodyItem, Compaction
from clew.domain.conversations import ConversationInfo, Page
from clew.domain.cuts import Cut
from clew.domain.messages import Message
from clew.domain.notes import Goal, Todo
from clew.errors import InputError, InvalidCursor, NotFound
from clew.store import blobs, compactions, conversations, cuts, goals, log, prompts, todos
from clew.store.backend import Transaction
from clew.store.kit import Kit
from clew.store.prompts import ToolSchemas

Order = Literal["oldest", "newest"]


class Frozen(NamedTuple):
    """What a snapshot keeps of its conversation: later cuts and messages are not in it."""

    head: int
    cuts: tuple[Cut, ...]


class Span(NamedTuple):
    """Seqs that are asked for; to the head when `last` is None."""

    first: int = 1
    last: int | None = None


class Bounds(NamedTuple):
    """The row, where its seqs are stored, its cuts and its head; a snapshot's are frozen."""

    info: ConversationInfo
    parts: list[log.Segment]
    cuts: Sequence[Cut]
    head: int


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


class Reading:
    """One conversation as transactions show it: as it is, or as it was when it was frozen."""

    __slots__ = ("_frozen", "_kit", "_no")

    def __init__(self, kit: Kit, no: int, frozen: Frozen | None = None) -> None:
        self._kit, self._no, self._frozen = kit, no, frozen

    def bounds(self, tx: Transaction) -> Bounds:
        info = conversations.info(tx, self._no)
        if self._frozen is not None:
            head, cut_list = self._frozen
        else:
            # A view that never moved: no cut of its own, and it has inherited none either (a
            # branch keeps its cuts when its origin is deleted and its base is 0).
            untouched = info.view == 0 and info.kind != "branch"
            head, cut_list = info.head, () if untouched else cuts.all_of(tx, self._no)
        row = tx.row("conversation_base_of", no=self._no) if info.base else None
        origin = None if row is None else row[0]
        return Bounds(info, log.segments(tx, self._no, info.base, origin, head), cut_list, head)

    def freeze(self, tx: Transaction, at: int | None) -> Frozen:
        """What is here now, up to seq `at` (the head when None)."""
        _, _, cut_list, head = self.bounds(tx)
        if at is not None and not 0 <= at <= head:
            raise InputError(f"seq {at} is not within 0..{head}")
        return Frozen(head if at is None else at, tuple(cut_list))

    def page(
        self, tx: Transaction, limit: int, cursor: str | None, order: Order, hidden: bool,
        span: Span,
    ) -> Page[Message]:  # fmt: skip
        """A page of the log; with `hidden` also what cuts hide."""
        self._kit.choice("order", order, ("oldest", "newest"))
        after = _position(cursor, order)
        info, parts, cut_list, head = self.bounds(tx)
        shown: Sequence[Cut] = () if hidden else cut_list
        backward = order == "newest"
        first, last = span.first, head if span.last is None else min(head, span.last)
        if after is not None and backward:
            last = min(last, after - 1)
        elif after is not None:
            first = max(first, after + 1)
        pieces = log.ranges(parts, shown, first, last)
        found = log.read_some(tx, self._kit.codec, pieces, limit + 1, backward)
        more, found = len(found) > limit, found[:limit]
        following = f"{order[0]}{found[-1].seq}" if more else None
        if not hidden:
            found = log.in_place(tx, self._kit.codec, parts, cut_list, found)
        return Page(tuple(log.inherited(found, info.base)), following)

    def message(self, tx: Transaction, name: str | int) -> Message:
        """One message by seq, or by key or uid; hidden ones too."""
        info, parts, _, head = self.bounds(tx)
        seq = name if isinstance(name, int) else _seq_of(tx, parts, head, name)
        return log.inherited([log.at(tx, self._kit.codec, parts, seq)], info.base)[0]

    def blob(self, tx: Transaction, digest: str) -> bytes:
        """The bytes of a hash, the conversation's own or inherited."""
        parts = self.bounds(tx).parts
        return blobs.get(tx, [no for no, _, _ in reversed(parts)] or [self._no], digest)

    def context_inputs(self, tx: Transaction, without: int | None = None) -> ContextInputs:
        """The compaction in effect and every visible message above it; `without`: as if the one
        of that generation were undone."""
        kit = self._kit
        info, parts, cut_list, head = self.bounds(tx)
        compaction = None
        if info.generation:
            compaction = compactions.effective(tx, kit, self._no, cut_list, head, without)
        covered: list[tuple[BodyItem, tuple[Message, ...]]] = []
        first = 1
        if compaction is not None:
            first = compaction.covers_to + 1
            covered = [
                (item, tuple(log.inherited(named, info.base)))
                for item, named in compactions.expand(tx, kit, parts, cut_list, compaction)
            ]
        found = log.read(tx, kit.codec, log.ranges(parts, cut_list, first, head))
        # A message that replaces another has moved the view of where it was written.
        if info.view or info.kind == "branch":
            found = log.in_place(tx, kit.codec, parts, cut_list, found)
        prompt, toolset = info.prompt_hash, info.toolset_hash
        return ContextInputs(
            conversation=info,
            prompt=None if prompt is None else prompts.prompt_of(tx, kit, self._no),
            toolset=None if toolset is None else prompts.toolset_of(tx, kit, self._no),
            compaction=compaction,
            covered=tuple(covered),
            messages=tuple(log.inherited(found, info.base)),
            todos=todos.all_of(tx, self._no),
            goal=goals.active(tx, self._no),
        )


def _seq_of(tx: Transaction, parts: Sequence[log.Segment], head: int, name: str) -> int:
    """The seq of a key or, failing that, of a uid."""
    for no, _, last in reversed(parts):
        row = tx.row("message_by_key", no=no, key=name, last=min(last, head))
        if row is not None:
            return row[0]
    try:
        return log.seq_of(tx, parts, name)
    except InputError:
        raise NotFound("message", name) from None


def _position(cursor: str | None, order: Order) -> int | None:
    if cursor is None:
        return None
    if cursor[:1] != order[0] or not cursor[1:].isdecimal():
        raise InvalidCursor(cursor)
    return int(cursor[1:])
