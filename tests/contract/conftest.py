"""The contract suite: the same tests on every store.

A test asks for `store`, `profile` or `conv`. What a backend does not provide is declared here and
named by the test (`@pytest.mark.requires("follow")`); such a test is not collected for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import clew
from clew.testing.clock import FakeClock, seeded_ids
from clew.testing.reference import ReferenceStore

LOG = frozenset({"log"})
REST = frozenset(
    {
        "file",  # a file that can be closed, opened again and looked at
        "follow", "usage", "jobs", "presence", "search", "stats", "prune",
        "dead holders",  # a holder whose process is gone is known to be dead
        "frozen type",  # a snapshot's type has no method that writes
    }
)  # fmt: skip


class Backend(NamedTuple):
    """A store under test, and what it provides."""

    name: str
    provides: frozenset[str]
    open: Callable[[Path, FakeClock, clew.Limits], Any]


def _reference(_: Path, clock: FakeClock, limits: clew.Limits) -> ReferenceStore:
    return ReferenceStore(clock=clock, ids=seeded_ids(clock), limits=limits)


def _sqlite(path: Path, clock: FakeClock, limits: clew.Limits) -> clew.Store:
    return clew.open(path / "store.db", clock=clock, ids=seeded_ids(clock), limits=limits)


BACKENDS = (Backend("reference", LOG, _reference), Backend("sqlite", LOG | REST, _sqlite))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        marks = metafunc.definition.iter_markers("requires")
        wanted = LOG.union(*(mark.args for mark in marks))
        unknown = wanted - LOG - REST
        assert not unknown, f"{metafunc.definition.nodeid} requires unknown {unknown}"
        fitting = [backend for backend in BACKENDS if wanted <= backend.provides]
        metafunc.parametrize("backend", fitting, ids=[backend.name for backend in fitting])


@pytest.fixture
def clock() -> FakeClock:
    """Stands still, so that every backend sees the same times."""
    return FakeClock(step=0)


@pytest.fixture
def limits() -> clew.Limits:
    return clew.Limits()


@pytest.fixture
def store(
    backend: Backend, fast_dir: Path, clock: FakeClock, limits: clew.Limits
) -> Iterator[clew.Store]:
    """An empty store; in the end every invariant holds in it."""
    with backend.open(fast_dir, clock, limits) as opened:
        yield opened
        assert opened.verify() == []


@pytest.fixture
def profile(store: clew.Store) -> clew.Profile:
    return store.profile("me")


@pytest.fixture
def conv(profile: clew.Profile) -> clew.Conversation:
    return profile.create()
