"""Messages that a store is asked to take: how to write them, and what of them the spool keeps.

A handle makes one of these for each call that brings messages. The store gets its `unit`; when it
cannot take that, the spool gets the `record`, and the caller `answer`, or Spooled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from msgspec.structs import replace

from clew.domain.conversations import NewConversation
from clew.domain.messages import Appended, Draft
from clew.domain.routes import Received
from clew.domain.turns import (
    CallPlan,
    Recorded,
    Right,
    TurnBegun,
    TurnEnded,
    TurnKnown,
    TurnQueued,
)
from clew.errors import (
    Corrupt,
    NetworkFolder,
    Spooled,
    StoreClosed,
    StoreError,
    StoreMoved,
    StoreReplaced,
    StoreUnusable,
    Unavailable,
)
from clew.store import bindings, turns
from clew.store.append import Append
from clew.store.backend import Unit
from clew.store.drafts import Prepared, prepare
from clew.store.kit import Kit
from clew.store.spool.messages import alone, spooled
from clew.store.spool.record import Delivery, Record

T = TypeVar("T")

_DIVERTED = (StoreUnusable, Corrupt, StoreReplaced, Unavailable, StoreClosed)


def is_diverted(error: StoreError) -> bool:
    """Whether a message that failed so goes to the spool: the store cannot take it, and asking
    again does not help. Not where another store is to be used instead."""
    return isinstance(error, _DIVERTED) and not isinstance(error, StoreMoved | NetworkFolder)


class Accepting(Generic[T]):
    """One call. `head`: one that the conversation is known to have had."""

    def __init__(
        self, kit: Kit, profile: str, conversation: str, drafts: Sequence[Draft], head: int = 0
    ) -> None:
        self._kit, self._profile, self._drafts = kit, profile, drafts
        self.conversation = conversation
        """Its id, or the key of the route that leads to it."""
        self._head = head

    def unit(self) -> Unit[T]:
        """The unit of work. InputError when the messages cannot be accepted at all."""
        raise NotImplementedError

    def answer(self, record: Record) -> T:
        """What the caller gets for messages that are in the spool; or raises Spooled."""
        raise Spooled(self.conversation, uids_of(record), record.cause)

    @property
    def has_messages(self) -> bool:
        """Whether there is anything that the spool keeps."""
        return bool(self._drafts)

    def record(self, store: str, cause: str) -> Record:
        """What the spool keeps. InputError as from `unit`."""
        prepared, seen = self._written()
        return Record(
            store=store, profile=self._profile, conversation=self.conversation, cause=cause,
            messages=spooled(self._kit.codec, prepared), at=self._kit.clock.now(),
            head=self._head if seen is None else seen,
        )  # fmt: skip

    def _written(self) -> tuple[Sequence[Prepared], int | None]:
        """The messages under the uids that the store may have seen, and the head at their first
        try. When it could not even be read they were never tried, and get theirs now."""
        return prepare(alone(self._kit), self._drafts), None


class Plain(Accepting[Appended]):
    """`append`: the caller gets an outcome that says so (`spooled`)."""

    def __init__(
        self, kit: Kit, profile: str, no: int, id: str, drafts: Sequence[Draft],
        expect: int | None, head: int,
    ) -> None:  # fmt: skip
        super().__init__(kit, profile, id, drafts, head)
        self._no, self._expect = no, expect
        self._unit: Append | None = None

    def unit(self) -> Append:
        self._unit = Append(self._kit, self._no, self.conversation, self._drafts, self._expect)
        return self._unit

    def record(self, store: str, cause: str) -> Record:
        return replace(super().record(store, cause), expect=self._expect)

    def answer(self, record: Record) -> Appended:
        return Appended((), record.head, 0, uids_of(record), spooled=record.cause)

    def _written(self) -> tuple[Sequence[Prepared], int | None]:
        made = self._unit
        return super()._written() if made is None else (made.prepared, made.seen)


class Opening(Accepting[TurnBegun | TurnQueued | TurnKnown]):
    """`begin_turn`: its messages wait in the inbox for a turn, as soon as the store takes them."""

    def __init__(
        self, kit: Kit, profile: str, no: int, id: str, drafts: Sequence[Draft], holder: str,
        ttl: int, key: str | None, call: CallPlan | None, head: int | None, seen: int,
    ) -> None:  # fmt: skip
        super().__init__(kit, profile, id, drafts, seen)
        self._make = lambda: turns.Begin(kit, no, id, drafts, holder, ttl, key, call, head)
        self._unit: turns.Begin | None = None

    def unit(self) -> turns.Begin:
        self._unit = self._make()
        return self._unit

    def record(self, store: str, cause: str) -> Record:
        return replace(super().record(store, cause), wait=True)

    def _written(self) -> tuple[Sequence[Prepared], int | None]:
        made = self._unit
        return super()._written() if made is None else (made.prepared, made.seen)


class OneStep(Accepting[tuple[Recorded, TurnEnded | None]]):
    """A step of a turn: its messages, under the right that it was held by."""

    def __init__(
        self, kit: Kit, profile: str, no: int, right: Right, turn: int, step: turns.Step, head: int
    ) -> None:
        super().__init__(kit, profile, right.conversation, step.drafts, head)
        self._no, self._right, self._turn, self._step = no, right, turn, step
        self._unit: turns.Record | None = None

    def unit(self) -> turns.Record:
        self._unit = turns.Record(self._kit, self._no, self._right, self._turn, self._step)
        return self._unit

    def record(self, store: str, cause: str) -> Record:
        return replace(
            super().record(store, cause), fence=self._right.fence, turn=self._turn,
            call=self._step.call, result=self._step.result,
        )  # fmt: skip

    def _written(self) -> tuple[Sequence[Prepared], int | None]:
        made = self._unit
        return super()._written() if made is None else (made.prepared, made.seen)


class Incoming(Accepting[Received]):
    """`receive`: kept as it was delivered, since only the store knows whose it is."""

    def __init__(
        self, kit: Kit, place: bindings.Place, account: str, key: str, drafts: Sequence[Draft],
        new: NewConversation, result: str | None, wait: bool,
    ) -> None:  # fmt: skip
        super().__init__(kit, place.profile, place.key, drafts)
        self._delivery = Delivery(place.source, place.key, account, key, new, result)
        self._place, self._wait = place, wait
        self._unit: bindings.Receive | None = None

    def unit(self) -> bindings.Receive:
        given = self._delivery
        self._unit = bindings.Receive(
            self._kit, self._place, given.account, given.key, self._drafts, given.new,
            given.result, self._wait,
        )  # fmt: skip
        return self._unit

    def record(self, store: str, cause: str) -> Record:
        return replace(super().record(store, cause), wait=self._wait, delivery=self._delivery)

    def _written(self) -> tuple[Sequence[Prepared], int | None]:
        made = self._unit
        return super()._written() if made is None else (made.prepared, None)


def uids_of(record: Record) -> tuple[str, ...]:
    """The uids of a record's messages."""
    return tuple(message.uid.hex() for message in record.messages)
