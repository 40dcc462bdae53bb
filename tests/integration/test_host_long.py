"""A conversation of 500 turns with tools on a window of 16,000 tokens, over HTTP.

What must not grow does not: no request is beyond the window, each is valid for a strict provider,
memory is flat, and a turn takes as many transactions at its end as at its beginning. What was said
first is still there.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from hosting import Made, log
from serving import configured, served

import clew
from clew.config.values import LimitsConfig
from clew.domain.messages import Role
from clew.host.events import CallStarted, Event
from clew.store.sqlite import SqliteBackend
from provider_server import ProviderServer, call, say, use
from provider_server.answers import Answer
from provider_server.server import Recorded

TURNS, WINDOW = 500, 16_000
FIRST = "Always sign each answer with the name Quillfeather-731."
WORDS = (
    "the", "river", "bends", "near", "an", "old", "mill", "where", "boats", "are", "kept", "in",
    "winter", "and", "somebody", "counts", "them", "each", "morning", "before", "bells", "ring",
    "while", "children", "walk", "to", "school", "along", "a", "wall", "of", "grey", "stone",
)  # fmt: skip


def prose(seed: int, words: int) -> str:
    """Text of no meaning, another for each seed."""
    return " ".join(WORDS[(seed * 7 + at * (seed % 5 + 3)) % len(WORDS)] for at in range(words))


def asked(n: int) -> str:
    """What the person says in turn n."""
    text = f"Question {n}: tell me of part {n}. {prose(n, 40)}"
    return f"{FIRST} {text}" if n == 0 else text


class Writes:
    """Counts transactions that write: units of work handed to the store's one writer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        plain, awaited = SqliteBackend.write, SqliteBackend.write_async

        def write(backend: SqliteBackend, unit: Any) -> Any:
            self.count += 1
            return plain(backend, unit)

        async def write_async(backend: SqliteBackend, unit: Any) -> Any:
            self.count += 1
            return await awaited(backend, unit)

        monkeypatch.setattr(SqliteBackend, "write", write)
        monkeypatch.setattr(SqliteBackend, "write_async", write_async)

    def taken(self) -> int:
        """How many there were since the last time."""
        found, self.count = self.count, 0
        return found


class Model:
    """Calls a tool in each turn, then answers; looks at each request as it comes and keeps none."""

    def __init__(self, server: ProviderServer) -> None:
        self.largest = self.number = 0
        self.unsigned = 0
        """Requests that do not hold the first instruction."""
        self.last = ""
        self._server = server
        server.script = self._answer

    def _answer(self, request: Recorded) -> Answer:
        self.number += 1
        self.last = json.dumps(request.json, ensure_ascii=False)
        self.largest = max(self.largest, request.tokens)
        self.unsigned += "Quillfeather-731" not in self.last
        self._server.requests.clear()
        if request.messages[-1]["role"] == "user":
            return use(call("look", {"n": self.number}), piece=400)
        return say(f"Answer {self.number}. {prose(self.number, 60)} Quillfeather-731", piece=400)


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as running:
        yield running


def test_five_hundred_turns_in_a_small_window(
    fast_dir: Path, server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, writes = Model(server), Writes(monkeypatch)
    look = Made("look", lambda a: f"Seen {a['n']}: {prose(a['n'], 120)}")
    config = configured(
        server, window=WINDOW, limits=LimitsConfig(repeats=0, day_tokens=0), timeout=60.0
    )
    sizes: list[CallStarted] = []
    commits: list[int] = []
    memory: list[int] = []
    blocks: list[int] = []
    attempts: list[int] = []

    def emit(event: Event) -> None:
        if isinstance(event, CallStarted):
            sizes.append(event)

    async def main() -> None:
        async with served(fast_dir / "store.db", config, look) as (host, _):
            conv = await host.new("chat")
            for n in range(TURNS):
                writes.taken()
                look.calls.clear()
                report = await host.say(conv, [clew.user(asked(n))], emit=emit)
                commits.append(writes.taken())
                assert report.state == "done"
                if n in (99, TURNS - 1):
                    gc.collect()
                    memory.append(_resident())
                    blocks.append(sys.getallocatedblocks())
            attempts.append(len(await conv.attempts()))
            done = await conv.compactions()
            assert len(done) >= 20
            assert {each.kind for each in done} == {"ours"}
            said = [message.role for message in await log(conv)]
            assert said == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT] * TURNS

    asyncio.run(main())
    assert model.number == len(sizes) == 2 * TURNS
    assert max(event.tokens for event in sizes) <= WINDOW - WINDOW // 8 == sizes[0].limit
    assert model.largest <= WINDOW, "by the server's own rough count"
    assert model.unsigned == 0
    assert FIRST in model.last
    assert len(server.breaks) <= attempts[0]
    server.check(breaks=len(server.breaks))
    assert blocks[1] - blocks[0] < 100_000
    assert memory[1] - memory[0] < 32_000_000
    assert median(commits[-100:]) == median(commits[:100]) == 4, "begun, called, ran, answered"
    more = sum(commits) - 4 * TURNS
    assert more <= 6 * attempts[0] + TURNS // 10, "compactions, and the keeper of slow turns"


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_transactions_of_a_turn(
    fast_dir: Path, server: ProviderServer, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """Begun and finished; the record of a message with calls, and that of its results, is one more
    each. The last turn takes as many as the first."""
    writes = Writes(monkeypatch)
    look = Made("look", lambda a: f"Seen {a}")
    commits: list[int] = []

    def answer(request: Recorded) -> Answer:
        made = sum(1 for message in _turn(request) if message["role"] == "tool")
        return use(call("look", {"n": request.number})) if made < steps else say("Done.")

    async def main() -> None:
        async with served(fast_dir / "store.db", configured(server), look) as (host, _):
            conv = await host.new("chat")
            for n in range(20):
                writes.taken()
                await host.say(conv, [clew.user(asked(n))])
                commits.append(writes.taken())

    server.script = answer
    asyncio.run(main())
    usual = 2 + 2 * steps
    assert median(commits) == usual
    assert sum(commits) <= len(commits) * (usual + 1), "the keeper of turns that were slow"
    server.check(breaks=0)


def _turn(request: Recorded) -> list[dict[str, Any]]:
    """The messages from the last of a person on."""
    said = [message["role"] for message in request.messages]
    return request.messages[len(said) - said[::-1].index("user") :]


def _resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
