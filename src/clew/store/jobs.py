"""Jobs: housekeeping that must run once at a time, by the same rule as a turn's right."""

from __future__ import annotations

from clew.domain.notes import Job, JobRight
from clew.errors import RightLost
from clew.store.backend import Transaction
from clew.store.kit import Kit
from clew.store.rights import is_free


def claim(
    tx: Transaction, kit: Kit, name: str, holder: str, ttl: int, every: int = 0
) -> JobRight | None:
    """Take the right to a job; None while another holds it or it was done `every` micros ago.

    `holder` is new for each claim, so a claim that finds itself has run before."""
    tx.run("job_insert", name=kit.key("job", name))
    row = tx.row("job_lock", name=name)
    assert row is not None
    held_by, fence, at, held_ttl, done_at, clock = row
    now = kit.store_time(clock)
    if held_by == holder:
        return JobRight(name, fence, holder)
    if not is_free(held_by, at, held_ttl, now, shared=clock is not None):
        return None
    if done_at is not None and 0 <= now - done_at < every:
        return None
    tx.run("job_take", name=name, holder=holder, at=now, ttl=ttl)
    return JobRight(name, fence + 1, holder)


def renew(tx: Transaction, kit: Kit, right: JobRight) -> None:
    """A sign of life; RightLost when another has the job."""
    row = tx.row("job_lock", name=right.name)
    now = kit.store_time(row[5] if row else None)
    if not tx.changed("job_renew", name=right.name, fence=right.fence, at=now):
        raise RightLost(f"job {right.name}", right.fence)


def release(tx: Transaction, kit: Kit, right: JobRight, done: bool) -> bool:
    """Give the right back, noting when the job was done; False when it was lost meanwhile."""
    row = tx.row("job_lock", name=right.name)
    if row is None:
        return False
    done_at = kit.store_time(row[5]) if done else None
    if tx.changed("job_release", name=right.name, fence=right.fence, done_at=done_at):
        return True
    return row[:2] == (None, right.fence)  # given back before


def forget(tx: Transaction, prefix: str, name: str) -> None:
    """Forget all jobs whose names begin so, but this one."""
    tx.run("job_forget", prefix=prefix, size=len(prefix), name=name)


def all_of(tx: Transaction) -> tuple[Job, ...]:
    return tuple(Job(*row) for row in tx.rows("job_all"))
