"""The contract suite: the same tests on every store.

A test asks for `store`, `profile` or `conv`; one that opens a store by itself, or a second time,
asks for `place`. What a backend does not provide is declared here and named by the test
(`@pytest.mark.requires("follow")`); such a test is not collected for it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import raw
from raw import Raw

import clew
import servers
from clew.context.tokens import count_text
from clew.testing.clock import FakeClock, seeded_ids
from clew.testing.reference import ReferenceStore

count_text("")
"""A store counts what is appended once the tables are loaded. Loaded by one test in the middle,
what another appended before and after would differ."""

LOG = frozenset({"log"})
ENGINE = frozenset(
    {
        "engine",  # rows in a database: opened again, by several at once, looked at by SQL
        "follow", "usage", "jobs", "presence", "search", "stats", "prune",
        "dead holders",  # a holder whose process is gone is known to be dead
        "frozen type",  # a snapshot's type has no method that writes
    }
)  # fmt: skip
FILE = frozenset(
    {
        "file",  # all of it in one file and those beside it
    }
)
SERVER = frozenset(
    {
        "row locks",  # one waits for another who has the same row, and not for all who write
    }
)
KNOWN = LOG | ENGINE | FILE | SERVER


class Backend(NamedTuple):
    """A store under test, and what it provides."""

    name: str
    provides: frozenset[str]
    place: Callable[[Path], Any]
    """Where an empty store is opened: a path, new each time, or a URL (what was there is gone).
    A folder, in which nothing can be opened, for what has no place."""
    open: Callable[[Any, FakeClock, clew.Limits], Any]
    raw: Raw | None = None


def _reference(_: Any, clock: FakeClock, limits: clew.Limits) -> ReferenceStore:
    return ReferenceStore(clock=clock, ids=seeded_ids(clock), limits=limits)


def _engine(place: Any, clock: FakeClock, limits: clew.Limits) -> clew.Store:
    return clew.open(place, clock=clock, ids=seeded_ids(clock), limits=limits)


def _file(folder: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=folder)) / "store.db"


BACKENDS = (
    Backend("reference", LOG, lambda folder: folder, _reference),
    Backend("sqlite", LOG | ENGINE | FILE, _file, _engine, raw.SQLITE),
    Backend(
        "postgres", LOG | ENGINE | SERVER, lambda _: servers.empty_database(), _engine, raw.POSTGRES
    ),
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        marks = metafunc.definition.iter_markers("requires")
        wanted = LOG.union(*(mark.args for mark in marks))
        unknown = wanted - KNOWN
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
def place(backend: Backend, fast_dir: Path) -> Any:
    """Where an empty store of the backend is opened; the fixture `store` is there."""
    return backend.place(fast_dir)


@pytest.fixture(name="raw")
def _raw(backend: Backend) -> Raw | None:
    """The engine without clew."""
    return backend.raw


@pytest.fixture
def store(
    backend: Backend, place: Any, clock: FakeClock, limits: clew.Limits
) -> Iterator[clew.Store]:
    """An empty store; in the end every invariant holds in it."""
    with backend.open(place, clock, limits) as opened:
        yield opened
        assert opened.verify() == []


@pytest.fixture
def profile(store: clew.Store) -> clew.Profile:
    return store.profile("me")


@pytest.fixture
def conv(profile: clew.Profile) -> clew.Conversation:
    return profile.create()
