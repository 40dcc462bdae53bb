"""The store that is copied to: what it knows of the copy, and the only way it is written to.

Its `meta` holds `copy_of` and `copy_stamp` (whose copy it is), `copy_state`, and after a run that
came to its end `copy_digest`. Every unit that writes to a copy first locks and reads the state and
moves it on last, so that a crash leaves a state to go on from, a unit whose commit was in doubt
knows itself, a second copier is kept apart, and what others wrote is noticed: it is never written
over.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Struct, structs

from clew.errors import Busy, InputError
from clew.store.backend import Transaction
from clew.store.copy.report import Progress
from clew.store.database import Database

OF, STAMP, STATE, DIGEST = "copy_of", "copy_stamp", "copy_state", "copy_digest"
MOVED = "moved_to"
"""In the meta of a store that was moved: where to, as people are shown it."""

Work = Callable[[Transaction], None]


class State(Struct, frozen=True):
    """How far a copy is: everything of the source up to the message id `mark` is there."""

    run: str = ""
    """Whose turn it is: one run of one process."""
    step: int = 0
    mark: int = 0
    message: int = 0
    change: int = 0
    """The newest ids of the copy itself after the last step."""


class Place:
    """A conversation in the copy. `base` and `head` say which messages are there."""

    __slots__ = ("affinity", "base", "gone", "head", "id", "no", "profile")

    def __init__(
        self, no: int, id: str, profile: str, affinity: str, base: int, head: int, gone: bool
    ) -> None:
        self.no, self.id, self.profile, self.affinity = no, id, profile, affinity
        self.base, self.head, self.gone = base, head, gone


class Target:
    """The destination of one run."""

    def __init__(self, db: Database, where: str, progress: Progress) -> None:
        self.db, self.where, self.progress = db, where, progress
        self.state = State()
        self.places: dict[str, Place] = {}
        """By id. An id may be used again after a deletion: `affinity` tells the two apart."""
        self.digests: dict[str, bytes] = {}
        """What the records of a conversation are now, by its id."""
        self.bare: set[str] = set()
        """Conversations that have no records here."""
        self.numbers: dict[int, Place | None] = {}
        """By the source's number; None: gone."""
        self.copied = 0
        self.fresh: dict[str, int] = {}
        """Lowest seq that was brought into a conversation since all was last compared."""
        self.touched: set[str] = set()
        """Conversations whose records were written since all was last compared."""

    def claim(self, store_id: str, stamp: str) -> str | None:
        """Make sure that this may be a copy of that source, and take the turn. Gives the digest
        that a run before left at its end."""
        run = self.db.kit.ids.uid().hex()

        def unit(tx: Transaction) -> tuple[State, str | None]:
            meta = dict(tx.rows("copy_meta"))
            state = structs.replace(self._judge(tx, meta, store_id, stamp), run=run, step=0)
            for name, value in ((OF, store_id), (STAMP, stamp), (STATE, _text(state))):
                tx.run("copy_meta_set", name=name, value=value)
            return state, meta.get(DIGEST)

        self.state, digest = self.db.backend.write(unit)
        return digest

    def write(self, work: Work, mark: int | None = None) -> None:
        """Run one step in one transaction. `mark`: all up to this id of the source is there."""
        before = self.state

        def unit(tx: Transaction) -> State:
            found = _state(tx)
            if found.run == before.run and found.step == before.step + 1:
                return found  # the commit was in doubt, and had gone through
            if (found.run, found.step) != (before.run, before.step):
                raise Busy(f"another copy to {self.where} has begun; let that one do it")
            _check_own(tx, found, self.where)
            work(tx)
            message, change = tx.rows("copy_newest")[0]
            reached = before.mark if mark is None else mark
            state = State(before.run, before.step + 1, reached, message, change)
            tx.run("copy_meta_set", name=STATE, value=_text(state))
            return state

        self.state = self.db.backend.write(unit)

    def give_up(self) -> None:
        """Others wrote here (they had it open): it is their store now. A digest of nothing marks it
        as no unfinished copy, which nobody could open, and never as one to go on with."""

        def unit(tx: Transaction) -> None:
            if self.state.run in ("", _state(tx).run):  # else another copy has begun
                tx.run("copy_meta_set", name=DIGEST, value="")

        self.db.backend.write(unit)

    def note(self, name: str, value: str | None) -> None:
        """Write one row of `meta`, or take it away."""
        if value is None:
            self.write(lambda tx: tx.run("copy_meta_forget", name=name))
        else:
            self.write(lambda tx: tx.run("copy_meta_set", name=name, value=value))

    def compared(self) -> None:
        """All was compared with the source."""
        self.fresh.clear()
        self.touched.clear()

    def _judge(self, tx: Transaction, meta: dict[str, str], store_id: str, stamp: str) -> State:
        """The state to go on from, or why this is no copy of that source."""
        if meta["store_id"] == store_id:
            raise InputError(
                f"{self.where} is the source itself, or a backup of it; give a new place"
            )
        if OF not in meta:
            if tx.row("copy_used") is not None:
                raise InputError(
                    f"{self.where} holds a store of its own, which a copy would overwrite; give an "
                    f"empty place"
                )
            return State(message=tx.rows("copy_newest")[0][0], change=tx.rows("copy_newest")[0][1])
        if meta[OF] != store_id:
            raise InputError(f"{self.where} is a copy of another store; give an empty place")
        if meta[STAMP] != stamp:
            raise InputError(
                f"the source was restored from a backup since {self.where} was copied from it, "
                f"which may hold what it lost; copy to an empty place"
            )
        state = msgspec.json.decode(meta[STATE], type=State)
        _check_own(tx, state, self.where)
        return state


class WrittenByOthers(InputError):
    """For a copy that is one no more."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} was written to by others since it was copied, and that would be lost. Use it "
            f"as a store of its own, or copy to an empty place"
        )


def _check_own(tx: Transaction, state: State, where: str) -> None:
    if tx.rows("copy_newest")[0] != (state.message, state.change):
        raise WrittenByOthers(where)


def _state(tx: Transaction) -> State:
    """The state as it is, locked."""
    row = tx.row("copy_state_lock")
    return State() if row is None else msgspec.json.decode(row[0], type=State)


def _text(state: State) -> str:
    return msgspec.json.encode(state).decode()
