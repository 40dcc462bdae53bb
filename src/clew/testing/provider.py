"""A provider that answers from a script, in memory: for tests of hosts, screens and agents."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from clew.domain.parts import Reasoning, Text
from clew.domain.turns import Usage
from clew.providers.api import Body, Model, Reply, Request, StreamEvent
from clew.providers.errors import ServerFailed
from clew.providers.pieces import gathered, pieces, words

ANSWER = "Understood."


class Signal:
    """Something that happens once, told to threads and to tasks of any loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._happened = threading.Event()
        self._told: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def set(self) -> None:
        """It has happened."""
        with self._lock:
            self._happened.set()
            for loop, event in self._told:
                loop.call_soon_threadsafe(event.set)
            self._told.clear()

    def is_set(self) -> bool:
        """Whether it has."""
        return self._happened.is_set()

    def wait(self, seconds: float = 60) -> bool:
        """Block this thread until it has; False when that takes longer than `seconds`."""
        return self._happened.wait(seconds)

    async def come(self, seconds: float = 60) -> None:
        """Wait in a task. Raises TimeoutError after `seconds`."""
        mine = asyncio.get_running_loop(), asyncio.Event()
        with self._lock:
            if self._happened.is_set():
                return
            self._told.append(mine)
        try:
            async with asyncio.timeout(seconds):
                await mine[1].wait()
        finally:
            with self._lock:
                if mine in self._told:
                    self._told.remove(mine)


class Hold:
    """An answer that streams some pieces and then waits until it is let go.

    `reached`: the pieces were taken, and it waits; `ended`: the stream is over, to its end or
    closed before. `then`: what is streamed after `let_go()`.
    """

    def __init__(self, *pieces: str, then: str | Reply | Exception = "") -> None:
        self.pieces, self.then = pieces, then
        self.reached, self.ended = Signal(), Signal()
        self._gate = Signal()

    def let_go(self) -> None:
        """Let the stream go on."""
        self._gate.set()

    async def passed(self) -> None:
        """Say that the pieces are out, and wait."""
        self.reached.set()
        await self._gate.come(600)


Script = str | Reply | Exception | Sequence[StreamEvent | Exception] | Hold
"""A text; a whole reply; an error to raise; the events themselves, an error among them breaking the
stream off; a text that is held."""
Answer = Script | Callable[[Body], Script]


class ScriptedBody(Body, frozen=True):
    """As a provider for Chat Completions would send it. `expected`: tokens, as the context has
    counted them; the usage of a scripted text says the same."""

    expected: int = 0


class ScriptedProvider:
    """Gives its answers in turn, the last one for ever; `requests` is what it was sent.

    A text is streamed in pieces of a word. `open`: streams begun and not over. A text's usage is
    what the context counted, and a token for each word.
    """

    def __init__(
        self, *answers: Answer, name: str = "scripted", model: Model | None = None
    ) -> None:
        self.name = name
        self.model = model or Model(name="scripted", provider=name, window=128_000)
        self.requests: list[Body] = []
        self.open = 0
        self.closed = False
        self._answers: tuple[Answer, ...] = answers or (ANSWER,)
        self._lock = threading.Lock()

    def render(self, request: Request) -> Body:
        """A payload as Chat Completions has it."""
        payload: dict[str, Any] = {
            "model": request.model.name, "messages": request.context.chat(request.blob),
        }  # fmt: skip
        if request.tools:
            payload["tools"] = [
                {"type": "function", "function": msgspec.structs.asdict(tool)}
                for tool in request.tools
            ]
        if request.max_tokens is not None:
            payload["max_tokens"] = request.max_tokens
        return ScriptedBody(payload | dict(request.settings), expected=request.context.expected)

    async def stream(self, body: Body) -> AsyncGenerator[StreamEvent]:
        """The next answer, in pieces."""
        script = self._next(body)
        self.open += 1
        try:
            if isinstance(script, Hold):
                for piece in script.pieces:
                    for event in _text(piece):
                        yield event
                await script.passed()
            for event in self._events(script, body):
                await asyncio.sleep(0)
                yield event
        finally:
            self.open -= 1
            if isinstance(script, Hold):
                script.ended.set()

    async def complete(self, body: Body) -> Reply:
        """The next answer, whole."""
        async with aclosing(self.stream(body)) as events:
            async for event in events:
                if isinstance(event, Reply):
                    return event
        raise ServerFailed("the script ended without a reply", provider=self.name)

    async def count(self, body: Body) -> int | None:
        """As the context has counted."""
        return _expected(body)

    async def models(self) -> tuple[str, ...]:
        """The one there is."""
        return (self.model.name,)

    async def describe(self, model: str) -> Model | None:
        """The one there is, by its name."""
        return self.model if model == self.model.name else None

    async def close(self) -> None:
        """Note it in `closed`."""
        self.closed = True

    def _next(self, body: Body) -> Script:
        with self._lock:
            answer = self._answers[min(len(self.requests), len(self._answers) - 1)]
            self.requests.append(body)
        return answer(body) if callable(answer) else answer

    def _events(self, script: Script, body: Body) -> Iterator[StreamEvent]:
        match script:
            case Exception():
                raise script
            case Reply():
                yield from pieces(script)
            case str():
                yield from pieces(self._reply(script, body))
            case Hold(then=str(text)):
                yield from _text(text)
                yield self._reply("".join(script.pieces) + text, body)
            case Hold(then=then):
                yield from self._events(then, body)
            case _:
                yield from self._listed(script, body)

    def _listed(
        self, script: Sequence[StreamEvent | Exception], body: Body
    ) -> Iterator[StreamEvent]:
        said: list[StreamEvent] = []
        for event in script:
            if isinstance(event, Exception):
                raise event
            said.append(event)
            yield event
        if not any(isinstance(event, Reply) for event in said):
            parts = gathered(said)
            stop = "tool_calls" if any(type(p) not in (Text, Reasoning) for p in parts) else "stop"
            yield Reply(parts=parts, stop=stop, model=self.model.name)

    def _reply(self, text: str, body: Body) -> Reply:
        usage = Usage(input=_expected(body) or 0, output=len(words(text)))
        return Reply(
            parts=(Text(text),) if text else (), stop="stop", usage=usage, model=self.model.name
        )


def _text(text: str) -> Iterator[StreamEvent]:
    yield from (
        event
        for event in pieces(Reply(parts=(Text(text),), stop="stop"))
        if not isinstance(event, Reply)
    )


def _expected(body: Body) -> int | None:
    return body.expected if isinstance(body, ScriptedBody) else None
