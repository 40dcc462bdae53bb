"""How a store is, for who watches it; and bringing its spool in because a person asks for that."""

from __future__ import annotations

from collections.abc import Sequence

from clew.domain.health import Health
from clew.errors import InputError, StoreError
from clew.store.database import Database
from clew.store.spool.bringing import Report, bring_in
from clew.store.spool.record import HELD
from clew.store.spool.spool import Contents


def health_of(db: Database) -> Health:
    """As Store.health."""
    trouble: StoreError | None = db.backend.trouble
    spool = db.spool
    if spool is None:
        return Health(
            state="ok" if trouble is None else "stopped",
            cause=None if trouble is None else str(trouble), recovered=db.recovered,
        )  # fmt: skip
    problem: OSError | None = spool.problem
    found = Contents()
    try:
        found = spool.contents()
    except OSError as error:
        problem = error
    spooled = found.counted(("pending",))
    cause = str(trouble) if trouble else _cause(found) if spooled else None
    return Health(
        state="stopped" if trouble else "spooling" if spooled else "ok", cause=cause,
        spooled=spooled, held=found.counted(HELD), recovered=db.recovered,
        damaged=sum(entry.state == "damaged" for entry in found.entries),
        spool=str(spool.path), room=max(0, found.room - found.used),
        spool_error=None if problem is None else (problem.strerror or str(problem)),
    )  # fmt: skip


def _cause(found: Contents) -> str | None:
    """Why the newest message went to the spool."""
    waiting: Sequence[str] = [e.record.cause for e in found.entries if e.record]
    return waiting[-1] if waiting else None


def bring_in_all(db: Database) -> Report:
    """Bring in all of the spool, what is held too where that is possible now."""
    if db.spool is None:
        raise InputError("this store was opened without a spool")
    return bring_in(db.backend, db.kit, db.spool, held=True, wait=60.0)
