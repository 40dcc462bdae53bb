"""How a batch of units of work becomes transactions.

All in one where that goes well; with a savepoint around each when one of them refuses; each alone
when the engine failed or nobody knows what was committed. Knows no threads, queues or locks.

Exactly once: a unit looks for its keys before it writes, so one that runs again after a commit in
doubt finds what it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any, Protocol

from clew.errors import StoreError
from clew.store.backend import Transaction, Unit


class Engine(Protocol):
    """One writing connection. Only the holder of the write turn calls it."""

    @property
    def transaction(self) -> Transaction:
        """What units are given, valid while a transaction is open."""
        ...

    @property
    def in_transaction(self) -> bool:
        """Whether one is open. A fault inside a unit (no space, I/O, corruption) ends it, and no
        statement of that unit runs after; a refusal by the unit or a constraint does not."""
        ...

    def begin(self) -> None:
        """Take the write lock, or raise with nothing open."""
        ...

    def commit(self) -> None:
        """Make it durable. After an error nobody knows whether it is."""
        ...

    def rollback(self) -> None:
        """End the transaction if one is open. Never raises."""
        ...

    def savepoint(self) -> None: ...

    def release(self) -> None: ...

    def rollback_to(self) -> None: ...


class Entry:
    """A unit and, once it has run, its result or its error."""

    __slots__ = ("error", "result", "unit")

    def __init__(self, unit: Unit[Any]) -> None:
        self.unit = unit
        self.result: Any = None
        self.error: BaseException | None = None

    def fail(self, error: BaseException) -> None:
        """Fail with an error that others get too. Each raises its own copy: one exception raised
        in several threads at once mixes their tracebacks."""
        twin = type(error).__new__(type(error), *error.args)
        twin.__dict__.update(error.__dict__)
        twin.__cause__ = error.__cause__ or error
        self.error = twin

    def outcome(self) -> Any:
        """The result, or raise the error. Asked once."""
        error, self.error = self.error, None
        if error is None:
            return self.result
        try:
            raise error
        finally:
            del error  # else error -> traceback -> this frame -> error is a cycle


Errors = type[BaseException]


class BatchRunner:
    """Runs batches on an engine and counts.

    `caught` says which exceptions of a unit are its outcome; others end the run half-way and the
    caller of `run` must roll back. The main thread passes Exception: there a BaseException is more
    likely a signal, meant for the thread, than the doing of the unit that was running.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.units = 0
        self.commits = 0
        self.reruns = 0
        self.sync = 0.0
        """Seconds that the last commit took."""

    def run(self, entries: Sequence[Entry], caught: Errors = Exception) -> None:
        """Run each unit once or more and leave its outcome, durable, in its entry."""
        self.units += len(entries)
        if not self._begin(entries, caught):
            return
        if self._bare(entries, caught):
            if not self._commit(entries, caught):
                self._each_alone(entries, caught)
            return
        self._engine.rollback()
        if len(entries) > 1:
            self._guarded(entries, caught)

    def _begin(self, entries: Sequence[Entry], caught: Errors) -> bool:
        """Open a transaction, or give everybody the reason why not."""
        try:
            self._engine.begin()
        except caught as error:
            for entry in entries:
                entry.fail(error)
            return False
        return True

    def _bare(self, entries: Sequence[Entry], caught: Errors) -> bool:
        """Run the units one after another up to the first that fails; then nothing counts."""
        engine = self._engine
        transaction = engine.transaction
        for entry in entries:
            try:
                entry.result = entry.unit(transaction)
            except caught as error:
                entry.error = error
                return False
            if not engine.in_transaction:
                entry.error = _lost()
                return False
        return True

    def _commit(self, entries: Sequence[Entry], caught: Errors) -> bool:
        """Commit. If that fails nothing is open any more, but what was done may be durable."""
        start = perf_counter()
        try:
            self._engine.commit()
        except caught as error:
            self._engine.rollback()
            for entry in entries:
                entry.error = error
            return False
        self.sync = perf_counter() - start
        self.commits += 1
        return True

    def _guarded(self, entries: Sequence[Entry], caught: Errors) -> None:
        """Run again with a savepoint around each, so that one that refuses harms no other."""
        self.reruns += 1
        if not self._begin(entries, caught):
            return
        if not (self._saved(entries, caught) and self._commit(entries, caught)):
            self._engine.rollback()
            self._each_alone(entries, caught)

    def _saved(self, entries: Sequence[Entry], caught: Errors) -> bool:
        """Whether the transaction is whole at the end. It is not once the engine has left it: the
        next SAVEPOINT would then open one of its own and its RELEASE would commit that."""
        engine = self._engine
        try:
            for entry in entries:
                entry.error = None
                engine.savepoint()
                try:
                    entry.result = entry.unit(engine.transaction)
                except caught as error:
                    if not engine.in_transaction:
                        return False
                    entry.error = error
                    engine.rollback_to()
                if not engine.in_transaction:
                    return False
                engine.release()
        except caught:
            return False
        return True

    def _each_alone(self, entries: Sequence[Entry], caught: Errors) -> None:
        """Run each once more in a transaction of its own; what happens there is its outcome."""
        for entry in entries:
            self.reruns += 1
            entry.error = None
            alone = (entry,)
            if self._begin(alone, caught) and not (
                self._bare(alone, caught) and self._commit(alone, caught)
            ):
                self._engine.rollback()


def _lost() -> StoreError:
    return StoreError("the transaction ended inside a unit of work that did not report it")
