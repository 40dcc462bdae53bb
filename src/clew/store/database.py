"""What handles share: backend, kit, and the spool for messages that the store cannot take."""

from __future__ import annotations

from contextlib import suppress
from typing import TypeVar

from clew.errors import Busy, ClewError, StoreError, StoreFull
from clew.store import dictionary
from clew.store.backend import Backend, Unit
from clew.store.codec import DictionaryGone
from clew.store.kit import Kit
from clew.store.spool.accepting import Accepting, is_diverted
from clew.store.spool.bringing import Report, bring_in
from clew.store.spool.spool import Spool

T = TypeVar("T")


class Database:
    """One open store, as its handles see it. `spool`: None has messages refused where the store
    cannot take them."""

    def __init__(self, backend: Backend, kit: Kit, spool: Spool | None = None) -> None:
        self.backend = backend
        self.kit = kit
        self.spool = spool
        self.recovered = 0
        """Messages that this handle brought into conversations of their own."""
        self._writes = 0

    def write(self, unit: Unit[T]) -> T:
        """Run a unit of work; returns once it is durable. What waits in the spool comes first, as
        far as the store takes it."""
        if self.spool is not None and self.spool.pending():
            self.bring_in()
        return self._write(unit)

    def accept(self, messages: Accepting[T]) -> T:
        """Run the unit of messages; where the store cannot take them, have them in the spool.

        Order: while messages of this conversation wait there, these go behind them. Raises what
        the store said where the spool cannot take them either: they are nowhere then."""
        spool = self.spool
        if spool is None:
            return self._write(messages.unit())
        if spool.pending():
            self.bring_in()
            before = self.behind(messages)
            if before is not None:
                return self.divert(messages, before)
        try:
            return self._write(messages.unit())
        except StoreError as error:
            if not (is_diverted(error) and messages.has_messages):
                raise
            return self.divert(messages, error)

    def bring_in(self) -> Report:
        """Bring in what waits in the spool, as far as the store takes it."""
        assert self.spool is not None
        report = bring_in(self.backend, self.kit, self.spool)
        self.recovered += sum(
            len(each.entry.record.messages) for each in report.recovered if each.entry.record
        )
        self._stopped = report.stopped
        return report

    _stopped: ClewError | None = None
    """Why the last bringing in left something where it was."""

    def behind(self, messages: Accepting[T]) -> StoreError | None:
        """Why these messages cannot overtake others of their conversation; None: none wait."""
        assert self.spool is not None
        if not messages.has_messages:
            return None
        try:
            if not self.spool.waiting(messages.conversation):
                return None
        except OSError as error:
            return StoreError(f"the spool cannot be read: {error.strerror}")
        stopped = self._stopped
        return stopped if isinstance(stopped, StoreError) else Busy("earlier messages wait")

    def divert(self, messages: Accepting[T], error: StoreError) -> T:
        """Have messages in the spool instead of the store."""
        assert self.spool is not None
        record = messages.record(self.backend.meta.store_id, str(error))
        try:
            self.spool.add(record)
        except StoreFull:
            raise
        except StoreError:
            raise error from None
        return messages.answer(record)

    def wait(self, token: int, seconds: float) -> None:
        """Wait until somebody may have committed."""
        self.backend.wait(token, seconds)

    def read(self, reader: Unit[T]) -> T:
        """Run a reader on one snapshot."""
        return self.backend.read(reader)

    def close(self) -> None:
        """Let go of the spool. A message that comes after this still goes there."""
        if self.spool is not None:
            self.spool.close()

    def _write(self, unit: Unit[T]) -> T:
        try:
            result = self.backend.write(unit)
        except DictionaryGone:
            self.kit.codec.learn()  # the same call packs with the new one
            raise
        self._writes += 1
        if self._writes % dictionary.EVERY == 0:
            with suppress(ClewError):  # the unit is durable; training is tried again later
                dictionary.train_if_due(self.backend, self.kit)
        return result
