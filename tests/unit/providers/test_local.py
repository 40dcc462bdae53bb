"""Servers on this machine, found by what they answer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from clew.providers.local import PORTS, LocalServer, find, recognised
from provider_server import ProviderServer

KINDS: tuple[Any, ...] = ("ollama", "llamacpp", "lmstudio", "vllm")
PATIENCE = 10.0
"""Seconds: how quick they are on a busy machine is not tested here."""


@pytest.fixture
def deaf() -> Iterator[int]:
    """A port that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.fixture
def closed() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def test_each_is_known_by_its_answers_on_any_port() -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(ProviderServer(imitate=kind, window=4096)) for kind in KINDS]
        found = asyncio.run(find([server.port for server in servers], PATIENCE))
    assert found == tuple(
        LocalServer(kind, server.base_url, ("test-model",))
        for kind, server in zip(KINDS, servers, strict=True)
    )


@pytest.mark.parametrize("imitate", ["stranger", None, "openrouter"])
def test_another_server_is_not_taken_for_one(imitate: Any) -> None:
    with ProviderServer(imitate=imitate) as server:
        assert asyncio.run(find([server.port], PATIENCE)) == ()
    assert server.others


def test_no_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with ProviderServer() as proxy, ProviderServer(imitate="ollama") as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert [found.kind for found in asyncio.run(find([server.port], PATIENCE))] == ["ollama"]
        assert not proxy.others


def test_one_that_never_answers_holds_up_nobody(deaf: int, closed: int) -> None:
    """All are asked at once, and together they have so long."""
    with ProviderServer(imitate="ollama") as server:

        async def run() -> tuple[LocalServer, ...]:
            async with asyncio.timeout(20):
                return await find([deaf, closed, server.port], 1.0)

        found = asyncio.run(run())
    assert [each.kind for each in found] == ["ollama"]


def test_nobody_there(closed: int) -> None:
    assert asyncio.run(find([closed], PATIENCE)) == ()


def test_one_that_answers_nonsense() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n\xff\xfe[1, 2")
        writer.close()

    async def run() -> tuple[LocalServer, ...]:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            return await find([server.sockets[0].getsockname()[1]], PATIENCE)

    assert asyncio.run(run()) == ()


def test_those_that_imitate_ollama() -> None:
    """llama.cpp answers Ollama's list as well."""
    tags = {"models": [{"name": "m"}]}
    listed = {"data": [{"id": "m", "owned_by": "llamacpp"}]}
    found = recognised({"/api/tags": tags, "/v1/models": listed}, 8080)
    assert found is not None
    assert found.kind == "llamacpp"
    empty = recognised({"/api/tags": {"models": []}}, 11434)
    assert empty == LocalServer("ollama", "http://127.0.0.1:11434/v1", ())


def test_lm_studio_names_what_it_has_loaded_first() -> None:
    rows = [
        {"id": "big", "type": "llm", "state": "not-loaded"},
        {"id": "embed", "type": "embeddings", "state": "loaded"},
        {"id": "small", "type": "vlm", "state": "loaded"},
    ]
    found = recognised({"/api/v0/models": {"data": rows}}, 1234)
    assert found is not None
    assert found.models == ("small", "big")


def test_the_usual_ports() -> None:
    assert PORTS == {"ollama": 11434, "llamacpp": 8080, "lmstudio": 1234, "vllm": 8000}
