"""What a provider's cache can hold of each request: 50 turns with tools, todos and a restart."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.host.hosts import Quick, answered, hosted, question, say
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Reading, Target
from clew.context.prefix import continues, prefix_of
from clew.context.tokens import count_text
from clew.domain.notes import Todo
from clew.providers.api import Body

_TURNS, _WINDOW = 50, 128_000


def prefix(bench: Bench) -> Readings:
    """Of all requests but the first."""
    sent = asyncio.run(_sent(bench.path("prefix")))
    pairs = list(pairwise(body.payload for body in sent))
    kept = [continues(prefix_of(a, "messages"), b, "messages") for a, b in pairs]
    note = f"{len(sent)} requests, {_TURNS} turns, the host restarted in their middle"
    yield "prefix_kept", Reading(100 * sum(kept) / len(kept), rounds=len(kept), note=note)
    cached = sum(_shared(a, b) for a, b in pairs)
    whole = sum(_tokens(b, b["messages"]) for _, b in pairs)
    yield "prefix_share", Reading(100 * cached / whole, rounds=len(kept))


async def _sent(path: Path) -> list[Body]:
    """The requests of the turns, by two hosts one after the other."""
    first = Quick(lambda body: answered(body, 2), _WINDOW, keep=True)
    async with hosted(path, first) as (host, _):
        conversation = await host.new("bench")
        for n in range(_TURNS // 2):
            await conversation.set_todos(_todos(n))
            await say(host, conversation, question(n, tool=n % 2 == 1))
    second = Quick(lambda body: answered(body, 2), _WINDOW, keep=True)
    async with hosted(path, second) as (host, profile):
        conversation = await profile.open(conversation.id)
        for n in range(_TURNS // 2, _TURNS):
            await conversation.set_todos(_todos(n))
            await say(host, conversation, question(n, tool=n % 2 == 1))
        assert not await conversation.compactions()
    return [*first.bodies, *second.bodies]


def _todos(n: int) -> list[Todo]:
    return [Todo(f"part {m}", "active" if m == n % 3 else "pending") for m in range(n % 4)]


def _shared(earlier: dict[str, Any], later: dict[str, Any]) -> int:
    """Tokens that two requests begin with, both; 0 with other tools."""
    if earlier.get("tools") != later.get("tools"):
        return 0
    same = 0
    for old, new in zip(earlier["messages"], later["messages"], strict=False):
        if old != new:
            break
        same += 1
    return _tokens(later, later["messages"][:same])


def _tokens(payload: dict[str, Any], messages: Sequence[Any]) -> int:
    texts = [payload.get("tools"), *messages]
    return sum(count_text(json.dumps(each, ensure_ascii=False)) for each in texts)


PREFIX = Job(
    "prefix",
    prefix,
    (
        Target(
            "prefix_kept", 100, "%", at_least=True,
            says="requests that begin with the one before, up to its last message",
        ),
        Target(
            "prefix_share", None, "%", at_least=True,
            says="tokens of requests that the request before had begun with",
        ),
    ),
)  # fmt: skip
