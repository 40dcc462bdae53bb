"""S35: request n+1 begins with request n up to the start of n's last message.

Fifty turns with tools, todos, goals, images, thinking, notices of the host, failures, stops and a
restart; over both APIs, for models that want roles in turn and for others. What a provider's cache
would hold is compared request by request, as it came over HTTP, and with the label of the beginning
that the store keeps of each call.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from threading import Event as Gate
from typing import Any

import pytest
from hosting import Made, until
from serving import APIS, CHAT, PLAIN, TURNS, configured, served

import clew
from clew.config.values import ChatConfig, CompactionConfig, Config, Kind, LimitsConfig
from clew.context.prefix import continues, prefix_of
from clew.domain.messages import Draft, Role
from clew.domain.parts import Image, Text
from clew.domain.turns import ModelCall
from clew.host.events import Event, Titled
from clew.host.host import Host
from clew.providers.api import TextDelta
from clew.providers.errors import BadKey
from clew.store.aio.conversation import AsyncConversation
from provider_server import FAIL, ProviderServer, call, say, use
from provider_server.answers import Answer
from provider_server.failures import Failure
from provider_server.server import Recorded

TURNS_IN_ALL = 50
STEPS = 6
"""Of a turn at most: a turn of five is told that they run out."""
_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJg"
    "gg=="
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as running:
        yield running


class Story:
    """What is said and answered in each turn, by its number."""

    def __init__(self, server: ProviderServer, *, words: int = 20) -> None:
        self._server, self._words = server, words
        self.answered: list[Recorded] = []
        """Requests whose answer came whole."""
        self.cached: list[int] = []
        """Tokens from the cache as the server told them of each of these."""
        self._left: list[Answer | Failure] = []
        server.script = self._next

    def _next(self, request: Recorded) -> Answer | Failure:
        found = self._left.pop(0)
        if isinstance(found, Answer) and found.gate is None:
            self.answered.append(request)
            self.cached.append(found.cached or 0)
        return found

    async def turn(self, host: Host, conv: AsyncConversation, n: int) -> None:
        """One turn of the story, whatever becomes of it."""
        self._left = list(_answers(n, self._words))
        said = _said(n, self._words)
        if n % 10 == 7:
            with pytest.raises(BadKey):
                await host.say(conv, [said])
        elif n % 10 == 9:
            await _stopped(host, conv, said)
        else:
            report = await host.say(conv, [said])
            assert report.state == "done"
        assert not self._left


def _said(n: int, words: int) -> Draft:
    text = Text(f"Question {n}: " + f"what about part {n}? " * words)
    image = Image(data=_PIXEL, width=1, height=1)
    return Draft(role=Role.USER, parts=(text, image) if n % 5 == 3 else (text,))


def _answers(n: int, words: int) -> Iterator[Answer | Failure]:
    end = say(f"Answer {n}. " + f"It is {n}. " * words, cached=n + 1)
    look = call("look", {"n": n})
    match n % 10:
        case 7:
            yield FAIL["401"]
        case 9:
            yield say("Half of what I would have said", gate=Gate(), hold_at=5)
        case 0 | 5:
            yield use(_todos(n), cached=n)
            yield end
        case 1 | 6:
            yield use(look, call("ask", {"n": n}), text="Let me see.", cached=n)
            yield use(call("look", {"n": -n}), cached=2)
            yield end
        case 2:
            yield use(call("goal", {"action": "set", "text": f"reach {n}"}), cached=n)
            yield say(end.text, reasoning=f"I think that it is {n}.", cached=3)
        case 4:
            for step in range(STEPS - 1):
                yield use(call("look", {"n": n, "step": step}), cached=step)
            yield end
        case _:
            yield end


def _todos(n: int) -> Any:
    states = ("active", "pending", "done")
    items = [{"text": f"part {m}", "state": states[(n + m) % 3]} for m in range(n % 4 + 1)]
    return call("todo", {"items": items if n % 20 else []})


async def _stopped(host: Host, conv: AsyncConversation, said: Draft) -> None:
    """A turn that a person stops while it answers."""
    events: list[Event] = []
    turn = asyncio.create_task(host.say(conv, [said], emit=events.append))
    await until(lambda: any(isinstance(event, TextDelta) for event in events))
    await host.stop(conv)
    assert (await turn).state == "interrupted"


def tools() -> tuple[Made, Made]:
    return Made("look", lambda a: f"seen {a}"), Made("ask", lambda a: f"heard {a}")


def begins(earlier: Recorded, later: Recorded) -> bool:
    """Whether a request begins as the one before, up to the start of its last message."""
    name = "messages" if "messages" in earlier.json else "input"
    fields = ("model", "tools", "instructions")
    if any(earlier.json.get(field) != later.json.get(field) for field in fields):
        return False
    start = earlier.json[name][:-1]
    return later.json[name][: len(start)] == start


async def rows(conv: AsyncConversation) -> list[ModelCall]:
    """Calls that were answered, in their order."""
    found = [row for row in await conv.calls(newest=1_000) if row.state == "done"]
    return sorted(found, key=lambda row: row.number)


def check_labels(stored: Sequence[ModelCall], sent: Sequence[Recorded], name: str) -> None:
    """The store's label of each call is that of the request as it was sent."""
    assert [row.prefix_hash for row in stored] == [prefix_of(each.json, name) for each in sent]


def limited(config: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"limits": LimitsConfig(steps=STEPS, repeats=0, retries=1), **(config or {})}


@pytest.mark.parametrize("model", [PLAIN, TURNS])
@pytest.mark.parametrize("api", APIS)
def test_fifty_turns_and_a_restart_keep_one_prefix(
    place: Path, server: ProviderServer, api: Kind, model: str
) -> None:
    story = Story(server)
    config = configured(server, api=api, model=model, window=128_000, **limited())
    name = "messages" if api == CHAT else "input"

    async def main() -> list[ModelCall]:
        id = await _first_half(place, config, story)
        async with served(place, config, *tools()) as (host, profile):
            conv = await profile.open(id)
            for n in range(TURNS_IN_ALL // 2, TURNS_IN_ALL):
                await story.turn(host, conv, n)
            assert await conv.compactions() == ()
            return await rows(conv)

    stored = asyncio.run(main())
    for earlier, later in pairwise(server.requests):
        assert begins(earlier, later), f"requests {earlier.number} and {later.number}"
    check_labels(stored, story.answered, name)
    for row, request in zip(stored, story.answered, strict=True):
        if request.number + 1 < len(server.requests):
            after = server.requests[request.number + 1]
            assert row.prefix_hash
            assert continues(row.prefix_hash, after.json, name)
    assert [row.usage.cached for row in stored] == story.cached
    _check_scaffolding(server.requests)
    server.check(breaks=0)


async def _first_half(place: Path, config: Config, story: Story) -> str:
    async with served(place, config, *tools()) as (host, _):
        conv = await host.new("chat")
        for n in range(TURNS_IN_ALL // 2):
            await story.turn(host, conv, n)
        return conv.id


def _check_scaffolding(requests: Sequence[Recorded]) -> None:
    """Todos, goals and what the host says were there, each in the last message alone."""
    lasts = [str(request.messages[-1]) for request in requests]
    for words in ("Open todos:", "Goal: reach", "ended early", "the last step of the turn"):
        assert any(words in last for last in lasts), words
    for request in requests:
        assert "<notes>" not in str(request.messages[:-1])
        assert "<notes>" not in str(request.json.get("instructions"))


@pytest.mark.parametrize(("api", "model"), [(APIS[0], PLAIN), (APIS[0], TURNS), (APIS[1], PLAIN)])
def test_each_compaction_breaks_the_prefix_once(
    place: Path, server: ProviderServer, api: Kind, model: str
) -> None:
    """And nothing else does: the first request behind one begins anew, the next go on from it. Two
    that come between two requests are one break."""
    story = Story(server, words=60)
    config = configured(server, api=api, model=model, window=16_000, **limited())
    name = "messages" if api == CHAT else "input"

    async def main() -> list[ModelCall]:
        id = await _first_half(place, config, story)
        async with served(place, config, *tools()) as (host, profile):
            conv = await profile.open(id)
            assert (await host.compact(conv)).state == "committed"
            for n in range(TURNS_IN_ALL // 2, TURNS_IN_ALL):
                await story.turn(host, conv, n)
            assert len(await conv.compactions()) >= 3
            return await rows(conv)

    stored = asyncio.run(main())
    check_labels(stored, story.answered, name)
    generations = {row.generation for row in stored}
    assert len(generations) > 3
    breaks = 0
    for (row, sent), (after, then) in pairwise(zip(stored, story.answered, strict=True)):
        goes_on = begins(sent, then)
        assert goes_on is (row.generation == after.generation)
        assert goes_on is continues(row.prefix_hash or "", then.json, name)
        breaks += not goes_on
    assert breaks == len(generations) - 1
    server.check(breaks=breaks)


@pytest.mark.parametrize("api", APIS)
def test_tools_that_come_and_go_break_nothing(
    place: Path, server: ProviderServer, api: Kind
) -> None:
    """S35.3: the set is pinned. A reload is a break, and the only one."""
    server.script = lambda _: say("Yes.")
    config = configured(server, api=api)
    look, ask = tools()

    async def main() -> None:
        async with served(place, config, look) as (host, _):
            conv = await host.new("chat")
            await host.say(conv, [clew.user("a")])
            id = conv.id
        async with served(place, config, ask, look) as (host, profile):
            conv = await profile.open(id)
            await host.say(conv, [clew.user("b")])
            assert "ask" in await host.reload_tools(conv)
            await host.say(conv, [clew.user("c")])
            await host.say(conv, [clew.user("d")])

    asyncio.run(main())
    first, second, third, fourth = (request.json["tools"] for request in server.requests)
    assert first == second != third == fourth
    assert third[: len(first)] == first
    server.check(breaks=1)


@pytest.mark.parametrize("api", APIS)
def test_a_title_by_the_model_breaks_nothing(
    place: Path, server: ProviderServer, api: Kind
) -> None:
    """It is asked for beside the turns, with a cache of its own or none."""
    titled: list[Recorded] = []
    config = configured(server, api=api, chat=ChatConfig(titles=True))

    def answer(request: Recorded) -> Answer:
        if not request.json.get("stream"):
            titled.append(request)
            return say("A river and its boats")
        return say("They are kept in the mill.")

    async def main() -> None:
        server.script = answer
        events: list[Event] = []
        async with served(place, config) as (host, _):
            conv = await host.new("chat")
            await host.say(conv, [clew.user("Where are the boats?")], emit=events.append)
            await until(lambda: any(isinstance(event, Titled) for event in events))
            await host.say(conv, [clew.user("And the oars?")])
            await host.say(conv, [clew.user("And the sails?")])
            assert (await conv.info()).title == "A river and its boats"

    asyncio.run(main())
    assert len(titled) == 1
    assert len(server.requests) == 4
    server.check(breaks=0)


def test_a_summary_by_the_model_is_asked_with_the_cache_of_the_conversation(
    place: Path, server: ProviderServer
) -> None:
    """Its request begins as the one before and as the next would; the compaction is the break."""
    config = configured(
        server, window=16_000, compaction=CompactionConfig(model=f"main/{PLAIN}"),
        **limited(),
    )  # fmt: skip
    asked: list[int] = []

    def answer(request: Recorded) -> Answer:
        if not request.json.get("stream"):
            asked.append(request.number)
            return say("They spoke of boats and of the mill.")
        return say("They are kept in the mill. " * 20)

    async def main() -> None:
        server.script = answer
        async with served(place, config) as (host, _):
            conv = await host.new("chat")
            for n in range(12):
                await host.say(conv, [clew.user(f"Question {n}: " + "where are the boats? " * 20)])
            outcome = await host.compact(conv)
            assert outcome.state == "committed"
            for n in range(3):
                await host.say(conv, [clew.user(f"And then, {n}?")])

    asyncio.run(main())
    assert asked == [12]
    before, summary, after = server.requests[11:14]
    assert begins(before, summary)
    assert not begins(before, after)
    server.check(breaks=1)
