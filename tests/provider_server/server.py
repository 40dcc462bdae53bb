"""The server: a thread with an event loop of its own, one connection at a time per socket."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from types import TracebackType
from typing import Any, Self

from provider_server import checks, wire
from provider_server.answers import HANG, Answer, Hang
from provider_server.checks import Break
from provider_server.failures import FAIL, Failure
from provider_server.imitations import Imitation, page

Json = dict[str, Any]
Response = Answer | Failure | Hang
WAIT = 30.0
"""Seconds that a test waits for a request, or a gate for its test."""
_API = ("/v1/chat/completions", "/v1/responses")


@dataclass
class Recorded:
    """A request of a model, as it came. `answered`: all of the answer is on its way;
    `aborted`: the client hung up before that."""

    number: int
    path: str
    headers: Mapping[str, str]
    raw: bytes
    json: Json
    scope: str | None
    answered: threading.Event = field(default_factory=threading.Event)
    aborted: threading.Event = field(default_factory=threading.Event)

    @property
    def messages(self) -> list[Json]:
        """Messages, or input items."""
        return self.json.get("messages") or self.json.get("input") or []

    @property
    def tokens(self) -> int:
        return len(self.raw) // 4


Script = Iterable[Response] | Callable[[Recorded], Response]


class ProviderServer:
    """See the package. `key`: the only one that is let in; None: any, and none."""

    def __init__(
        self, script: Script = (), *, imitate: Imitation | None = None, port: int = 0,
        models: Iterable[str] = ("test-model",), window: int | None = None,
        key: str | None = None, affinity_headers: Iterable[str] = (),
    ) -> None:  # fmt: skip
        self.script = script
        self.requests: list[Recorded] = []
        self.others: list[tuple[str, str]] = []
        """(method, path) of what else was asked."""
        self.violations: list[str] = []
        self.breaks: list[Break] = []
        self._models, self._imitate, self._window, self._key = (
            tuple(models), imitate, window, key,
        )  # fmt: skip
        self._affinity_headers = tuple(name.lower() for name in affinity_headers)
        self._allowed = 0
        self._last: dict[tuple[str, str], Recorded] = {}
        self._came = threading.Condition()
        self._ready, self._closing = threading.Event(), threading.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._port = port
        self._thread = threading.Thread(target=self._run, name="provider-server", daemon=True)
        self._thread.start()
        assert self._ready.wait(WAIT)

    # ------------------------------------------------------------------ for tests

    @property
    def script(self) -> Script:
        return self._script

    @script.setter
    def script(self, script: Script) -> None:
        self._script = script
        if callable(script):
            self._next = script
            return
        left = iter(script)

        def take(request: Recorded) -> Response:
            found = next(left, None)
            if found is None:
                last = str(request.messages[-1])[:300]
                self.violations.append(f"request {request.number}: the script is over ({last})")
            return found or FAIL["500"]

        self._next = take

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def port(self) -> int:
        return self._port

    def expect_break(self, times: int = 1) -> None:
        """So many breaks of a prefix more are right: a compaction comes, a prompt is replaced."""
        self._allowed += times

    def wait_for(self, number: int) -> Recorded:
        """The request of this number, from 1, once it is there."""
        with self._came:
            assert self._came.wait_for(lambda: len(self.requests) >= number, WAIT), (
                f"only {len(self.requests)} requests came"
            )
        return self.requests[number - 1]

    def check(self, breaks: int | None = None) -> None:
        """Fail if a request was not valid or broke a prefix."""
        assert not self.violations, "\n".join(self.violations)
        told = [f"request {each.at}: {each.what}" for each in self.breaks]
        if breaks is None:
            assert len(self.breaks) <= self._allowed, "\n".join(["broken prefixes:", *told])
        else:
            assert len(self.breaks) == breaks, "\n".join(["broken prefixes:", *told])

    def pause(self) -> None:
        """Refuse connections, and close those there are, until `resume`."""
        asyncio.run_coroutine_threadsafe(self._stop_listening(), self._loop).result(WAIT)

    def resume(self) -> None:
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(WAIT)

    def close(self) -> None:
        if not self._closing.is_set():
            self._closing.set()
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(WAIT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        await self._listen()
        self._ready.set()
        await self._stop.wait()
        await self._stop_listening()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _stop_listening(self) -> None:
        self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; whether the connection stays."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip().split("\r\n")
        method, target, _ = first.split(" ")
        path = target.split("?")[0]
        headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        http = _Http(reader, writer, self._closing)
        if self._key is not None and headers.get("authorization") != f"Bearer {self._key}":
            return await http.failure(FAIL["401"])
        if method != "POST" or path not in _API:
            self.others.append((method, path))
            return await http.page(page(self._imitate, method, path, self._models, self._window))
        return await self._answer(http, self._record(path, headers, raw))

    # ------------------------------------------------------------------ requests

    def _record(self, path: str, headers: Mapping[str, str], raw: bytes) -> Recorded:
        number = len(self.requests)
        try:
            body = json.loads(raw)
        except ValueError as error:
            self.violations.append(f"request {number}: no JSON: {error}")
            body = {}
        named = (headers.get(name) for name in self._affinity_headers)
        scope = body.get("prompt_cache_key") or next(filter(None, named), None)
        request = Recorded(number, path, headers, raw, body, scope)
        found = [*checks.faults_of(path, body)]
        self.violations += [f"request {number}: {fault}" for fault in found]
        with self._came:
            self.requests.append(request)
            self._came.notify_all()
        return request

    def _usage(self, request: Recorded, answer: Answer) -> wire.Usage:
        """Tokens as a server with a prompt cache counts them; looks at the prefix, too."""
        cached = 0
        if request.scope is not None and request.messages:
            place = (request.path, request.scope)
            before = self._last.get(place)
            self._last[place] = request
            if before is not None:
                if (what := checks.broken(before.json, request.json)) is not None:
                    self.breaks.append(Break(request.number, request.scope, what))
                cached = _size(request.messages[: checks.shared(before.json, request.json)])
        got = len(answer.text) + sum(len(each.arguments) for each in answer.calls)
        return request.tokens, answer.cached if answer.cached is not None else cached, got // 4 + 1

    # ------------------------------------------------------------------ answers

    async def _answer(self, http: _Http, request: Recorded) -> bool:
        response = self._next(request)
        try:
            if response is HANG or isinstance(response, Hang):
                return await http.hang()
            if isinstance(response, Failure):
                return await http.failure(response)
            return await self._say(http, request, response)
        except ConnectionError:
            request.aborted.set()
            raise
        finally:
            if not request.aborted.is_set():
                request.answered.set()

    async def _say(self, http: _Http, request: Recorded, answer: Answer) -> bool:
        usage = self._usage(request, answer)
        id, model = f"r{request.number}", answer.model or str(request.json.get("model"))
        is_chat = request.path == _API[0]
        if answer.fault == "html":
            return await http.page("<html><title>Sign in</title></html>")
        if not request.json.get("stream"):
            whole = (wire.chat_whole if is_chat else wire.response_whole)(answer, model, id, usage)
            return await http.whole(whole, answer)
        if is_chat:
            told = (request.json.get("stream_options") or {}).get("include_usage") is True
            events = wire.chat_events(answer, model, id, usage, told)
        else:
            events = wire.response_events(answer, model, id, usage)
        return await http.stream(events, answer)


def _size(messages: list[Json]) -> int:
    return len(json.dumps(messages)) // 4


class _Http:
    """Writes one answer, and sees when the client has gone."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, closing: threading.Event
    ) -> None:
        self._reader, self._writer, self._closing = reader, writer, closing

    async def page(self, body: Json | str | None) -> bool:
        if body is None:
            return await self.failure(Failure(404, {"error": {"message": "Not Found"}}))
        return await self.failure(Failure(200, body))

    async def failure(self, failure: Failure) -> bool:
        return await self._write(failure.status, failure.body, failure.headers)

    async def whole(self, body: Json, answer: Answer) -> bool:
        await self._hold(answer)
        if answer.fault in ("cut", "silent"):
            self._head(200, {"content-type": "application/json", "content-length": "1000000"})
            self._writer.write(json.dumps(body).encode()[:40])
            await self._flush()
            return await self.hang() if answer.fault == "silent" else False
        if answer.fault == "malformed":
            return await self._write(200, json.dumps(body)[:-20], {}, "application/json")
        if answer.fault == "empty":
            return await self._write(200, {**body, "choices": [], "output": []}, {})
        if answer.fault == "error":
            return await self._write(200, _ERROR, {})
        return await self._write(200, body, {})

    async def stream(self, events: list[bytes], answer: Answer) -> bool:
        self._head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        for at, event in enumerate(_faulty(events, answer)):
            if at == answer.hold_at:
                await self._hold(answer)
            if answer.delay:
                await self._pause(answer.delay)
            self._gone()
            self._writer.write(b"%x\r\n%s\r\n" % (len(event), event))
            await self._flush()
        if answer.fault == "silent":
            return await self.hang()
        if answer.fault in ("cut", "cut-done"):
            await asyncio.sleep(0)  # what was written leaves before the connection ends
            self._writer.close()
            return False
        self._writer.write(b"0\r\n\r\n")
        await self._flush()
        return True

    async def hang(self) -> bool:
        while True:
            await self._pause(1.0)

    async def _hold(self, answer: Answer) -> None:
        end = monotonic() + WAIT
        while answer.gate is not None and not answer.gate.is_set() and monotonic() < end:
            await self._pause(0.005)

    async def _pause(self, seconds: float) -> None:
        """Wait, unless the client goes."""
        end = monotonic() + seconds
        while (left := end - monotonic()) > 0:
            self._gone()
            await asyncio.sleep(min(left, 0.01))

    def _gone(self) -> None:
        if self._reader.at_eof() or self._writer.is_closing():
            raise ConnectionResetError("the client hung up")

    async def _write(
        self, status: int, body: Json | str, headers: Mapping[str, str], kind: str = "text/html"
    ) -> bool:
        is_page = isinstance(body, str)
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        kind = kind if is_page else "application/json"
        self._head(status, {"content-type": kind, "content-length": str(len(data)), **headers})
        self._writer.write(data)
        await self._flush()
        return True

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} Test", *(f"{n}: {v}" for n, v in headers.items()), "", ""]
        self._writer.write("\r\n".join(lines).encode())

    async def _flush(self) -> None:
        await self._writer.drain()


_ERROR: Json = {"error": {"message": "Provider returned error", "code": 502}}


def _faulty(events: list[bytes], answer: Answer) -> list[bytes]:
    """The events with what is wrong with them."""
    half = events[: max(1, len(events) // 2)]
    match answer.fault:
        case "empty":
            return []
        case "cut" | "silent":
            return half
        case "malformed":
            return [*half, b'data: {"id": "r1", "choices": [{"delta": {"content": "bro\n\n']
        case "error":
            return [*half, wire.sse(_ERROR)]
        case _:
            return events
