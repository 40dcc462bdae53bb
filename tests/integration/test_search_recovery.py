"""Search that could not be used comes back by itself in a process that goes on."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

import clew
from clew.domain.search import SearchQuery
from clew.errors import StoreError
from clew.store.search import backoff, engine
from clew.store.search.backoff import FIRST, LONGEST, Backoff
from clew.store.sqlite_connections import check_version

WAIT = 20.0


def fill(store: clew.Store, count: int) -> clew.Conversation:
    conv = store.profile("me").conversation("k")
    conv.append([clew.user(f"message {n} of the parcel") for n in range(count)])
    return conv


def in_background() -> bool:
    return any(thread.name == "clew-search" for thread in threading.enumerate())


def settled() -> None:
    """The background has ended."""
    deadline = time.monotonic() + WAIT
    while in_background() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert not in_background()


def test_an_index_that_cannot_be_used_costs_time_only(fast_dir: Path) -> None:
    """S41.1 Messages are stored, searches scan the log, and the status says why."""
    path = fast_dir / "a.db"
    (fast_dir / "a.db.search").mkdir()
    with clew.open(path) as store:
        conv = fill(store, 700)
        assert store.profile("me").search("parcel").hits
        settled()
        conv.add(clew.user("a needle"))
        assert len(store.profile("me").search("needle").hits) == 1
        status = store.search_index.status()
        assert status.state == "unusable"
        assert "search file" in str(status.problem)
        assert store.verify() == []


def test_it_comes_back_without_a_restart(fast_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S41.2 S41.3 Whoever searches has it tried again, and then the index is used."""
    monkeypatch.setattr(backoff, "FIRST", 0.01)
    path, place = fast_dir / "a.db", fast_dir / "a.db.search"
    place.mkdir()
    with clew.open(path) as store:
        fill(store, 700)
        store.profile("me").search("parcel")
        settled()
        place.rmdir()
        deadline = time.monotonic() + WAIT
        while store.search_index.status().state != "ready" and time.monotonic() < deadline:
            assert store.profile("me").search("parcel").hits
            time.sleep(0.01)
        status = store.search_index.status()
        assert (status.state, status.rows, status.problem) == ("ready", 700, None)


def test_what_failed_is_left_alone_for_a_while(
    fast_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S41.2 Many searches are one try, maintenance may try at any time, and its success ends the
    waiting."""
    tries: list[int] = []
    real = engine.Engine.catch_up

    def counted(self: engine.Engine, *args: object, **more: object) -> int:
        tries.append(1)
        return real(self, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(engine.Engine, "catch_up", counted)
    path, place = fast_dir / "a.db", fast_dir / "a.db.search"
    place.mkdir()
    with clew.open(path) as store:
        fill(store, 700)
        for _ in range(20):
            store.search_index.query("me", SearchQuery(text="parcel"))
            settled()
        assert len(tries) == 1
        place.rmdir()
        store.search_index.catch_up()
        assert store.search_index.status().state == "ready"


def test_the_pauses_double_up_to_an_hour() -> None:
    """S41.2"""
    now = 1000.0
    retry = Backoff(lambda: now)
    pauses: list[float] = []
    for _ in range(9):
        assert retry.due
        retry.failed()
        start = now
        while not retry.due:
            now += 1
        pauses.append(now - start)
    assert pauses == [FIRST, 120, 240, 480, 960, 1920, LONGEST, LONGEST, LONGEST]
    retry.worked()
    retry.failed()
    now += FIRST
    assert retry.due


def test_nobody_who_writes_touches_the_index(fast_dir: Path) -> None:
    """S41.5 Neither makes it, nor fills it, nor has it filled."""
    with clew.open(fast_dir / "a.db") as store:
        fill(store, 700)
        assert store.search_index.status().state == "missing"
        store.search_index.catch_up()
        before = (fast_dir / "a.db.search").stat().st_mtime_ns
        conv = fill(store, 700)
        conv.cut(conv.message(1300).uid)
        assert (fast_dir / "a.db.search").stat().st_mtime_ns == before
        assert store.search_index.status().behind == 700
        assert not in_background()


@pytest.mark.parametrize("version", ["3.40.1", "3.51.2", "3.52.0"])
def test_an_sqlite_that_loses_commits_is_refused_by_the_name_of_its_interpreter(
    version: str,
) -> None:
    """S41.4 On a machine with several, the remedy is for the one that runs."""
    with pytest.raises(StoreError, match="can lose commits") as caught:
        check_version(version)
    assert sys.executable in str(caught.value)
