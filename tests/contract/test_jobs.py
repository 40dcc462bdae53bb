"""Jobs: housekeeping that runs once at a time."""

from __future__ import annotations

import threading

import pytest

import clew
from clew.testing.clock import FakeClock

pytestmark = pytest.mark.requires("jobs")
TTL = 60_000_000


def test_one_holder_at_a_time(store: clew.Store) -> None:
    right = store.claim_job("prune")
    assert right is not None
    assert store.claim_job("prune") is None
    assert store.claim_job("other") is not None
    assert store.release_job(right)
    again = store.claim_job("prune")
    assert again is not None
    assert again.fence == right.fence + 1


def test_a_silent_holder_loses_the_job(store: clew.Store, clock: FakeClock) -> None:
    old = store.claim_job("prune", ttl=TTL)
    assert old is not None
    clock.advance(TTL - 1)
    store.renew_job(old)
    clock.advance(TTL - 1)
    assert store.claim_job("prune", ttl=TTL) is None
    clock.advance(1)
    new = store.claim_job("prune", ttl=TTL)
    assert new is not None
    with pytest.raises(clew.RightLost):
        store.renew_job(old)
    assert not store.release_job(old)
    assert store.release_job(new)


def test_a_job_is_not_due_before_its_time(store: clew.Store, clock: FakeClock) -> None:
    def claim() -> clew.store.jobs.JobRight | None:  # pyright: ignore
        return store.claim_job("daily", every=100)

    right = claim()
    assert right is not None
    store.release_job(right, done=False)
    right = claim()
    assert right is not None  # it was given back undone
    store.release_job(right)
    clock.advance(99)
    assert claim() is None
    clock.advance(1)
    assert claim() is not None
    (job,) = store.jobs()
    assert (job.name, job.holder is not None) == ("daily", True)


def test_a_clock_that_went_back_does_not_stop_a_job(store: clew.Store, clock: FakeClock) -> None:
    right = store.claim_job("daily", every=100)
    assert right is not None
    store.release_job(right)
    clock.advance(-1000)
    assert store.claim_job("daily", every=100) is not None


def test_of_many_claimers_one_gets_the_job(store: clew.Store) -> None:
    got: list[object] = []
    start = threading.Barrier(4)

    def claim() -> None:
        start.wait()
        got.append(store.claim_job("prune"))

    threads = [threading.Thread(target=claim) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(right is not None for right in got) == 1


@pytest.mark.requires("search")
def test_maintenance_may_be_called_at_any_time(store: clew.Store) -> None:
    store.profile("me").create().append([clew.user("a")])
    store.maintain()
    store.maintain()
    assert all(job.holder is None for job in store.jobs())
