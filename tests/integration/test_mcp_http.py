"""Servers of tools over streamable HTTP: killed, restarted, away, refusing."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from mcpkit import call, free_port, lines, run, serving, toolbox, until

from clew.config.values import McpConfig


def at(port: int, **more: object) -> McpConfig:
    return McpConfig(url=f"http://127.0.0.1:{port}/mcp", **more)  # type: ignore[arg-type]


def test_it_is_used_like_one_over_stdio(tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "log"

    async def body() -> None:
        async with toolbox(desk=at(port)) as box:
            names = [spec.name for spec in await box.pin(None)]
            assert "desk__add" in names
            slow = asyncio.create_task(call(box, "desk__slow"))
            await until(lambda: lines(log, "slow"))
            assert (await call(box, "desk__add", '{"a": 2, "b": 3}')).content == "5"
            slow.cancel()
            with pytest.raises(asyncio.CancelledError):
                await slow
            await until(lambda: lines(log, "cancelled"))

    with serving(port, log):
        run(body())


@pytest.mark.parametrize("program", ["desk.py", "sessions.py"])
def test_killed_in_mid_call_and_started_again(program: str, tmp_path: Path) -> None:
    """The call is answered, the tools stay, and the next call finds the new server."""
    port, log = free_port(), tmp_path / "log"

    async def body() -> None:
        async with toolbox(desk=at(port)) as box:
            with serving(port, log, program) as first:
                pinned = await box.pin(None)
                slow = asyncio.create_task(call(box, "desk__slow"))
                await until(lambda: lines(log, "slow"))
                first.kill()
                result = await slow
                assert result.is_error
                assert "the tool server 'desk' cannot be used" in str(result.content)
            away = await call(box, "desk__process")
            assert away.is_error
            assert "its url does not answer" in str(away.content)
            status = {each.name: each for each in await box.status()}["desk__process"]
            assert not status.available
            assert "its url does not answer" in str(status.error)
            assert await box.pin(pinned) == pinned
            with serving(port, log, program) as second:
                assert await box.pin(pinned) == pinned
                assert (await call(box, "desk__process")).content == str(second.pid)

    run(body())


@pytest.mark.parametrize("program", ["desk.py", "sessions.py"])
def test_one_that_was_restarted_between_two_calls_is_not_noticed(program: str) -> None:
    """Also one that keeps sessions, and does not know ours any more."""
    port = free_port()

    async def body() -> None:
        async with toolbox(desk=at(port)) as box:
            with serving(port, program=program) as first:
                assert (await call(box, "desk__process")).content == str(first.pid)
            with serving(port, program=program) as second:
                assert (await call(box, "desk__process")).content == str(second.pid)

    run(body())


def test_one_that_is_away_says_what_helps_and_its_tools_stay() -> None:
    port = free_port()

    async def body() -> None:
        with serving(port):
            async with toolbox(desk=at(port)) as box:
                pinned = await box.pin(None)
        async with toolbox(desk=at(port)) as box:
            assert await box.pin(pinned) == pinned
            result = await call(box, "desk__add", '{"a": 1, "b": 1}')
            assert "desk__add cannot be called now" in str(result.content)
            assert "is it running?" in str(result.content)
            (status,) = await box.status()
            assert (status.name, status.origin, status.available) == ("desk.*", "desk", False)

    run(body())


@contextlib.contextmanager
def refusing(status: int, seen: list[str | None]) -> Iterator[int]:
    """A server that answers all with one status, and notes who asks."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            seen.append(self.headers["Authorization"])
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST = do_DELETE = answer

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "told"),
    [(401, "it refuses who asks (HTTP 401)"), (404, "often ends in /mcp"), (503, "HTTP 503")],
)
def test_a_refusal_is_told_with_its_reason_and_without_the_key(
    status: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESK_KEY", "the-key-itself")
    seen: list[str | None] = []

    async def body(port: int) -> None:
        server = at(port, headers={"Authorization": "Bearer ${DESK_KEY}"})
        async with toolbox(desk=server) as box:
            assert await box.pin(None) == ()
            (found,) = await box.status()
            assert told in str(found.error)
            assert "the-key-itself" not in str(found.error)

    with refusing(status, seen) as port:
        run(body(port))
    assert set(seen) == {"Bearer the-key-itself"}
