"""Running an erasure to its end: rows, keys, dictionary, search index, files, proof.

What is to be erased is written down before the first step and forgotten after the proof, so an
erasure that a crash interrupts is gone on with by the next one and by `Store.maintain`. One at a
time is at it: who has the job. All steps say the same when they run again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct

from clew.domain.erasure import Erased, ErasurePlan, Target
from clew.domain.notes import JobRight
from clew.errors import Busy
from clew.store import (
    aliases,
    approvals,
    bindings,
    cuts,
    erasure_dictionary,
    erasure_spool,
    jobs,
    outbox,
)
from clew.store import presence as beats
from clew.store.backend import Backend, Transaction
from clew.store.database import Database
from clew.store.erasure import EraseStep, Gathered
from clew.store.erasure_plan import Planner
from clew.store.erasure_proof import prove
from clew.store.holders import new_holder
from clew.store.kit import Kit
from clew.store.search import Search
from clew.store.spool.spool import Spool

PREFIX = "erasure:"
JOB, TTL = "erasure", 600_000_000
PAGE = 200
Progress = Callable[[int, int], None]


class Pending(Struct, frozen=True):
    """An erasure that has begun. Without a plan its rows are gone, and the files are left to do."""

    profile: str
    plan: ErasurePlan | None = None


def plan(
    backend: Backend, kit: Kit, profile: str, messages: Mapping[str, Sequence[int]] | None,
    conversations: Sequence[str], person: str | None, sub_agents: bool,
) -> ErasurePlan:  # fmt: skip
    """What it would take: see `Profile.plan_erasure`."""
    planner = Planner(Database(backend, kit), profile, sub_agents)
    for conversation, seqs in (messages or {}).items():
        planner.messages(conversation, seqs)
    for conversation in conversations:
        planner.whole(conversation)
    return planner.plan() if person is None else planner.person(person)


def erase(
    backend: Backend, kit: Kit, spool: Spool | None, search: Search, profile: str,
    plan: ErasurePlan, progress: Progress | None = None,
) -> Erased:  # fmt: skip
    """Do all of it. Busy while another process is at one."""
    db = Database(backend, kit, spool)
    right = _claim(db)
    if right is None:
        raise Busy("another process is erasing; wait until it is done, and give the call again")
    try:
        _go_on(db, search)
        name = PREFIX + db.kit.ids.uid().hex()
        short = _short(plan)
        pending = Pending(profile, short)
        db.write(lambda tx: tx.run("meta_erasure_insert", name=name, value=_text(pending)))
        return _finish(db, search, name, Pending(profile, plan), progress)
    finally:
        db.write(lambda tx: jobs.release(tx, db.kit, right, True))


def resume(backend: Backend, kit: Kit, spool: Spool | None, search: Search) -> None:
    """Go on with what was interrupted, unless another process is at it."""
    db = Database(backend, kit, spool)
    if not db.read(lambda tx: tx.rows("meta_erasure_all")):
        return
    right = _claim(db)
    if right is not None:
        try:
            _go_on(db, search)
        finally:
            db.write(lambda tx: jobs.release(tx, db.kit, right, True))


def _claim(db: Database) -> JobRight | None:
    holder = new_holder()
    return db.write(lambda tx: jobs.claim(tx, db.kit, JOB, holder, TTL))


def _go_on(db: Database, search: Search) -> None:
    for name, value in db.read(lambda tx: tx.rows("meta_erasure_all")):
        pending = msgspec.json.decode(value, type=Pending)
        _finish(db, search, name, pending, None, again=True)


def _finish(
    db: Database, search: Search, name: str, pending: Pending, progress: Progress | None,
    again: bool = False,
) -> Erased:  # fmt: skip
    """`again`: some of it was done before, and nobody knows what that said: what can only be found
    by looking for it is done anew in any case."""
    gathered, keys = Gathered(), 0
    left: tuple[str, ...] = ()
    if pending.plan is not None:
        keys = _rows(db, pending.profile, pending.plan, gathered, progress)
        left = pending.plan.left
        left += tuple(erasure_spool.take_out(db, pending.profile, pending.plan, gathered))
        done = _text(Pending(pending.profile))  # it names the person no more
        db.write(lambda tx: tx.run("meta_erasure_update", name=name, value=done))
    renewed = erasure_dictionary.renew(db, None if again else gathered.texts)
    search.scrub()
    left += db.backend.scrub()
    proof = prove(db, search, gathered)
    db.write(lambda tx: tx.run("meta_erasure_delete", name=name))
    return Erased(
        messages=len(gathered.messages), conversations=len({no for no, _ in gathered.messages}),
        compactions=len(gathered.compactions), blobs=len(gathered.blobs), keys=keys,
        dictionary=renewed, proof=proof, left=left,
    )  # fmt: skip


def _rows(
    db: Database, profile: str, plan: ErasurePlan, gathered: Gathered, progress: Progress | None
) -> int:
    for target in plan.targets:
        step = EraseStep(db.kit, profile, target, gathered, plan.person)
        more = True
        while more:
            more = db.write(step)
            if progress is not None:
                progress(len(gathered.messages), max(plan.messages, len(gathered.messages)))
    if plan.person is not None:
        gathered.text(plan.person)
        _person(db, profile, plan.person, gathered)
    for table, source, key in plan.keys:
        gathered.text(*key.split("\x1f"))
        db.write(lambda tx, at=(table, source, key): _key(tx, profile, *at))
    return len(plan.keys)


def _key(tx: Transaction, profile: str, table: str, source: str, key: str) -> None:
    """Locked before any conversation, as everywhere."""
    if table == "binding":
        bindings.forget(tx, profile, source, key)
    elif table == "alias":
        aliases.forget(tx, profile, source, key)
    else:
        account, _, name = key.partition("\x1f")
        bindings.forget_delivery(tx, profile, source, account, name)


def _person(db: Database, profile: str, person: str, gathered: Gathered) -> None:
    """Where a person is named beside messages: who allowed a call, who cut, who is present, where
    a reply went."""
    after = 0
    while page := db.read(
        lambda tx, after=after: tx.rows("conversation_all", no=after, limit=PAGE)
    ):
        after = page[-1][0]
        mine = [no for no, _, owner in page if owner == profile]
        db.write(lambda tx, mine=mine: _unname(tx, mine, person))


def _unname(tx: Transaction, numbers: list[int], person: str) -> None:
    for no in numbers:
        if tx.row("conversation_lock", no=no) is None:
            continue
        approvals.erase(tx, no, person)
        cuts.erase(tx, no, person)
        beats.leave(tx, no, person)
        outbox.erase_to(tx, no, person)


def _short(plan: ErasurePlan) -> ErasurePlan:
    """Without the seqs that a step finds by itself: there may be very many."""
    targets = tuple(
        Target(t.conversation, t.whole, () if t.whole or t.why == "author" else t.seqs, t.why)
        for t in plan.targets
    )
    return ErasurePlan(person=plan.person, targets=targets, keys=plan.keys, left=plan.left)


def _text(pending: Pending) -> str:
    return msgspec.json.encode(pending).decode()
