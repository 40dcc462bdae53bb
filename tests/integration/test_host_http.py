"""A host over loopback HTTP: each documented failure of a server, and what becomes of the turn.

Every test ends with a server that found each request valid and each prefix whole, and with a store
that is sound.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event as Gate
from typing import Any

import pytest
from hosting import Made, kinds, log, told, until
from serving import APIS, CHAT, KEY, configured, served, texts

import clew
from clew.config.values import Kind, LimitsConfig
from clew.context.prefix import prefix_of
from clew.domain.parts import Text, ToolCall, ToolResult
from clew.host.events import (
    Answered,
    Event,
    Notice,
    Retrying,
    ToolFinished,
    TurnEnded,
)
from clew.host.host import Host
from clew.providers.api import TextDelta
from clew.providers.errors import (
    BadKey,
    BadRequest,
    NoModel,
    NotConfigured,
    OutOfCredit,
    Overflow,
    ProviderError,
    ServerFailed,
    Unreachable,
)
from clew.store.aio.conversation import AsyncConversation
from provider_server import FAIL, HANG, ProviderServer, call, refuse, say, use
from provider_server.failures import Failure

WHOLE = "The whole answer, from its first word to its last."
HALF = "Half of an answer that nobody shall ever see again in the log."
AT_ONCE = {"retry-after": "0"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as running:
        yield running


@pytest.fixture
def other() -> Iterator[ProviderServer]:
    with ProviderServer() as running:
        yield running


def retries(events: list[Event]) -> list[Retrying]:
    return [event for event in events if isinstance(event, Retrying)]


def streamed(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


# ---------------------------------------------------------------------- what goes well


@pytest.mark.parametrize("api", APIS)
def test_a_turn_with_tools_is_streamed_and_stored(
    place: Path, server: ProviderServer, api: Kind
) -> None:
    server.script = [
        use(call("look", {"at": "the sky"}, "a"), call("ask", {}, "b"), text="Let me see."),
        say("It is blue, mostly, and there are birds.", piece=5, cached=1),
    ]

    async def main() -> None:
        events: list[Event] = []
        look, ask = Made("look", lambda _: "blue"), Made("ask", lambda _: "birds")
        async with served(place, configured(server, api=api), look, ask) as (host, _):
            conv = await host.new("chat")
            report = await host.say(conv, [clew.user("What is up?")], emit=events.append)
            assert report.state == "done"
            assert report.text == "It is blue, mostly, and there are birds."
            lines = await told(conv)
            assert lines[:2] == ["user: What is up?", "assistant: Let me see. look() ask()"]
            assert sorted(lines[2:4]) == ["tool: birds", "tool: blue"]
            assert lines[4:] == ["assistant: It is blue, mostly, and there are birds."]
            assert look.calls == [{"at": "the sky"}]
            calls = sorted(await conv.calls(), key=lambda each: each.number)
            assert [each.state for each in calls] == ["done", "done"]
            assert report.usage.input == sum(r.tokens for r in server.requests)
            assert calls[1].usage.cached == 1
        pieces = [event for event in events if isinstance(event, TextDelta)]
        assert len(pieces) > 8
        assert streamed(events) == "Let me see." + report.text
        done = [event.result.content for event in events if isinstance(event, ToolFinished)]
        assert sorted(map(str, done)) == ["birds", "blue"]

    asyncio.run(main())
    assert len(server.requests) == 2
    server.check(breaks=0)


@pytest.mark.parametrize("api", APIS)
def test_the_scope_of_the_cache_is_the_conversations(
    place: Path, server: ProviderServer, api: Kind
) -> None:
    """S35: the same with each request of one conversation, another in another."""
    server.script = lambda _: say("Yes.")

    async def main() -> None:
        async with served(place, configured(server, api=api)) as (host, _):
            one, two = await host.new("chat"), await host.new("chat")
            for n in range(3):
                await host.say(one, [clew.user(f"one {n}")])
                await host.say(two, [clew.user(f"two {n}")])

    asyncio.run(main())
    scopes = [request.json["prompt_cache_key"] for request in server.requests]
    assert len({*scopes[::2]}) == len({*scopes[1::2]}) == 1
    assert scopes[0] != scopes[1]
    assert all(request.headers["authorization"] == f"Bearer {KEY}" for request in server.requests)
    server.check(breaks=0)


@pytest.mark.parametrize("api", APIS)
def test_what_is_stored_of_a_call_is_what_was_sent(
    place: Path, server: ProviderServer, api: Kind
) -> None:
    server.script = [use(call("look", {"n": 1})), say("Seen."), say("Again.")]

    async def main() -> list[str | None]:
        async with served(place, configured(server, api=api), Made("look", lambda _: "blue")) as (
            host,
            _,
        ):
            conv = await host.new("chat")
            await host.say(conv, [clew.user("look")])
            await host.say(conv, [clew.user("again")])
            rows = sorted(await conv.calls(), key=lambda each: each.number)
            return [row.prefix_hash for row in rows]

    stored = asyncio.run(main())
    name = "messages" if api == CHAT else "input"
    assert stored == [prefix_of(request.json, name) for request in server.requests]


@pytest.mark.parametrize("api", APIS)
def test_a_refusal_is_an_answer(place: Path, server: ProviderServer, api: Kind) -> None:
    server.script = [refuse("I will not do that."), say("This I can do.")]

    async def main() -> None:
        async with served(place, configured(server, api=api)) as (host, _):
            conv = await host.new("chat")
            report = await host.say(conv, [clew.user("do it")])
            assert (report.state, report.text) == ("done", "I will not do that.")
            (_, answer) = await log(conv)
            assert (answer.meta or {})["stop"] == "refusal"
            await host.say(conv, [clew.user("something else")])

    asyncio.run(main())
    assert "I will not do that." in str(server.requests[1].messages)
    server.check(breaks=0)


@pytest.mark.parametrize("finish", ["length", "content_filter"])
@pytest.mark.parametrize("api", APIS)
def test_an_answer_that_was_cut_short_by_the_provider_says_so(
    place: Path, server: ProviderServer, api: Kind, finish: str
) -> None:
    """It is kept, and its message knows why it ends."""
    server.script = [say("As I was about to", finish=finish), say("Go on.")]

    async def main() -> None:
        events: list[Event] = []
        async with served(place, configured(server, api=api)) as (host, _):
            conv = await host.new("chat")
            report = await host.say(conv, [clew.user("say")], emit=events.append)
            assert (report.state, report.text) == ("done", "As I was about to")
            assert ((await log(conv))[-1].meta or {})["stop"] == finish
            await host.say(conv, [clew.user("and?")])
            assert len(await log(conv)) == 4
        notices = [event for event in events if isinstance(event, Notice)]
        assert bool(notices) is (finish == "length")

    asyncio.run(main())
    server.check(breaks=0)


def test_a_stream_that_says_only_that_it_is_done_is_whole(
    place: Path, server: ProviderServer
) -> None:
    """[DONE] without a reason to stop, as some servers end."""
    server.script = [say("All of it.", fault="done-only")]

    async def main() -> None:
        async with served(place, configured(server)) as (host, _):
            conv = await host.new("chat")
            assert (await host.say(conv, [clew.user("a")])).text == "All of it."

    asyncio.run(main())
    server.check(breaks=0)


# ---------------------------------------------------------------------- what waiting helps against


FAILURES: dict[str, Any] = {
    "429 retry-after-ms": FAIL["429-now"],
    "429 retry-after": replace(FAIL["429"], headers=AT_ONCE),
    "429 without": FAIL["429-bare"],
    "500": FAIL["500"],
    "503": replace(FAIL["503"], headers=AT_ONCE),
    "a web page with 502": FAIL["html"],
    "a web page with 200": say(HALF, fault="html"),
    "cut at half": say(HALF, fault="cut"),
    "cut behind its last word": say(HALF, fault="cut-done"),
    "an end without an end": say(HALF, fault="no-finish"),
    "malformed": say(HALF, fault="malformed"),
    "an error in the stream": say(HALF, fault="error"),
    "no chunk": say(fault="empty"),
    "an empty answer": say(""),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("api", APIS)
def test_a_failed_try_leaves_nothing_behind(
    place: Path, server: ProviderServer, api: Kind, failure: str
) -> None:
    """The same request is made again, byte for byte; what the failed one streamed is in no message,
    and the answer is there once."""
    server.script = [say("Hello."), FAILURES[failure], say(WHOLE), say("Bye.")]

    async def main() -> None:
        events: list[Event] = []
        async with served(place, configured(server, api=api)) as (host, _):
            conv = await host.new("chat")
            await host.say(conv, [clew.user("hi")])
            report = await host.say(conv, [clew.user("tell me")], emit=events.append)
            assert (report.state, report.text) == ("done", WHOLE)
            assert (await host.say(conv, [clew.user("thanks")])).text == "Bye."
            assert await told(conv) == [
                "user: hi", "assistant: Hello.", "user: tell me", f"assistant: {WHOLE}",
                "user: thanks", "assistant: Bye.",
            ]  # fmt: skip
            rows = await conv.calls()
            assert [row.state for row in rows] == ["done"] * 3, "one call, however often tried"
        (again,) = retries(events)
        assert again.seconds < 0.1
        after = events[events.index(again) :]
        assert streamed(after) == WHOLE
        assert kinds(events)[-2:] == ["Answered", "TurnEnded"]
        assert KEY not in again.why
        assert "hi" not in again.why.split()

    asyncio.run(main())
    assert len(server.requests) == 4
    assert server.requests[1].json == server.requests[2].json
    assert HALF[:20] not in str(server.requests[3].messages)
    server.check(breaks=0)


@pytest.mark.parametrize("silent", [HANG, say(HALF, fault="silent")])
@pytest.mark.parametrize("api", APIS)
def test_silence_is_given_up_and_tried_again(
    place: Path, server: ProviderServer, api: Kind, silent: Any
) -> None:
    server.script = [silent, say(WHOLE)]

    async def main() -> None:
        events: list[Event] = []
        async with served(place, configured(server, api=api, timeout=0.5)) as (host, _):
            conv = await host.new("chat")
            report = await host.say(conv, [clew.user("hi")], emit=events.append)
            assert report.text == WHOLE
            assert await told(conv) == ["user: hi", f"assistant: {WHOLE}"]
        (again,) = retries(events)
        assert "sent nothing for 0.5 seconds" in again.why

    asyncio.run(main())
    assert server.requests[0].aborted.wait(30)
    server.check(breaks=0)


def test_a_server_says_how_long_to_wait(place: Path, server: ProviderServer) -> None:
    """In either header, with a little more so that not all come at once; a stop ends the wait."""
    server.script = [FAIL["429-ms"], say("never")]

    async def main() -> None:
        events: list[Event] = []
        async with served(place, configured(server), jitter=1.0) as (host, _):
            conv = await host.new("chat")
            for failure, seconds in ((FAIL["429-ms"], 1.65), (FAIL["429"], 7.7)):
                server.script = [failure, say("never")]
                events.clear()
                turn = asyncio.create_task(host.say(conv, [clew.user("hi")], emit=events.append))
                await until(lambda: bool(retries(events)))
                assert retries(events)[0].seconds == pytest.approx(seconds)
                assert await host.stop(conv)
                report = await turn
                assert (report.state, report.text) == ("interrupted", "")
            assert await told(conv) == ["user: hi", "user: hi"]

    asyncio.run(main())
    assert len(server.requests) == 2
    server.check(breaks=0)


def test_waits_grow_and_end(place: Path, server: ProviderServer) -> None:
    """After `limits.retries` tries the turn has failed; the next message has one of its own."""
    server.script = [FAIL["500"]] * 3

    async def main() -> None:
        config = configured(server, limits=LimitsConfig(retries=3))
        async with served(place, config) as (host, _):
            conv = await host.new("chat")
            events: list[Event] = []
            with pytest.raises(ServerFailed):
                await host.say(conv, [clew.user("hi")], emit=events.append)
            assert len(retries(events)) == 2
            assert len(server.requests) == 3
            await _failed(conv, "ServerFailed 500")
            server.script = [say("Now.")]
            assert (await host.say(conv, [clew.user("again")])).text == "Now."
            assert await told(conv) == ["user: hi", "user: again", "assistant: Now."]

    asyncio.run(main())
    server.check(breaks=0)


def test_a_server_that_comes_back_is_asked_again(place: Path, server: ProviderServer) -> None:
    server.script = [say("Hello."), say("Here I am.")]

    async def main() -> None:
        events: list[Event] = []

        def emit(event: Event) -> None:
            events.append(event)
            if isinstance(event, Retrying):
                server.resume()

        async with served(place, configured(server)) as (host, _):
            conv = await host.new("chat")
            await host.say(conv, [clew.user("hi")])
            server.pause()
            report = await host.say(conv, [clew.user("there?")], emit=emit)
            assert report.text == "Here I am."
        (again,) = retries(events)
        assert "no connection" in again.why

    asyncio.run(main())
    server.check(breaks=0)


def test_a_server_that_is_gone(place: Path, server: ProviderServer) -> None:
    async def main() -> None:
        async with served(place, configured(server, limits=LimitsConfig(retries=2))) as (host, _):
            conv = await host.new("chat")
            server.pause()
            with pytest.raises(Unreachable, match="base_url"):
                await host.say(conv, [clew.user("hi")])
            await _failed(conv, "Unreachable")

    asyncio.run(main())


async def _failed(conv: AsyncConversation, error: str) -> None:
    """The newest turn is closed as failed, with what it was."""
    turn = (await conv.turns())[0]
    assert turn.state == "failed"
    assert turn.error
    assert (await conv.info()).turn is None
    newest = max(await conv.calls(), key=lambda each: each.number)
    assert (newest.state, newest.error) == ("failed", error)


# ---------------------------------------------------------------------- what waiting does not help


HOPELESS: dict[str, tuple[type[ProviderError], str]] = {
    "401": (BadKey, "clew config key"),
    "403": (BadKey, "may not do that"),
    "404": (NoModel, "/model"),
    "404-page": (NotConfigured, "base_url"),
    "402": (OutOfCredit, "Pay at main"),
    "quota": (OutOfCredit, "Pay at main"),
    "400": (BadRequest, "settings"),
}


@pytest.mark.parametrize("failure", HOPELESS)
@pytest.mark.parametrize("api", APIS)
def test_what_waiting_does_not_help_ends_the_turn_at_once(
    place: Path, server: ProviderServer, api: Kind, failure: str
) -> None:
    """The error says what to do; the person's words stay, and the next turn is told of it once."""
    kind, remedy = HOPELESS[failure]
    server.script = [FAIL[failure], say("Mended."), say("Yes.")]

    async def main() -> None:
        events: list[Event] = []
        async with served(place, configured(server, api=api)) as (host, _):
            conv = await host.new("chat")
            with pytest.raises(kind, match=remedy) as error:
                await host.say(conv, [clew.user("hi there")], emit=events.append)
            assert KEY not in str(error.value)
            assert "sk-" not in str(error.value)
            assert len(server.requests) == 1
            status = error.value.status
            await _failed(conv, f"{kind.__name__} {status}")
            ended = events[-1]
            assert isinstance(ended, TurnEnded)
            assert (ended.state, ended.waiting) == ("failed", 0)
            assert (await host.say(conv, [clew.user("again")])).text == "Mended."
            await host.say(conv, [clew.user("sure?")])
            assert await told(conv) == [
                "user: hi there", "user: again", "assistant: Mended.", "user: sure?",
                "assistant: Yes.",
            ]  # fmt: skip

    asyncio.run(main())
    second, third = (str(request.messages) for request in server.requests[1:])
    assert "ended early" in second
    assert "ended early" not in third
    server.check(breaks=0)


@pytest.mark.parametrize("failure", ["401", "429-text", "html", "404"])
def test_the_next_server_is_asked(
    place: Path, server: ProviderServer, other: ProviderServer, failure: str
) -> None:
    """At once where waiting would not help or would take too long, else after the tries."""
    tries = 2 if failure == "html" else 1
    server.script = [FAIL[failure]] * tries
    other.script = [say("From the other."), say("unused")]

    async def main() -> None:
        events: list[Event] = []
        config = configured(server, other, limits=LimitsConfig(retries=2))
        async with served(place, config) as (host, _):
            conv = await host.new("chat")
            report = await host.say(conv, [clew.user("hi")], emit=events.append)
            assert report.text == "From the other."
            rows = sorted(await conv.calls(), key=lambda each: each.number)
            assert [row.state for row in rows] == ["failed", "done"]
            assert await told(conv) == ["user: hi", "assistant: From the other."]
            server.script = [say("I am back.")]
            again = await host.say(conv, [clew.user("and now?")])
            assert again.text == "I am back.", "each turn begins with the first model"
        assert retries(events)[-1].model.provider == "other1"

    asyncio.run(main())
    assert len(server.requests) == tries + 1
    assert len(other.requests) == 1
    server.check(breaks=0)
    other.check(breaks=0)


def test_a_half_answer_of_the_first_server_is_no_part_of_the_seconds(
    place: Path, server: ProviderServer, other: ProviderServer
) -> None:
    server.script = [say(HALF, fault="cut")]
    other.script = [say(WHOLE)]

    async def main() -> None:
        config = configured(server, other, limits=LimitsConfig(retries=1))
        async with served(place, config) as (host, _):
            conv = await host.new("chat")
            assert (await host.say(conv, [clew.user("hi")])).text == WHOLE
            assert await told(conv) == ["user: hi", f"assistant: {WHOLE}"]

    asyncio.run(main())
    other.check(breaks=0)


def test_a_failure_behind_a_tool_does_not_run_it_again(
    place: Path, server: ProviderServer, other: ProviderServer
) -> None:
    server.script = [use(call("act", id="a")), FAIL["500"], say(HALF, fault="cut"), FAIL["401"]]
    other.script = [say("Done by another.")]

    async def main() -> None:
        act = Made("act", lambda _: "acted")
        async with served(place, configured(server, other), act) as (host, _):
            conv = await host.new("chat")
            assert (await host.say(conv, [clew.user("go")])).text == "Done by another."
            assert len(act.calls) == 1
            assert await told(conv) == [
                "user: go", "assistant: act()", "tool: acted", "assistant: Done by another.",
            ]  # fmt: skip

    asyncio.run(main())
    assert texts(other.requests[0].messages)[-1] == "acted"
    server.check(breaks=0)
    other.check()


# ---------------------------------------------------------------------- too large


OVERFLOWS = [*sorted(name for name in FAIL if name.startswith("overflow")), "429-large"]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("words", OVERFLOWS)
def test_an_overflow_is_compacted_and_asked_again(
    place: Path, server: ProviderServer, api: Kind, words: str
) -> None:
    """In the words of each server. One compaction, one break of the prefix, one answer."""

    async def main() -> None:
        events: list[Event] = []
        async with served(place, configured(server, api=api)) as (host, _):
            conv = await host.new("chat")
            await _filled(conv)
            server.script = [say("Warm."), FAIL[words], say("It fits now."), say("Still.")]
            await host.say(conv, [clew.user("the first")])
            report = await host.say(conv, [clew.user("the last one")], emit=events.append)
            assert report.text == "It fits now."
            await host.say(conv, [clew.user("and on")])
            assert [each.kind for each in await conv.compactions()] == ["ours"]
            lines = await told(conv)
            assert lines[-6:] == [
                "user: the first", "assistant: Warm.", "user: the last one",
                "assistant: It fits now.", "user: and on", "assistant: Still.",
            ]  # fmt: skip
            newest = max(await conv.calls(), key=lambda each: each.number)
            assert newest.generation == 1
        assert not retries(events), "compacting is no retry of the same"

    asyncio.run(main())
    _, refused, smaller, _ = server.requests
    assert len(smaller.raw) < len(refused.raw) * 0.7
    assert "the last one" in str(smaller.messages[-1])
    server.check(breaks=1)


def test_a_request_that_is_still_too_large_has_failed(
    place: Path, server: ProviderServer, other: ProviderServer
) -> None:
    """It is made smaller once; then the next model is asked, which may have a larger window."""
    overflow = FAIL["overflow-openai"]

    async def main() -> None:
        async with served(place, configured(server)) as (host, _):
            conv = await host.new("chat")
            await _filled(conv)
            server.script = [overflow, overflow]
            with pytest.raises(Overflow):
                await host.say(conv, [clew.user("one")])
            await _failed(conv, "Overflow 400")
            id = conv.id
        async with served(place, configured(server, other)) as (host, profile):
            conv = await profile.open(id)
            server.script = [overflow, overflow]
            other.script = [say("It fits here.")]
            assert (await host.say(conv, [clew.user("two")])).text == "It fits here."

    asyncio.run(main())
    other.check()


async def _filled(conv: AsyncConversation, turns: int = 30) -> None:
    """A conversation of some 20,000 tokens, without asking anybody for it."""
    drafts = [
        draft
        for n in range(turns)
        for draft in (
            clew.user(f"Question {n}: what about part {n}? " + f"detail {n} " * 60),
            clew.assistant(f"Part {n} is done. " + f"It took {n} steps. " * 80),
        )
    ]
    await conv.append(drafts)


# ---------------------------------------------------------------------- stops


@pytest.mark.parametrize("api", APIS)
def test_a_stop_hangs_up_at_once(place: Path, server: ProviderServer, api: Kind) -> None:
    """What was streamed is kept and marked; the connection is closed while the server still has
    something to say."""
    server.script = [
        say("Once upon a time there was a", gate=Gate(), hold_at=5), say("And so on.")
    ]  # fmt: skip

    async def main() -> None:
        events: list[Event] = []
        async with served(place, configured(server, api=api)) as (host, _):
            conv = await host.new("chat")
            turn = asyncio.create_task(host.say(conv, [clew.user("tell")], emit=events.append))
            await until(lambda: streamed(events) != "")
            assert await host.stop(conv)
            report = await turn
            assert await asyncio.to_thread(server.requests[0].aborted.wait, 30)
            assert report.state == "interrupted"
            assert "Once upon a time".startswith(report.text[:10])
            assert report.text
            lines = await told(conv)
            assert lines == ["user: tell", f"assistant: {report.text}~"]
            assert (await conv.info()).turn is None
            again = await host.say(conv, [clew.user("go on")])
            assert again.text == "And so on."
        assert events[-2] == Answered(2, (), events[-2].usage, events[-2].cost, partial=True)

    asyncio.run(main())
    assert not server.requests[0].answered.is_set()
    assert texts(server.requests[1].messages)[-2:][0].startswith(("Once", "[{"))
    server.check(breaks=0)


@pytest.mark.parametrize("how", ["stop", "cancel", "close"])
def test_a_stop_before_the_first_word(place: Path, server: ProviderServer, how: str) -> None:
    """By a person, by the end of whoever waits, by the end of the host."""
    server.script = [HANG]

    async def main() -> None:
        async with served(place, configured(server)) as (host, _):
            conv = await host.new("chat")
            turn = asyncio.create_task(host.say(conv, [clew.user("tell")]))
            await asyncio.to_thread(server.wait_for, 1)
            await _ended(host, conv, turn, how)
            assert server.requests[0].aborted.wait(30)
            assert await told(conv) == ["user: tell"]
            (row,) = await conv.turns()
            assert row.state == "interrupted"
            assert (await conv.info()).turn is None

    asyncio.run(main())
    server.check(breaks=0)


async def _ended(host: Host, conv: AsyncConversation, turn: asyncio.Task[Any], how: str) -> None:
    if how == "cancel":
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        return
    await (host.stop(conv) if how == "stop" else host.close())
    assert (await turn).state == "interrupted"


@pytest.mark.parametrize("api", APIS)
def test_a_stop_within_the_arguments_of_a_call(
    place: Path, server: ProviderServer, api: Kind
) -> None:
    """A call that was not whole is no call: nothing runs, nothing is stored of it."""
    gate = Gate()
    arguments = {"what": "a long argument that never ends, " * 4}
    server.script = [
        use(call("act", arguments, "a"), text="I act.", gate=gate, hold_at=8), say("Fine."),
    ]  # fmt: skip

    async def main() -> None:
        act = Made("act", lambda _: "acted")
        events: list[Event] = []
        async with served(place, configured(server, api=api), act) as (host, _):
            conv = await host.new("chat")
            turn = asyncio.create_task(host.say(conv, [clew.user("go")], emit=events.append))
            await until(lambda: streamed(events) == "I act.")
            await host.stop(conv)
            assert (await turn).state == "interrupted"
            assert act.calls == []
            assert await told(conv) == ["user: go", "assistant: I act.~"]
            parts = [type(part) for message in await log(conv) for part in message.parts]
            assert parts == [Text, Text]
            assert (await host.say(conv, [clew.user("well?")])).text == "Fine."

    asyncio.run(main())
    server.check(breaks=0)


# ---------------------------------------------------------------------- strange answers


@pytest.mark.parametrize("api", APIS)
def test_arguments_that_are_no_json_are_an_error_for_the_model(
    place: Path, server: ProviderServer, api: Kind
) -> None:
    """The next request is valid all the same, and says what was wrong."""
    server.script = [use(call("act", '{"what": "half', "a")), say("I see.")]

    async def main() -> None:
        act = Made("act", lambda _: "acted")
        async with served(place, configured(server, api=api), act) as (host, _):
            conv = await host.new("chat")
            assert (await host.say(conv, [clew.user("go")])).text == "I see."
            assert act.calls == []
            (result,) = [p for m in await log(conv) for p in m.parts if isinstance(p, ToolResult)]
            assert result.is_error

    asyncio.run(main())
    server.check(breaks=0)


def test_ids_of_calls_that_come_again_in_later_answers(place: Path, server: ProviderServer) -> None:
    """Small servers number their calls from 0 in each answer: each has its own result."""
    server.script = [
        use(call("act", {"n": 1}, "call_0")), use(call("act", {"n": 2}, "call_0")),
        use(call("act", {"n": 3}, None)), say("Three."),
    ]  # fmt: skip

    async def main() -> None:
        act = Made("act", lambda arguments: f"acted {arguments['n']}")
        async with served(place, configured(server), act) as (host, _):
            conv = await host.new("chat")
            assert (await host.say(conv, [clew.user("go")])).text == "Three."
            assert [each["n"] for each in act.calls] == [1, 2, 3]
            lines = await told(conv)
            assert lines[2::2] == ["tool: acted 1", "tool: acted 2", "tool: acted 3"]
            calls = [p.id for m in await log(conv) for p in m.parts if isinstance(p, ToolCall)]
            results = [
                p.call_id for m in await log(conv) for p in m.parts if isinstance(p, ToolResult)
            ]
            assert calls == results

    asyncio.run(main())
    server.check(breaks=0)


def test_a_field_that_a_server_refuses_is_left_out_for_good(
    place: Path, server: ProviderServer
) -> None:
    server.script = [FAIL["400-cache-key"], say("One."), say("Two.")]

    async def main() -> None:
        events: list[Event] = []
        async with served(place, configured(server)) as (host, _):
            conv = await host.new("chat")
            for said in ("a", "b"):
                await host.say(conv, [clew.user(said)], emit=events.append)
            assert len(await conv.calls()) == 2
        assert not retries(events)

    asyncio.run(main())
    has = ["prompt_cache_key" in request.json for request in server.requests]
    assert has == [True, False, False]


def test_a_failure_with_a_body_of_nothing(place: Path, server: ProviderServer) -> None:
    server.script = [Failure(500, "", {}), Failure(418, "", {})]

    async def main() -> None:
        async with served(place, configured(server)) as (host, _):
            conv = await host.new("chat")
            with pytest.raises(BadRequest):
                await host.say(conv, [clew.user("hi")])

    asyncio.run(main())


def test_a_turn_in_which_everything_goes_wrong_once(place: Path, server: ProviderServer) -> None:
    """One after the other, on one request; the class of each is told."""
    failures = [say(HALF, fault=fault) for fault in ("cut", "malformed", "error", "no-finish")]
    server.script = [FAIL["429-now"], *failures, FAIL["500"], say(WHOLE)]

    async def main() -> None:
        events: list[Event] = []
        config = configured(server, limits=LimitsConfig(retries=7), timeout=5.0)
        async with served(place, config) as (host, _):
            conv = await host.new("chat")
            report = await host.say(conv, [clew.user("hi")], emit=events.append)
            assert report.text == WHOLE
            assert await told(conv) == ["user: hi", f"assistant: {WHOLE}"]
            (row,) = await conv.calls()
            assert row.state == "done"
        assert len(retries(events)) == 6

    asyncio.run(main())
    assert len({request.raw for request in server.requests}) == 1
    server.check(breaks=0)
