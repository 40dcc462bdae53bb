"""A server that answers as Anthropic's Messages API does, from a script, over loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

Json = dict[str, Any]


class Answer(NamedTuple):
    """What a request is answered with: events of a stream, or a body. `end`: how a stream ends.
    "cut": in the middle of a chunk; "hold": when the client goes away."""

    events: Sequence[Json | str] = ()
    body: Json | str | None = None
    status: int = 200
    headers: dict[str, str] = {}  # noqa: RUF012
    end: str = "whole"


class Asked(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: Json


class Server:
    """Answers in turn, the last one for ever."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers, self.asked = answers, list[Asked]()
        self.url = ""
        self.held, self.left = asyncio.Event(), asyncio.Event()
        self.tasks: list[asyncio.Task[Any] | None] = []
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tasks.append(asyncio.current_task())
        self.writers.append(writer)
        try:
            while (request := await _request(reader)) is not None:
                answer = self.answers[min(len(self.asked), len(self.answers) - 1)]
                self.asked.append(request)
                await self._answer(answer, reader, writer)
        except ConnectionError:
            pass  # the client went away
        finally:
            writer.close()

    async def _answer(
        self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if answer.body is not None:
            text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
            headers = answer.headers | {
                "content-type": "application/json", "content-length": str(len(text.encode())),
            }  # fmt: skip
            writer.write(_head(answer.status, headers) + text.encode())
            await writer.drain()
            return
        kind = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        writer.write(_head(answer.status, answer.headers | kind))
        for event in answer.events:
            writer.write(_chunk(_event(event)))
        await writer.drain()
        if answer.end == "hold":
            self.held.set()
            await reader.read()
            self.left.set()
        if answer.end == "cut":
            writer.write(b"ff\r\nevent: content_block")
            await writer.drain()
        if answer.end == "whole":
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        else:
            writer.close()


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode()


def _event(event: Json | str) -> bytes:
    if isinstance(event, str):
        return event.encode()
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def _request(reader: asyncio.StreamReader) -> Asked | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    method, path, _ = head[0].split(" ")
    headers = {
        name.lower(): value for line in head[1:] if line
        for name, _, value in [line.partition(": ")]
    }  # fmt: skip
    data = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, path, headers, json.loads(data) if data else {})


@asynccontextmanager
async def serving(*answers: Answer) -> AsyncIterator[Server]:
    """A server that gives these answers in turn, the last one for ever."""
    made = Server(answers)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        for writer in made.writers:
            writer.transport.abort()
        await asyncio.gather(*filter(None, made.tasks))


# ---------------------------------------------------------------------- answers


def start(**usage: int) -> Json:
    """The event that a stream begins with."""
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x-20260101",
        "content": [], "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 1} | usage,
    }  # fmt: skip
    return {"type": "message_start", "message": message}


def block(index: int, content: Json, *deltas: Json) -> list[Json]:
    """A block of content."""
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": each} for each in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text(index: int, *pieces: str) -> list[Json]:
    """A block of text."""
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return block(index, {"type": "text", "text": ""}, *deltas)


def ended(stop: str = "end_turn", output: int = 7, **more: Any) -> list[Json]:
    """The events that a stream ends with."""
    return [
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None} | more,
         "usage": {"output_tokens": output}},
        {"type": "message_stop"},
    ]  # fmt: skip


def said(*pieces: str) -> Answer:
    """A text, streamed."""
    return Answer([start(), *text(0, *pieces), *ended()])


def failed(status: int, kind: str, message: str, **headers: str) -> Answer:
    """An error."""
    body = {"type": "error", "error": {"type": kind, "message": message}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(body=body, status=status, headers=named)
