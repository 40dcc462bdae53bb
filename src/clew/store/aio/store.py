"""What store/store.py is, for asyncio.

Generated from that by scripts/aio.py; a change belongs there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from clew.domain.conversations import ConversationSummary, ListFilter, Page
from clew.domain.health import Health
from clew.domain.notes import Job, JobRight
from clew.domain.retention import Policy, Pruned
from clew.errors import InputError
from clew.store import backup, bindings, deletion, dictionary, erasure_run, jobs, listing, retention
from clew.store.aio.database import AsyncDatabase, hop
from clew.store.aio.profile import AsyncProfile
from clew.store.health import bring_in_all, health_of
from clew.store.holders import new_holder
from clew.store.opening import Parts
from clew.store.search import Search
from clew.store.spool.bringing import Report
from clew.store.spool.place import spool_of
from clew.store.store import DEFAULT_POLICY, INBOUND_DAYS, JOB_TTL
from clew.store.verify import Problem, verify


class AsyncStore:
    """An open store. One per process and file is enough; threads and tasks may share it."""

    def __init__(self, parts: Parts, *, spool: bool = True) -> None:
        size = parts.kit.limits.spool if spool else 0
        kept = spool_of(parts.place, parts.backend.meta.store_id, size)
        self._db = AsyncDatabase(parts.backend, parts.kit, kept)
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

    async def __aenter__(self) -> AsyncStore:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Release files. Work that was accepted is durable already. Closing twice is harmless.
        A message that comes later goes to the spool; any other late work is StoreClosed."""
        try:
            await hop(self._search.close)
        finally:
            try:
                await hop(self._backend.close)
            finally:
                await hop(self._db.close)

    def profile(self, name: str) -> AsyncProfile:
        """A profile; it exists as soon as it has a conversation."""
        return AsyncProfile(self._db, self._search, name)

    async def health(self) -> Health:
        """How the store is: ok, spooling or stopped, why, and what waits in the spool. Asks
        neither the store's disk nor its server."""
        return await hop(health_of, self._db.blocking)

    async def bring_in(self) -> Report:
        """Bring in what is in the spool, also what is held for a person where that is possible by
        now; every write does it for the rest. Never raises for what stays: `stopped` says why."""
        return await hop(bring_in_all, self._db.blocking)

    async def profiles(self) -> tuple[tuple[str, int], ...]:
        """(name, conversations) of every profile."""
        rows = await self._db.read(lambda tx: tx.rows("conversation_profiles"))
        return tuple((row[0], row[1]) for row in rows)

    async def list_all(
        self, want: ListFilter | None = None, *, limit: int = 50, cursor: str | None = None
    ) -> Page[ConversationSummary]:
        """Conversations of every profile, newest activity first."""
        self._db.kit.limits.check_page(limit)
        want = want or ListFilter()
        return await self._db.read(lambda tx: listing.list_page(tx, None, want, limit, cursor))

    @property
    def search_index(self) -> Search:
        """The search file: its state, and catching up by hand."""
        return self._search

    async def verify(self, progress: Callable[[int, int], None] | None = None) -> list[Problem]:
        """Check every invariant of docs/invariants.md; an empty list when all hold."""
        return await hop(verify, self._db.blocking, progress)

    async def backup(
        self, dest: str | Path, progress: Callable[[int, int], None] | None = None
    ) -> Path:
        """Copy the store to the new file `dest` while it is in use, and read the copy back.

        `progress` counts pages. The way back is `clew.store.backup.restore`. Raises InputError when
        `dest` exists or the store is on a server (docs/operating/scale.md), StoreFull, Corrupt, and
        what has stopped this store: Quarantined, StoreReplaced, StoreClosed."""
        path, trouble = (self.path, self._backend.trouble)
        if trouble is not None:
            raise trouble
        await self._db.read(lambda tx: tx.row("stamp_read"))
        return await hop(
            backup.backup, path, dest, progress=progress, stamp=self._backend.meta.stamp
        )

    async def claim_job(self, name: str, *, ttl: int = JOB_TTL, every: int = 0) -> JobRight | None:
        """Take the right to a job that must run once at a time; None while another holds it, or
        when it was done less than `every` microseconds ago."""
        holder = new_holder()
        return await self._db.write(
            lambda tx: jobs.claim(tx, self._db.kit, name, holder, ttl, every)
        )

    async def renew_job(self, right: JobRight) -> None:
        """A sign of life; RightLost when another has taken the job."""
        await self._db.write(lambda tx: jobs.renew(tx, self._db.kit, right))

    async def release_job(self, right: JobRight, *, done: bool = True) -> bool:
        """Give a job back; False when it was lost meanwhile."""
        return await self._db.write(lambda tx: jobs.release(tx, self._db.kit, right, done))

    async def jobs(self) -> tuple[Job, ...]:
        """All jobs by name."""
        return await self._db.read(jobs.all_of)

    async def prune(
        self,
        policy: Policy | None = None,
        *,
        dry_run: bool = False,
        profile: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Pruned:
        """Close, bin and delete at once what a policy says (None: the default one, of what machines
        made), one conversation a transaction, and give the space back in small steps; or, with
        `dry_run`, only say what would go. `progress` counts deletions."""
        return await hop(
            retention.prune,
            self._db.blocking,
            self._search,
            policy or Policy(),
            profile,
            dry_run,
            progress,
        )

    async def announced(self, policy: Policy) -> int | None:
        """When a daily run announced this policy (microseconds); None: not yet."""
        return await self._db.read(lambda tx: retention.announced(tx, policy))

    async def maintain(self, policy: Policy | None = DEFAULT_POLICY) -> Pruned | None:
        """Housekeeping, safe at any time and in several processes: ends erasures and deletions
        that a crash interrupted, forgets old deliveries, trains the compression dictionary once
        there are enough messages, brings the search file up to date, and once a day does what the
        retention policy says (docs/operating/retention.md; None: nothing). Gives what that run did;
        None if it was not its time."""
        right = await self.claim_job("maintain")
        if right is None:
            return None
        done = False
        try:
            await hop(erasure_run.resume, self._backend, self._db.kit, self._db.spool, self._search)
            for no in await self._db.read(deletion.pending):
                await hop(deletion.finish, self._backend, self._db.kit, no)
            before = self._db.kit.clock.now() - INBOUND_DAYS * 86400000000
            await self._db.write(lambda tx: bindings.expire_inbound(tx, before))
            await hop(dictionary.train_if_due, self._backend, self._db.kit)
            await hop(self._search.catch_up)
            pruned = None
            if policy is not None:
                pruned = await hop(retention.daily, self._db.blocking, self._search, policy)
            done = True
            return pruned
        finally:
            await self.release_job(right, done=done)
