"""Messages for a server that is away, by threads and by tasks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from proxy import Cut, Proxy

import clew
import clew.aio
from clew.store.aio.store import AsyncStore
from clew.store.opening import open_parts
from clew.store.spool.bringing import PAUSE
from clew.store.store import Store
from clew.testing.postgres import Server
from servers import WAIT, until


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server.start() as server:
        yield server


@pytest.fixture
def url(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("CLEW_HOME", str(tmp_path))
    return server.create_database()


def said(conv: clew.Conversation) -> list[str]:
    return [p.text for m in conv.messages() for p in m.parts if isinstance(p, clew.Text)]


def impatient(url: str) -> Store:
    return Store(open_parts(url, None, None, None, patience=0.3))


def test_a_server_that_is_away_and_comes_back(server: Server, url: str, tmp_path: Path) -> None:
    """S40.8 Unavailable: accepted after the wait, at once while it is known to be away, and in the
    store with the next write, in order."""
    with impatient(url) as store:
        conv = store.profile("p").create()
        conv.append([clew.user("first")])
        (file,) = (tmp_path / "spool").iterdir()
        assert file.stat().st_size == 16 << 20
        server.kill()
        try:
            kept = [conv.append([clew.user(f"m{n}")]) for n in range(5)]
            assert all(outcome.spooled for outcome in kept)
            assert (store.health().state, store.health().spooled) == ("spooling", 5)
            with pytest.raises(clew.Unavailable):
                conv.set_title("t")
        finally:
            server.restart()
        until(lambda: conv.append([clew.user("more")]).spooled is None)
        log = said(conv)
        assert log[:6] == ["first", *(f"m{n}" for n in range(5))]
        assert set(log[6:]) == {"more"}
        assert store.health().state == "ok"
        assert store.verify() == []
    assert not file.exists()
    assert PAUSE < WAIT


def test_a_commit_in_doubt_that_is_spooled_is_stored_once(url: str) -> None:
    """S40.5 The server had the COMMIT and its answer was lost, for good: found by its uid."""
    given_up = threading.Event()
    with Proxy(url, given_up.wait) as proxy, impatient(proxy.url) as store:
        conv = store.profile("p").create()
        conv.append([clew.user("first")])
        proxy.arm(Cut("commit", "late"))
        outcome = conv.append([clew.user("in doubt")])
        given_up.set()
        assert proxy.done.wait(WAIT)
        assert outcome.spooled
        until(lambda: conv.append([clew.user("next")]).spooled is None)
        log = said(conv)
        assert log[:2] == ["first", "in doubt"]
        assert log.count("in doubt") == 1
        assert store.verify() == []


def test_a_late_message_of_a_task_is_spooled(tmp_path: Path) -> None:
    """S51.3 From asyncio: the same, the loop goes on meanwhile."""

    async def run() -> None:
        store = await clew.aio.open(tmp_path / "a.db")
        conv = await store.profile("p").create()
        await conv.append([clew.user("first")])
        turn = await conv.begin_turn([clew.user("ask")])
        await store.close()
        with pytest.raises(clew.StoreClosed):
            await conv.set_title("t")
        with pytest.raises(clew.Spooled):
            await turn.finish([clew.assistant("answer")])  # type: ignore[union-attr]
        late = await asyncio.gather(*(conv.append([clew.user(f"m{n}")]) for n in range(20)))
        assert all(outcome.spooled for outcome in late)
        async with clew.aio.open(tmp_path / "a.db") as again:
            assert isinstance(again, AsyncStore)
            assert (await again.health()).spooled == 21
            back = await again.profile("p").open(conv.id)
            await back.append([clew.user("next")])
            log = [m async for m in back.messages()]
            texts = [p.text for m in log for p in m.parts if isinstance(p, clew.Text)]
            assert texts[:3] == ["first", "ask", "answer"]
            assert sorted(texts[3:-1]) == sorted(f"m{n}" for n in range(20))
            assert texts[-1] == "next"
            assert (await again.health()).state == "ok"
            assert await again.verify() == []

    asyncio.run(run())


def test_a_cut_hides_what_was_spooled_before_it(tmp_path: Path) -> None:
    """S40.9 A rewind: what waited is in the log first, and hidden with the rest."""
    with clew.open(tmp_path / "a.db") as store:
        conv = store.profile("p").create()
        first = conv.append([clew.user("first")])
    assert conv.append([clew.user("late")]).spooled
    with clew.open(tmp_path / "a.db") as store:
        back = store.profile("p").open(conv.id)
        back.cut(first.uids[0])
        assert said(back) == []
        assert back.info().head == 2
        assert store.health().spooled == 0
