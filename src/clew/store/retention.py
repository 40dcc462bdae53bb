"""Runs of a retention policy: closing, binning and deleting, one conversation a transaction.

Candidates are read in pages without a lock; under the lock of its row each is judged again, so what
was pinned, written to or restored meanwhile stays. Two processes that prune at once do each
conversation once: whoever comes second finds it closed, in the bin or gone.

The daily run (`daily`) is careful beyond that. Its first run on a store, and one long after the
last, only looks: who knows whether time or only the clock has gone on. And what a policy takes of
people and imports is announced by one run, and taken by a later one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from clew.domain.notes import JobRight
from clew.domain.retention import DAY, Aged, Did, Due, Item, Policy, Pruned, due
from clew.errors import NotFound
from clew.store import conversations, deletion, jobs, vacuum
from clew.store.backend import Row, Transaction
from clew.store.bin import Bin
from clew.store.conversations import Locked
from clew.store.database import Database
from clew.store.holders import new_holder
from clew.store.search import Search
from clew.store.unit import Once

PAGE = 500
LONG = 35 * DAY
"""A daily run this long after the last one only looks. A monthly one is not that late."""
TTL = 600_000_000
DID: dict[str, Did] = {"close": "closed", "bin": "binned"}

Report = Callable[[int, int], None]
"""Called with (done, of)."""


def _silent(done: int, of: int) -> None:
    pass


def _nothing() -> None:
    pass


class Run(NamedTuple):
    """What a run is about. `profile`: None is all of them. `held`: of people and imports nothing is
    taken, only announced."""

    db: Database
    policy: Policy
    profile: str | None
    dry: bool
    held: bool = False
    progress: Report = _silent
    alive: Callable[[], None] = _nothing
    """Called before each conversation."""


class Close(Once[bool]):
    """Closes what nobody has used for long, if that is still so under the lock."""

    def __init__(self, run: Run, one: Aged) -> None:
        self._run, self._no = run, one.no

    def run(self, tx: Transaction) -> bool:
        row = conversations.lock_whole(tx, self._no)
        if row is None or not _still(tx, row, self._run, "close"):
            return False
        return conversations.end(tx, row, "stale", self._run.db.kit.clock.now())

    def is_stored(self, tx: Transaction) -> bool:
        row = conversations.peek(tx, self._no)
        return row is None or row.ended_at is not None


def prune(
    db: Database, search: Search, policy: Policy, profile: str | None = None,
    dry_run: bool = False, progress: Report | None = None,
) -> Pruned:  # fmt: skip
    """Do at once what a policy says, or only tell it."""
    run = Run(db, policy, profile, dry_run, progress=progress or _silent)
    return _all(run, search)


def daily(
    db: Database, search: Search, policy: Policy, profile: str | None = None,
    going: Callable[[], bool] | None = None,
) -> Pruned | None:  # fmt: skip
    """The run of the day, of one profile or of all; None when it was done, or is being done, by
    anybody. It ends early when `going` is false, and is gone on with by the next one."""
    kit, holder, names = db.kit, new_holder(), _Names(policy, profile)
    before = {job.name: job.done_at for job in db.read(jobs.all_of)}
    right = db.write(lambda tx: jobs.claim(tx, kit, names.run, holder, TTL, DAY))
    if right is None:
        return None
    done = False
    try:
        why = _why_only_look(before.get(names.run), before.get(names.looked), kit.clock.now())
        held = before.get(names.announced) is None
        alive = _Alive(db, right, going)
        pruned = _all(Run(db, policy, profile, why is not None, held, alive=alive), search)
        done = not alive.stopped
        if done and why is not None:
            _note(db, names.looked)
        elif done and held:
            _note(db, names.announced, names.any_announced)
        return replace(pruned, held=why)
    finally:
        db.write(lambda tx: jobs.release(tx, kit, right, done))


def announced(tx: Transaction, policy: Policy, profile: str | None = None) -> int | None:
    """When this policy was announced."""
    name = _Names(policy, profile).announced
    return next((job.done_at for job in jobs.all_of(tx) if job.name == name), None)


def delete(db: Database, profile: str, id: str, binned_by: int | None = None) -> bool:
    """Delete for good, in bounded steps, with what the spool has of it; whether it was there to be.
    NotFound."""
    no = db.write(deletion.Begin(db.kit, profile, id, binned_by))
    if no:
        deletion.finish(db.backend, db.kit, no)
        if db.spool is not None:
            store = db.backend.meta.store_id
            db.spool.remove(lambda r: (r.store, r.profile, r.conversation) == (store, profile, id))
    return bool(no)


def empty(db: Database, profile: str, progress: Report | None = None) -> tuple[Item, ...]:
    """Delete all that is in the bin of a profile, whenever it came there."""
    run = Run(db, Policy(), profile, False, progress=progress or _silent)
    return tuple(_expired(run, db.kit.clock.now(), "the bin was emptied"))


# ---------------------------------------------------------------- one run


def _all(run: Run, search: Search) -> Pruned:
    """What is in the bin for long goes first: what this run puts there has just come."""
    before = run.db.kit.clock.now() - run.policy.bin
    items: list[Item] = []
    returned = 0
    try:
        for item in chain(_expired(run, before, "in the bin for long"), _aged(run)):
            items.append(item)  # one by one: what was done is told, whatever ends the run
    except _Enough:
        return Pruned(items=tuple(items), dry_run=run.dry)
    if not run.dry and any(item.did == "deleted" for item in items):
        search.catch_up()  # the words of what is gone go with it
        returned = vacuum.give_back(run.db.backend, search)
    return Pruned(items=tuple(items), dry_run=run.dry, returned=returned)


def _aged(run: Run) -> Iterator[Item]:
    """Close and bin."""
    for one, why in _candidates(run):
        did = DID[why.act]
        if run.held and one.who != "automation":
            did = "announced"
        elif not run.dry and not _act(run, one, why):
            continue  # somebody has used it meanwhile, or another was faster
        yield Item(
            id=one.id, profile=one.profile, kind=one.kind, source=one.source, did=did,
            since=why.since, messages=one.messages, why=why.why,
        )  # fmt: skip


def _act(run: Run, one: Aged, why: Due) -> bool:
    run.alive()
    if why.act == "close":
        return run.db.write(Close(run, one))
    kit = run.db.kit

    def still(tx: Transaction, row: Locked) -> bool:
        return _still(tx, row, run, "bin")

    try:
        return run.db.write(Bin(kit, one.profile, one.id, still))
    except NotFound:
        return False


def _still(tx: Transaction, row: Locked, run: Run, act: str) -> bool:
    """Whether this is due now, while its row is locked."""
    if row.binned_at is not None or row.turn is not None or row.waiting:
        return False
    info = conversations.info(tx, row.no)
    if info.pinned or info.archived:
        return False
    one = Aged(
        no=row.no, id=row.id, profile=row.profile, kind=row.kind, source=info.source,
        automation=info.automation, active_at=info.active_at, imported_at=info.imported_at,
        ended_at=row.ended_at, reopened_at=info.reopened_at, messages=row.message_count,
    )  # fmt: skip
    now = due(run.policy, one, run.db.kit.clock.now())
    return now is not None and now.act == act


def _candidates(run: Run) -> Iterator[tuple[Aged, Due]]:
    """All that is due, by number."""
    shortest, now = run.policy.shortest, run.db.kit.clock.now()
    if shortest is None:
        return
    seen = {"before": now - shortest, "profile": run.profile, "limit": PAGE}
    after = 0
    while True:
        page = run.db.read(lambda tx, no=after: tx.rows("conversation_aged", no=no, **seen))
        for row in page:
            one = _aged_of(row)
            why = due(run.policy, one, now)
            if why is not None:
                yield one, why
        if len(page) < PAGE:
            return
        after = page[-1][0]


def _aged_of(row: Row) -> Aged:
    no, id, profile, kind, source, automation, active, imported, ended, reopened, messages = row
    return Aged(
        no, id, profile, kind, source, bool(automation), active, imported, ended, reopened, messages
    )


def _expired(run: Run, before: int, why: str) -> Iterator[Item]:
    """Delete what came into the bin by then."""
    db, seen = run.db, {"before": before, "profile": run.profile, "limit": PAGE}
    start, done, more = (-1 << 62, 0), 0, True
    while more:
        at, no = start
        page = db.read(lambda tx, a=at, n=no: tx.rows("conversation_overdue", **{
            "from": a, "no": n, **seen}))  # fmt: skip
        for row in page:
            run.alive()
            size = db.read(lambda tx, n=row[0]: tx.rows("conversation_bytes", no=n))[0][0]
            run.progress(done, done + len(page))
            if run.dry or _deleted(db, row[2], row[1], before):
                done += 1
                yield Item(
                    id=row[1], profile=row[2], kind=row[3], source=row[4], did="deleted",
                    since=row[6], messages=row[5], why=why, bytes=size,
                )  # fmt: skip
        more = len(page) == PAGE
        start = (page[-1][6], page[-1][0]) if page else start


def _deleted(db: Database, profile: str, id: str, before: int) -> bool:
    try:
        return delete(db, profile, id, before)
    except NotFound:
        return False  # another process was faster


# ---------------------------------------------------------------- the daily run


class _Enough(Exception):
    """The run ends here."""


class _Names:
    """The jobs of a policy: when it last ran, last only looked, and was announced."""

    def __init__(self, policy: Policy, profile: str | None) -> None:
        # Hashed, since a profile's name may be as long as a job's.
        whose = "" if profile is None else sha256(profile.encode()).hexdigest()[:16]
        self.run, self.looked = f"prune/{whose}", f"prune looked/{whose}"
        self.any_announced = f"announced/{whose}/"
        self.announced = self.any_announced + policy.fingerprint


class _Alive:
    """Says now and then that the job is at work (RightLost when another took it over), and ends
    the run when nobody wants it any more."""

    EVERY = 100

    def __init__(self, db: Database, right: JobRight, going: Callable[[], bool] | None) -> None:
        self._db, self._right, self._going, self._calls = db, right, going, 0
        self.stopped = False

    def __call__(self) -> None:
        if self._going is not None and not self._going():
            self.stopped = True
            raise _Enough
        self._calls += 1
        if self._calls % self.EVERY == 0:
            self._db.write(lambda tx: jobs.renew(tx, self._db.kit, self._right))


def _why_only_look(last: int | None, looked: int | None, now: int) -> str | None:
    """Why this run must take nothing; None: it may.

    A run that looked is followed by one that acts, however late: a store that is opened twice a
    year is pruned too. A clock that jumped has to be wrong for a day, and a window of the bin more,
    before anything is lost by it."""
    if last is None:
        return "the first run only looks"
    if looked is not None and looked >= last - DAY // 2:  # noted a moment before its run ended
        return None
    if now - last > LONG:
        return (
            f"the last run was {(now - last) // DAY:,} days ago by the clock: this one only looks"
        )
    return None


def _note(db: Database, name: str, only_of: str | None = None) -> None:
    """Remember that this was done now, and forget all others whose name begins so. Of announced
    policies only the last counts: two hosts with two policies announce in turns, and take nothing
    of people."""
    kit, holder = db.kit, new_holder()

    def work(tx: Transaction) -> None:
        if only_of is not None:
            jobs.forget(tx, only_of, name)
        right = jobs.claim(tx, kit, name, holder, TTL)
        if right is not None:
            jobs.release(tx, kit, right, True)

    db.write(work)
