"""Opening a store, and what is done to it as a whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from clew.clock import Clock
from clew.config import Limits
from clew.domain.conversations import ConversationSummary, ListFilter, Page
from clew.domain.health import Health
from clew.domain.notes import Job, JobRight
from clew.domain.retention import Policy, Pruned
from clew.errors import InputError
from clew.ids import Ids
from clew.store import (
    backup,
    bindings,
    deletion,
    dictionary,
    erasure_run,
    jobs,
    listing,
    retention,
)
from clew.store.database import Database
from clew.store.health import bring_in_all, health_of
from clew.store.holders import new_holder
from clew.store.opening import Parts, open_parts
from clew.store.profile import Profile
from clew.store.search import Search
from clew.store.spool.bringing import Report
from clew.store.spool.place import spool_of
from clew.store.verify import Problem, verify

JOB_TTL = 60_000_000
"""Microseconds."""
INBOUND_DAYS = 30
DEFAULT_POLICY = Policy()


class Store:
    """An open store. One per process and file is enough; threads and tasks may share it."""

    def __init__(self, parts: Parts, *, spool: bool = True) -> None:
        size = parts.kit.limits.spool if spool else 0
        kept = spool_of(parts.place, parts.backend.meta.store_id, size)
        self._db = Database(parts.backend, parts.kit, kept)
        self._backend = parts.backend
        self._search = parts.search
        self._place = parts.place

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.where!r})"

    @property
    def where(self) -> str:
        """The path of the file, or the URL of the database without password and parameters."""
        return str(self._place)

    @property
    def path(self) -> Path:
        """The file. InputError for a store that is none."""
        if isinstance(self._place, Path):
            return self._place
        raise InputError(f"{self._place} is a database of a server, which has no path")

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def close(self) -> None:
        """Release files. Work that was accepted is durable already. Closing twice is harmless.
        A message that comes later goes to the spool; any other late work is StoreClosed."""
        try:
            self._search.close()
        finally:
            try:
                self._backend.close()
            finally:
                self._db.close()

    def profile(self, name: str) -> Profile:
        """A profile; it exists as soon as it has a conversation."""
        return Profile(self._db, self._search, name)

    # ------------------------------------------------------------------ health

    def health(self) -> Health:
        """How the store is: ok, spooling or stopped, why, and what waits in the spool. Asks
        neither the store's disk nor its server."""
        return health_of(self._db)

    def bring_in(self) -> Report:
        """Bring in what is in the spool, also what is held for a person where that is possible by
        now; every write does it for the rest. Never raises for what stays: `stopped` says why."""
        return bring_in_all(self._db)

    # ------------------------------------------------------------------ administration

    def profiles(self) -> tuple[tuple[str, int], ...]:
        """(name, conversations) of every profile."""
        rows = self._db.read(lambda tx: tx.rows("conversation_profiles"))
        return tuple((row[0], row[1]) for row in rows)

    def list_all(
        self, want: ListFilter | None = None, *, limit: int = 50, cursor: str | None = None
    ) -> Page[ConversationSummary]:
        """Conversations of every profile, newest activity first."""
        self._db.kit.limits.check_page(limit)
        want = want or ListFilter()
        return self._db.read(lambda tx: listing.list_page(tx, None, want, limit, cursor))

    @property
    def search_index(self) -> Search:
        """The search file: its state, and catching up by hand."""
        return self._search

    def verify(self, progress: Callable[[int, int], None] | None = None) -> list[Problem]:
        """Check every invariant of docs/invariants.md; an empty list when all hold."""
        return verify(self._db, progress)

    def backup(self, dest: str | Path, progress: Callable[[int, int], None] | None = None) -> Path:
        """Copy the store to the new file `dest` while it is in use, and read the copy back.

        `progress` counts pages. The way back is `clew.store.backup.restore`. Raises InputError when
        `dest` exists or the store is on a server (docs/operating/scale.md), StoreFull, Corrupt, and
        what has stopped this store: Quarantined, StoreReplaced, StoreClosed."""
        path, trouble = self.path, self._backend.trouble
        if trouble is not None:
            raise trouble
        self._db.read(lambda tx: tx.row("stamp_read"))  # raises for one that is closed or replaced
        return backup.backup(path, dest, progress=progress, stamp=self._backend.meta.stamp)

    def claim_job(self, name: str, *, ttl: int = JOB_TTL, every: int = 0) -> JobRight | None:
        """Take the right to a job that must run once at a time; None while another holds it, or
        when it was done less than `every` microseconds ago."""
        holder = new_holder()
        return self._db.write(lambda tx: jobs.claim(tx, self._db.kit, name, holder, ttl, every))

    def renew_job(self, right: JobRight) -> None:
        """A sign of life; RightLost when another has taken the job."""
        self._db.write(lambda tx: jobs.renew(tx, self._db.kit, right))

    def release_job(self, right: JobRight, *, done: bool = True) -> bool:
        """Give a job back; False when it was lost meanwhile."""
        return self._db.write(lambda tx: jobs.release(tx, self._db.kit, right, done))

    def jobs(self) -> tuple[Job, ...]:
        """All jobs by name."""
        return self._db.read(jobs.all_of)

    def prune(
        self, policy: Policy | None = None, *, dry_run: bool = False, profile: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Pruned:  # fmt: skip
        """Close, bin and delete at once what a policy says (None: the default one, of what machines
        made), one conversation a transaction, and give the space back in small steps; or, with
        `dry_run`, only say what would go. `progress` counts deletions."""
        return retention.prune(
            self._db, self._search, policy or Policy(), profile, dry_run, progress
        )

    def announced(self, policy: Policy) -> int | None:
        """When a daily run announced this policy (microseconds); None: not yet."""
        return self._db.read(lambda tx: retention.announced(tx, policy))

    def maintain(self, policy: Policy | None = DEFAULT_POLICY) -> Pruned | None:
        """Housekeeping, safe at any time and in several processes: ends erasures and deletions
        that a crash interrupted, forgets old deliveries, trains the compression dictionary once
        there are enough messages, brings the search file up to date, and once a day does what the
        retention policy says (docs/operating/retention.md; None: nothing). Gives what that run did;
        None if it was not its time."""
        right = self.claim_job("maintain")
        if right is None:
            return None
        done = False
        try:
            erasure_run.resume(self._backend, self._db.kit, self._db.spool, self._search)
            for no in self._db.read(deletion.pending):
                deletion.finish(self._backend, self._db.kit, no)
            before = self._db.kit.clock.now() - INBOUND_DAYS * 86_400_000_000
            self._db.write(lambda tx: bindings.expire_inbound(tx, before))
            dictionary.train_if_due(self._backend, self._db.kit)
            self._search.catch_up()
            pruned = None
            if policy is not None:
                pruned = retention.daily(self._db, self._search, policy)
            done = True
            return pruned
        finally:
            self.release_job(right, done=done)


def open_store(
    store: str | Path | None = None, *, clock: Clock | None = None, ids: Ids | None = None,
    limits: Limits | None = None, spool: bool = True,
) -> Store:  # fmt: skip
    """Open a store: the path of a file, made if it is not there, or a postgresql:// URL.

    Without one: CLEW_STORE, else clew.db in CLEW_HOME, else ~/.clew/clew.db. Raises StoreError
    when it is not a store, Unavailable when the server cannot be reached, SchemaTooNew when a newer
    clew wrote it. `spool`: keep messages beside the store while it cannot take them (16 MiB are
    reserved, `Limits.spool`); without, they are refused.
    """
    return Store(open_parts(store, clock, ids, limits), spool=spool)
