"""Servers of models on this machine: Ollama, llama.cpp, LM Studio and vLLM, on their usual ports.

Each is told by what it answers, never by its port: another web server may have that. The addresses
are asked without a library, so that no proxy of the environment is in between, and all at once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from clew.providers.openai_fields import Json, object_of, objects_of

LocalKind = Literal["ollama", "llamacpp", "lmstudio", "vllm"]
PORTS: Mapping[LocalKind, int] = {"ollama": 11434, "llamacpp": 8080, "lmstudio": 1234, "vllm": 8000}
HOST = "127.0.0.1"
PATIENCE = 0.3
"""Seconds for all of them together."""
MOST_BYTES = 4_000_000
PATHS = ("/v1/models", "/props", "/api/v0/models", "/api/tags")


class LocalServer(Struct, frozen=True):
    """A server that runs. `base_url` is that of its Chat Completions; `models` may be empty."""

    kind: LocalKind
    base_url: str
    models: tuple[str, ...] = ()


async def find(
    ports: Sequence[int] = tuple(PORTS.values()), patience: float = PATIENCE
) -> tuple[LocalServer, ...]:
    """The servers that answer within so many seconds, in the order of their ports."""
    asked = {
        asyncio.create_task(_get(port, path)): (port, path) for port in ports for path in PATHS
    }
    done, late = await asyncio.wait(asked, timeout=patience)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    answers: dict[int, dict[str, Json]] = {port: {} for port in ports}
    for task in done:
        port, path = asked[task]
        answers[port][path] = task.result()
    found = (recognised(answers[port], port) for port in ports)
    return tuple(server for server in found if server is not None)


def recognised(answers: Mapping[str, Json], port: int) -> LocalServer | None:
    """Which server this is, by what it answers at `PATHS`. Several imitate
    Ollama: it comes last."""
    listed = _rows(answers.get("/v1/models"), "data")
    studio = _rows(answers.get("/api/v0/models"), "data")
    tags = _rows(answers.get("/api/tags"), "models")
    url = f"http://{HOST}:{port}/v1"
    owners = {row.get("owned_by") for row in listed}
    if "default_generation_settings" in answers.get("/props", {}) or "llamacpp" in owners:
        return LocalServer("llamacpp", url, _names(listed, "id"))
    if studio and all("state" in row or "max_context_length" in row for row in studio):
        talk = [row for row in studio if row.get("type", "llm") in ("llm", "vlm")]
        loaded_first = sorted(talk, key=lambda row: row.get("state") != "loaded")
        return LocalServer("lmstudio", url, _names(loaded_first, "id"))
    if "vllm" in owners or any("max_model_len" in row for row in listed):
        return LocalServer("vllm", url, _names(listed, "id"))
    if isinstance(answers.get("/api/tags", {}).get("models"), list):
        return LocalServer("ollama", url, _names(tags, "name"))
    return None


async def _get(port: int, path: str) -> Json:
    """The object that a port answers with; empty for anything else. HTTP/1.0, which ends an answer
    with the connection."""
    try:
        reader, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return {}
    try:
        host = f"{HOST}:{port}"
        writer.write(f"GET {path} HTTP/1.0\r\nHost: {host}\r\nAccept: */*\r\n\r\n".encode())
        await writer.drain()
        answer = await _read(reader)
    except OSError:
        return {}
    finally:
        writer.transport.abort()
    head, _, body = answer.partition(b"\r\n\r\n")
    if head[:5] != b"HTTP/" or b" 200" not in head.split(b"\r\n")[0]:
        return {}
    try:
        return object_of(json.loads(body))
    except ValueError:
        return {}


async def _read(reader: asyncio.StreamReader) -> bytes:
    """All that comes; what keeps the connection open in spite of HTTP/1.0 tells its length."""
    answer = b""
    while len(answer) < MOST_BYTES and (piece := await reader.read(65536)):
        answer += piece
        head, end, body = answer.partition(b"\r\n\r\n")
        length = _length(head) if end else None
        if length is not None and len(body) >= length:
            break
    return answer


def _length(head: bytes) -> int | None:
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length" and value.strip().isdigit():
            return int(value)
    return None


def _rows(answer: Json | None, name: str) -> list[Json]:
    return objects_of((answer or {}).get(name))


def _names(rows: Sequence[Json], name: str) -> tuple[str, ...]:
    return tuple(found for row in rows if isinstance(found := row.get(name), str))
