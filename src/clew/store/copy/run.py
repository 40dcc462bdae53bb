"""One run of a copy, from looking at both stores to the seal on the one that was moved."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter

from clew.errors import InputError, StoreError, StoreMoved
from clew.store.backend import Transaction
from clew.store.copy import compare, conversations, messages, records, wide
from clew.store.copy.compare import Sums
from clew.store.copy.conversations import Seen
from clew.store.copy.report import CopyReport, Progress
from clew.store.copy.tables import JOB, NAMES, PROMPTS, ROUTES, SUBSCRIBER
from clew.store.copy.target import DIGEST, MOVED, OF, STAMP, STATE, Target, WrittenByOthers
from clew.store.database import Database
from clew.store.opening import open_parts
from clew.store.verify import Problem, verify

ROUNDS = 8
"""Times that a copy runs after a source that others write to, before it takes one snapshot of it
and, for a move, before the pause."""


def copy(
    source: str | Path, dest: str | Path, *, move: bool = False, progress: Progress | None = None
) -> CopyReport:
    """Copy the store at `source` to `dest`, each the path of a file or a postgresql:// URL.

    `dest` is empty, or an unfinished or earlier copy of the same source: a run goes on where the
    one before ended, and brings a copy up to date. Others may use the source meanwhile; afterwards
    the copy equals one state that the source had, and both were compared row by row.

    `move`: at the end the source takes no writes for a moment, gets what is left over there, and is
    sealed: whoever has it open, or opens it, gets StoreMoved, and `dest` is the store from then on.
    Nothing is sealed that was not compared, nor if an invariant does not hold.

    Raises InputError when `dest` is no place for this copy, StoreError when the two are not equal
    in the end, and what the engines raise. After any error the same call goes on.
    """
    begun = perf_counter()
    with _opened(source, there=True) as (origin, shown), _opened(dest) as (db, where):
        run = _Run(origin, Target(db, where, progress or _silent))
        try:
            problems = run.copy()
            pause = run.move() if move and not problems else None
        except WrittenByOthers:
            run.target.give_up()
            raise
        return CopyReport(
            source=shown, dest=where, moved=pause is not None,
            conversations=run.rows["conversation"], messages=run.rows["message"],
            copied=run.target.copied, rows=run.rows, pause=pause or 0.0,
            seconds=perf_counter() - begun, problems=tuple(problems),
        )  # fmt: skip


class _Run:
    """Handles of its own on both stores, so that no unit of another thread of this process shares
    a transaction with the seal."""

    def __init__(self, source: Database, target: Target) -> None:
        self._source, self.target = source, target
        self.rows: dict[str, int] = {}
        """Rows of the copy by table."""
        self._held: wide.Held = {}

    def copy(self) -> list[Problem]:
        """Bring everything over, and compare and verify it."""
        target = self.target
        self._begin()
        self._bulk()
        ours = self._source.read(self._compared)
        target.progress("Comparing", 0, ours.rows.get("message", 0))
        theirs = target.db.read(lambda tx: self._sum(tx, compare.look(tx)))
        compare.refuse(target, compare.differences(ours, theirs))
        self.rows = dict(ours.rows)
        target.compared()
        self.finished(ours.seen)
        return verify(target.db, lambda done, of: target.progress("Verifying", done, of))

    def move(self) -> float:
        """Seal the source; gives how long it took no writes."""
        for _ in range(ROUNDS):
            before = self.target.copied
            self.finished(self._source.read(self.everything))
            if self.target.copied - before <= messages.BATCH:
                break
        seal = _Seal(self)
        try:
            self._source.backend.write(seal)
        except StoreMoved as moved:
            if not seal.tried or moved.where != self.target.where:
                raise
            # By the first run of the unit, whose commit was in doubt.
        pause = perf_counter() - seal.begun
        with suppress(StoreError):  # it is moved; marks that stay harm nobody
            self.target.db.backend.write(_forget)
        return pause

    # ------------------------------------------------------------------ steps

    def _begin(self) -> None:
        target = self.target
        meta = dict(self._source.read(lambda tx: tx.rows("copy_meta")))
        if OF in meta and DIGEST not in meta:
            raise InputError("the source is itself an unfinished copy; finish that one first")
        expected = target.claim(meta["store_id"], meta["stamp"])
        self._held = wide.held(target, (*PROMPTS, *ROUTES, JOB, SUBSCRIBER))
        target.db.read(self._look)
        if expected is not None:
            if expected != self._name(target.digests):
                raise WrittenByOthers(target.where)
            target.note(DIGEST, None)

    def _look(self, tx: Transaction) -> None:
        """What the copy has."""
        target = self.target
        target.places.clear()
        for items in conversations.pages(tx):
            for item in items:
                target.places[item.id] = item.place()
                if not item.gone:
                    target.digests[item.id] = item.digest()
                    if not any(item.records):
                        target.bare.add(item.id)

    def _bulk(self) -> None:
        """Bring messages batch by batch, each from a snapshot of its own, and follow a while."""
        target, source = self.target, self._source
        source.read(lambda tx: wide.copy_dictionaries(tx, target))
        of = source.read(lambda tx: tx.rows("copy_totals"))[0][1]
        there = sum(place.head - place.base for place in target.places.values())
        for _ in range(ROUNDS):
            last, before = source.read(messages.settled), target.copied
            reached = -1
            while reached < target.state.mark:
                reached = target.state.mark
                source.read(lambda tx, last=last: messages.copy_up_to(tx, target, last, last))
                done = there + target.copied
                target.progress("Copying messages", done, max(of, done))
            if target.copied - before <= messages.BATCH:
                return

    def everything(self, tx: Transaction) -> Seen:
        """Make the copy what this snapshot of the source shows."""
        target, held = self.target, self._held
        wide.copy_dictionaries(tx, target)
        messages.copy_rest(tx, target)
        wide.bring_missing(tx, target, (*PROMPTS, SUBSCRIBER), held)
        seen = records.copy_records(tx, target)
        if records.remove_gone(tx, target, seen):
            held |= wide.held(target, PROMPTS)
            wide.bring_missing(tx, target, PROMPTS, held)
        for tables in (PROMPTS, (*ROUTES, JOB, SUBSCRIBER)):
            wide.drop_others(tx, target, tables, held)
            wide.bring_missing(tx, target, tables, held)
        return seen

    def _compared(self, tx: Transaction) -> Sums:
        return self._sum(tx, self.everything(tx))

    def _sum(self, tx: Transaction, seen: Seen) -> Sums:
        of = tx.rows("copy_totals")[0][1]
        return compare.sum_up(tx, seen, lambda done: self.target.progress("Comparing", done, of))

    def finished(self, seen: Seen) -> None:
        """Leave a mark by which the next run knows that nobody else wrote here."""
        places = self.target.places.values()
        self.rows = {
            **self.rows, **seen.rows, "message": sum(place.head - place.base for place in places),
            **{name: len(rows) for name, rows in self._held.items()},
        }  # fmt: skip
        self.target.note(DIGEST, self._name(seen.digests))

    def _name(self, digests: dict[str, bytes]) -> str:
        """What the copy holds that only others' writes can change: not what expires."""
        routes = [value for table in (*NAMES, SUBSCRIBER) for value in self._held[table.name]]
        return f"{compare.total([*digests.values(), *routes])[1]:032x}"


class _Seal:
    """The unit that ends a move, in the source."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self.begun = 0.0
        self.tried = False

    def __call__(self, tx: Transaction) -> None:
        tx.run("copy_pause")
        tx.run("copy_pause_all")
        moved = tx.row("copy_moved")
        if moved is not None:
            raise StoreMoved(moved[0])
        self.begun = perf_counter()
        run = self._run
        seen = run.everything(tx)
        compare.check_touched(tx, run.target, seen)
        run.finished(seen)
        tx.run("copy_meta_set", name=MOVED, value=run.target.where)
        tx.run("copy_meta_set", name="stamp", value=run.target.db.kit.ids.uid().hex())
        self.tried = True


def _forget(tx: Transaction) -> None:
    """A store that was moved here is no copy any more."""
    for name in (OF, STAMP, STATE, DIGEST):
        tx.run("copy_meta_forget", name=name)


@contextmanager
def _opened(
    place: str | Path, there: bool = False
) -> Generator[tuple[Database, str], None, None]:  # fmt: skip
    """A store and how it is shown; the source has to be `there`."""
    parts = open_parts(place, None, None, None, create=not there, unfinished=True)
    try:
        where = parts.place.absolute() if isinstance(parts.place, Path) else parts.place
        yield Database(parts.backend, parts.kit), str(where)
    finally:
        parts.search.close()
        parts.backend.close()


def _silent(what: str, done: int, of: int) -> None:
    """No progress is wanted."""
