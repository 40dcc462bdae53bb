"""Turns as a host runs them: answered, stopped, steered, limited, gone on with."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from hosting import QUIET, Made, calls, hosted, kinds, log, told, until

import clew
import clew.aio
from clew.config.values import (
    ChatConfig,
    CompactionConfig,
    Config,
    LimitsConfig,
    ToolsConfig,
)
from clew.domain.parts import ToolResult
from clew.host.events import Event, Notice, Retrying, Steered, ToolFinished
from clew.host.host import Host
from clew.host.points import POINTS
from clew.providers.api import Body, Model, Price, Reply, Stop
from clew.providers.errors import BadKey, BadRequest, Overflow, RateLimited, ServerFailed
from clew.providers.registry import Providers
from clew.testing.provider import Hold, ScriptedProvider
from clew.tools.api import Tool
from clew.tools.errors import ToolsUnavailable
from clew.tools.toolbox import Toolbox

NO_TITLES = ChatConfig(titles=False)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def test_a_turn_is_answered_and_its_events_tell_it(place: Path) -> None:
    async def main() -> None:
        events: list[Event] = []
        points: list[str] = []
        script = ScriptedProvider("Hello there.")
        async with hosted(place, script, watch=points.append) as (host, _):
            conv = await host.new("chat")
            report = await host.say(conv, [clew.user("hi")], emit=events.append)
            assert (report.state, report.text, report.seqs) == ("done", "Hello there.", (1, 2))
            assert await told(conv) == ["user: hi", "assistant: Hello there."]
        assert [kind for kind in kinds(events) if kind != "TextDelta"] == [
            "TurnStarted", "CallStarted", "Answered", "TurnEnded",
        ]  # fmt: skip
        assert points == [
            "received", "begun", "context", "asked", "streaming", "answered", "finished",
        ]  # fmt: skip
        assert set(points) <= set(POINTS)

    asyncio.run(main())


def test_each_call_is_accounted_for(place: Path) -> None:
    """Usage, cost, latency, the beginning of the request and our own count of it."""
    price = Price(input=2, output=8, cached=1)
    model = Model(name="m", provider="scripted", window=128_000, price=price)

    async def main() -> None:
        reply = Reply(
            parts=(clew.Text("done"),), stop="stop", usage=clew.Usage(1000, 100, cached=400)
        )
        async with hosted(place, ScriptedProvider(reply, model=model)) as (host, _):
            conv = await host.new("chat")
            report = await host.say(conv, [clew.user("hi")])
            (call,) = await conv.calls()
            assert call.usage == report.usage == clew.Usage(1000, 100, cached=400)
            assert call.cost == report.cost == pytest.approx((600 * 2 + 400 * 1 + 100 * 8) / 1e6)
            assert call.prefix_hash is not None
            assert call.latency is not None
            assert (call.generation, call.up_to_seq) == (0, 1)
            assert call.expected
            assert call.state == "done"

    asyncio.run(main())


def test_tools_run_at_once_and_their_results_follow_their_calls(place: Path) -> None:
    async def main() -> None:
        both = asyncio.Barrier(2)

        async def meet(_: object) -> str:
            await both.wait()
            return "met"

        one, two = Made("one", meet), Made("two", meet)
        script = ScriptedProvider(calls(("a", "one"), ("b", "two")), "Both are done.")
        async with hosted(place, script, one, two) as (host, _):
            conv = await host.new("chat")
            report = await host.say(conv, [clew.user("go")])
            assert report.text == "Both are done."
            assert await told(conv) == [
                "user: go", "assistant: one() two()", "tool: met", "tool: met",
                "assistant: Both are done.",
            ]  # fmt: skip
            assert {m.turn for m in await log(conv)} == {1}
        sent = script.requests[1].payload["messages"]
        assert [m["role"] for m in sent][-3:] == ["assistant", "tool", "tool"]

    asyncio.run(main())


def test_a_tool_that_fails_is_a_result(place: Path) -> None:
    def broken(_: object) -> str:
        raise ValueError("no such file")

    async def main() -> None:
        script = ScriptedProvider(calls(("a", "broken"), ("b", "unknown")), "I see.")
        async with hosted(place, script, Made("broken", broken)) as (host, _):
            conv = await host.new("chat")
            await host.say(conv, [clew.user("go")])
            results = [p for m in await log(conv) for p in m.parts if isinstance(p, ToolResult)]
            assert [r.is_error for r in results] == [True, True]

    asyncio.run(main())


def test_a_stop_ends_the_call_at_once_and_keeps_what_was_said(place: Path) -> None:
    async def main() -> None:
        events: list[Event] = []
        hold = Hold("Once upon ", "a time")
        script = ScriptedProvider(hold, "And on.")
        async with hosted(place, script) as (host, _):
            conv = await host.new("chat")
            turn = asyncio.create_task(host.say(conv, [clew.user("tell")], emit=events.append))
            await hold.reached.come()
            assert await host.stop(conv)
            report = await turn
            assert hold.ended.is_set()
            assert script.open == 0
            assert (report.state, report.text) == ("interrupted", "Once upon a time")
            assert await told(conv) == ["user: tell", "assistant: Once upon a time~"]
            (call,) = await conv.calls()
            assert (call.state, call.error) == ("failed", "stopped by a person")
            assert (await conv.info()).turn is None
            again = await host.say(conv, [clew.user("go on")])
            assert again.text == "And on."
        assert kinds(events)[-2:] == ["Answered", "TurnEnded"]

    asyncio.run(main())


def test_a_caller_that_is_cancelled_stops_its_turn(place: Path) -> None:
    async def main() -> None:
        hold = Hold("Once")
        async with hosted(place, ScriptedProvider(hold)) as (host, _):
            conv = await host.new("chat")
            turn = asyncio.create_task(host.say(conv, [clew.user("tell")]))
            await hold.reached.come()
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn
            assert await told(conv) == ["user: tell", "assistant: Once~"]
            assert (await conv.turns())[0].state == "interrupted"

    asyncio.run(main())


def test_a_stop_while_a_tool_runs_gives_its_call_a_result(place: Path) -> None:
    async def main() -> None:
        running = asyncio.Event()

        async def slow(_: object) -> str:
            running.set()
            await asyncio.sleep(3600)
            return "never"

        script = ScriptedProvider(calls(("a", "slow"), ("b", "quick")), "I see.")
        async with hosted(place, script, Made("slow", slow), Made("quick", lambda _: "quick")) as (
            host,
            _,
        ):
            conv = await host.new("chat")
            events: list[Event] = []
            turn = asyncio.create_task(host.say(conv, [clew.user("go")], emit=events.append))
            await running.wait()
            await until(lambda: any(isinstance(event, ToolFinished) for event in events))
            await host.stop(conv)
            assert (await turn).state == "interrupted"
            lines = await told(conv)
            assert lines[2] == "tool: quick"
            assert "stopped by the person" in lines[3]
            await host.say(conv, [clew.user("well?")])
        roles = [m["role"] for m in script.requests[1].payload["messages"]]
        assert roles == ["system", "user", "assistant", "tool", "tool", "assistant", "user"]

    asyncio.run(main())


def test_words_of_a_person_enter_the_turn_at_the_next_step(place: Path) -> None:
    """Steered: behind the results, before the next call; the one answer is to both."""

    async def main() -> None:
        events: list[Event] = []
        running, go = asyncio.Event(), asyncio.Event()

        async def slow(_: object) -> str:
            running.set()
            await go.wait()
            return "slow"

        script = ScriptedProvider(calls(("a", "slow")), "Both.")
        async with hosted(place, script, Made("slow", slow)) as (host, _):
            conv = await host.new("chat")
            turn = asyncio.create_task(host.say(conv, [clew.user("go")], emit=events.append))
            await running.wait()
            queued = await host.say(conv, [clew.user("and this")])
            assert queued.state == "queued"
            go.set()
            assert (await turn).text == "Both."
            assert await told(conv) == [
                "user: go", "assistant: slow()", "tool: slow", "user: and this",
                "assistant: Both.",
            ]  # fmt: skip
        assert any(isinstance(event, Steered) for event in events)

    asyncio.run(main())


@pytest.mark.parametrize("how", ["queue", "busy"])
def test_queued_words_wait_for_a_turn_of_their_own(place: Path, how: str) -> None:
    """By the one who sends them, or by the configuration."""
    busy = ChatConfig(titles=False, busy="queue" if how == "busy" else "steer")

    async def main() -> None:
        running, go = asyncio.Event(), asyncio.Event()

        async def slow(_: object) -> str:
            running.set()
            await go.wait()
            return "slow"

        script = ScriptedProvider(calls(("a", "slow")), "First.", "Second.")
        config = Config(chat=busy)
        async with hosted(place, script, Made("slow", slow), config=config) as (host, _):
            conv = await host.new("chat")
            turn = asyncio.create_task(host.say(conv, [clew.user("go")]))
            await running.wait()
            await host.say(conv, [clew.user("then this")], queue=how == "queue")
            go.set()
            assert (await turn).text == "First."
            assert await told(conv) == [
                "user: go", "assistant: slow()", "tool: slow", "assistant: First.",
                "user: then this", "assistant: Second.",
            ]  # fmt: skip
            assert [t.state for t in await conv.turns()] == ["done", "done"]

    asyncio.run(main())


def test_what_waiting_helps_against_is_tried_again(place: Path) -> None:
    async def main() -> None:
        events: list[Event] = []
        limited = RateLimited("slow down", provider="scripted", status=429, retry_after=0.01)
        script = ScriptedProvider(limited, ServerFailed("cut", provider="scripted"), "At last.")
        async with hosted(place, script) as (host, _):
            host_jitter(host, 0.0)
            conv = await host.new("chat")
            report = await host.say(conv, [clew.user("hi")], emit=events.append)
            assert report.text == "At last."
            (call,) = await conv.calls()
            assert call.state == "done"
        assert [e.why for e in events if isinstance(e, Retrying)] == ["slow down", "cut"]

    asyncio.run(main())


def host_jitter(host: object, value: float) -> None:
    host._services.jitter = lambda: value  # type: ignore[attr-defined]


def test_the_next_model_is_asked_when_one_fails(place: Path) -> None:
    async def main() -> None:
        first = ScriptedProvider(BadKey("no key", provider="scripted", status=401))
        other = ScriptedProvider("From the other.", name="other")
        config = Config(chat=NO_TITLES, fallback=["nowhere/x", "other/scripted"])
        async with hosted(place, first, config=config, more=[other]) as (host, _):
            conv = await host.new("chat")
            events: list[Event] = []
            report = await host.say(conv, [clew.user("hi")], emit=events.append)
            assert report.text == "From the other."
            states = [(c.state, c.error) for c in await conv.calls()]
            assert states == [("failed", "BadKey 401"), ("done", None)]
            assert any(isinstance(e, Notice) and "nowhere/x" in e.text for e in events)

    asyncio.run(main())


def test_a_turn_nobody_could_answer_is_closed_as_failed(place: Path) -> None:
    """The error goes to the caller; the next message has a turn of its own."""

    async def main() -> None:
        refused = BadKey("the key is wrong; export KEY", provider="scripted", status=401)
        script = ScriptedProvider(refused, "Now it works.")
        async with hosted(place, script) as (host, _):
            conv = await host.new("chat")
            with pytest.raises(BadKey):
                await host.say(conv, [clew.user("hi")])
            (turn,) = await conv.turns()
            assert (turn.state, turn.error) == ("failed", "the key is wrong; export KEY")
            assert (await host.say(conv, [clew.user("again")])).text == "Now it works."
        system, *rest = script.requests[1].payload["messages"]
        assert "ended early: the key is wrong" in str(rest[-1])
        assert "ended early" not in str(rest[:-1]) + str(system)

    asyncio.run(main())


def test_an_overflow_is_compacted_and_asked_again(place: Path) -> None:
    async def main() -> None:
        filler = ["word " * 400] * 30
        overflow = Overflow("too large", provider="scripted", status=400)
        script = ScriptedProvider(*filler, overflow, "It fits now.")
        async with hosted(place, script) as (host, _):
            conv = await host.new("chat")
            for n in range(30):
                await host.say(conv, [clew.user(f"question {n}")])
            report = await host.say(conv, [clew.user("the last one")])
            assert report.text == "It fits now."
            assert [c.kind for c in await conv.compactions()] == ["ours"]
            assert (await conv.calls())[-1].generation == 1
        before, after = (len(str(r.payload)) for r in script.requests[-2:])
        assert after < before

    asyncio.run(main())


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (LimitsConfig(steps=3, repeats=0), "limits.steps"),
        (LimitsConfig(turn_tokens=250, repeats=0), "limits.turn_tokens"),
        (LimitsConfig(day_tokens=250, repeats=0), "limits.day_tokens"),
        (LimitsConfig(repeats=3), "the same call 3 times"),
    ],
)
def test_a_turn_is_stopped_at_its_limits(place: Path, limits: LimitsConfig, said: str) -> None:
    async def main() -> None:
        events: list[Event] = []
        script = ScriptedProvider(calls(("a", "again")))
        config = Config(chat=NO_TITLES, limits=limits)
        again = Made("again", lambda _: "the same")
        async with hosted(place, script, again, config=config) as (host, _):
            conv = await host.new("chat")
            report = await host.say(conv, [clew.user("loop")], emit=events.append)
            assert report.state == "failed"
            assert said in (report.error or "")
            assert len(again.calls) == 3
            assert (await log(conv))[-1].role == "tool"
        assert any(isinstance(e, Notice) and said in e.text for e in events)

    asyncio.run(main())


def test_a_call_that_must_be_allowed_waits_for_a_person(place: Path) -> None:
    """The right is free meanwhile, and another host, later, goes on."""

    async def main() -> None:
        careful = Made("careful", lambda _: "did it", default="ask")
        quick = Made("quick", lambda _: "quick")
        script = ScriptedProvider(calls(("a", "careful"), ("b", "quick")), "Done.")
        events: list[Event] = []
        async with hosted(place, script, careful, quick) as (host, _):
            conv = await host.new("chat")
            report = await host.say(conv, [clew.user("go")], emit=events.append)
            assert (report.state, careful.calls, len(quick.calls)) == ("waiting", [], 1)
            assert kinds(events)[-2:] == ["Asked", "TurnEnded"]
            assert await host.go_on(conv) is None, "nobody has answered"
            id = conv.id
        async with hosted(place, script, careful, quick) as (host, profile):
            conv = await profile.open(id)
            (ask,) = await conv.approvals()
            assert (ask.call_id, ask.name, ask.state) == ("a", "careful", "asked")
            queued = await host.say(conv, [clew.user("meanwhile")])
            assert queued.state == "queued"
            assert await host.answer(conv, "a", True, by="me")
            assert not await host.answer(conv, "a", False)
            report = await host.go_on(conv)
            assert report is not None
            assert report.text == "Done."
            assert len(careful.calls) == len(quick.calls) == 1
            assert await told(conv) == [
                "user: go", "assistant: careful() quick()", "tool: quick", "tool: did it",
                "user: meanwhile", "assistant: Done.",
            ]  # fmt: skip

    asyncio.run(main())


def test_a_call_that_was_refused_says_so(place: Path) -> None:
    async def main() -> None:
        careful = Made("careful", lambda _: "did it", default="ask")
        script = ScriptedProvider(calls(("a", "careful")), "As you like.")
        async with hosted(place, script, careful) as (host, _):
            conv = await host.new("chat")
            await host.say(conv, [clew.user("go")])
            await host.answer(conv, "a", False)
            await host.go_on(conv)
            assert careful.calls == []
            assert "was not allowed" in (await told(conv))[2]

    asyncio.run(main())


def test_a_tool_that_was_allowed_for_good_is_not_asked_again(place: Path) -> None:
    async def main() -> None:
        careful = Made("careful", lambda _: "did it", default="ask")
        script = ScriptedProvider(calls(("a", "careful")), calls(("b", "careful")), "Done.")
        config = Config(chat=NO_TITLES, limits=LimitsConfig(repeats=0))
        async with hosted(place, script, careful, config=config) as (host, _):
            conv = await host.new("chat")
            await host.say(conv, [clew.user("go")])
            await host.answer(conv, "a", True, always=True)
            report = await host.go_on(conv)
            assert report is not None
            assert report.text == "Done."
            assert len(careful.calls) == 2
            other = await host.new("chat")
            assert await other.allowed_tools() == ()

    asyncio.run(main())


def test_policy_decides_before_the_tool(place: Path) -> None:
    async def main() -> None:
        never = Made("never", lambda _: "did it")
        config = Config(chat=NO_TITLES, tools=ToolsConfig(policy={"never": "deny"}))
        script = ScriptedProvider(calls(("a", "never")), "I see.")
        async with hosted(place, script, never, config=config) as (host, _):
            conv = await host.new("chat")
            await host.say(conv, [clew.user("go")])
            assert never.calls == []
            assert "configuration does not allow" in (await told(conv))[2]

    asyncio.run(main())


def test_a_message_that_comes_again_gets_its_first_answer(place: Path) -> None:
    async def main() -> None:
        script = ScriptedProvider("Once.")
        async with hosted(place, script) as (host, _):
            conv = await host.new("chat")
            first = await host.say(conv, [clew.user("hi", key="u1")])
            again = await host.say(conv, [clew.user("hi", key="u1")])
            assert (again.state, again.text, again.seqs) == ("known", "Once.", first.seqs)
            assert len(script.requests) == 1

    asyncio.run(main())


def test_words_that_nobody_answered_are_gone_on_with(place: Path) -> None:
    """Edited or retried messages, and those that were added without a turn."""

    async def main() -> None:
        script = ScriptedProvider("First.", "Second.")
        async with hosted(place, script) as (host, _):
            conv = await host.new("chat")
            await host.say(conv, [clew.user("hi")])
            assert await host.go_on(conv) is None
            uid = (await conv.message(1)).uid
            await conv.retry(uid)
            report = await host.go_on(conv)
            assert report is not None
            assert report.text == "Second."
            assert await told(conv) == ["user: hi", "assistant: Second."]

    asyncio.run(main())


def test_s17_1_a_stop_while_a_summary_is_written_changes_nothing(place: Path) -> None:
    """Before the request: the turn ends, no compaction is made, the next turn makes it."""

    async def main() -> None:
        events: list[Event] = []
        hold = Hold("a summary")
        model = Model(name="scripted", provider="scripted", window=16_000)
        script = ScriptedProvider("word " * 900, model=model)
        writer = ScriptedProvider(hold, name="writer")
        config = Config(
            chat=NO_TITLES, compaction=CompactionConfig(high=0.5, low=0.2, model="writer/scripted")
        )
        async with hosted(place, script, config=config, more=[writer]) as (host, _):
            conv = await host.new("chat")
            await conv.add([
                {"role": role, "content": "word " * 900}
                for _ in range(5) for role in ("user", "assistant")
            ])  # fmt: skip
            turn = asyncio.create_task(host.say(conv, [clew.user("go")], emit=events.append))
            await hold.reached.come()
            assert await host.stop(conv)
            report = await turn
            assert (report.state, report.text) == ("interrupted", "")
            assert script.requests == []
            assert await conv.compactions() == ()
            assert [a.state for a in await conv.attempts()] == ["cancelled"]
            assert (await conv.turns())[0].state == "interrupted"
        assert "Compacting" in kinds(events)

    asyncio.run(main())


def test_s16_5_a_stop_after_the_reply_cancels_the_compaction(place: Path) -> None:
    """The conversation is free meanwhile; the stop finds the attempt in the store."""

    async def main() -> None:
        hold = Hold("a summary")
        model = Model(name="scripted", provider="scripted", window=16_000)
        script = ScriptedProvider("word " * 3_000, model=model)
        writer = ScriptedProvider(hold, name="writer")
        config = Config(
            chat=NO_TITLES, compaction=CompactionConfig(high=0.5, low=0.2, model="writer/scripted")
        )
        async with hosted(place, script, config=config, more=[writer]) as (host, _):
            conv = await host.new("chat")
            await conv.add([
                {"role": role, "content": "word " * 600}
                for _ in range(5) for role in ("user", "assistant")
            ])  # fmt: skip
            report = await host.say(conv, [clew.user("go")])
            assert report.state == "done"
            assert (await conv.info()).turn is None
            await hold.reached.come()
            assert await host.stop(conv)
            await hold.ended.come()
            assert [a.state for a in await conv.attempts()] == ["cancelled"]
            assert not await host.stop(conv)

    asyncio.run(main())


def test_a_host_whose_right_was_taken_writes_nothing_more(place: Path) -> None:
    """It is told so by the store, within a second, and ends its model call."""

    async def main() -> None:
        hold = Hold("half an ans", then="wer")
        slow, quick = ScriptedProvider(hold), ScriptedProvider("A whole answer.")
        async with (
            hosted(place, slow) as (host, _), hosted(place, quick) as (other, profile)
        ):  # fmt: skip
            conv = await host.new("chat")
            turn = asyncio.create_task(host.say(conv, [clew.user("hi")]))
            await hold.reached.come()
            theirs = await profile.open(conv.id)
            assert await theirs.interrupt_turn("taken")
            report = await other.say(theirs, [clew.user("hello?")])
            assert report.text == "A whole answer."
            lost = await turn
            assert (lost.state, lost.error) == ("interrupted", "another host has taken over")
            assert hold.ended.is_set()
            hold.let_go()
            lines = [line for line in await told(conv) if "half" not in line]
            assert lines == ["user: hi", "user: hello?", "assistant: A whole answer."]

    asyncio.run(main())


def test_another_process_stops_a_turn(place: Path) -> None:
    """What was streamed until then is kept, but for what came in the last second."""

    async def main() -> None:
        hold = Hold("Once upon a time")
        async with (
            hosted(place, ScriptedProvider(hold)) as (host, _),
            hosted(place, ScriptedProvider()) as (other, profile),
        ):
            conv = await host.new("chat")
            turn = asyncio.create_task(host.say(conv, [clew.user("tell")]))
            await hold.reached.come()
            while (await conv.calls())[0].partial is None:
                await asyncio.sleep(0.05)
            assert await other.stop(await profile.open(conv.id))
            stopped = await turn
            assert (stopped.state, stopped.error) == ("interrupted", "stopped by a person")
            assert await told(conv) == ["user: tell", "assistant: Once upon a time~"]

    asyncio.run(main())


def test_titles_come_beside_the_first_answers(place: Path) -> None:
    async def main() -> None:
        events: list[Event] = []

        def answer(body: Body) -> str:
            system = str(body.payload["messages"][0]["content"])
            return "Boats of paper" if "name conversations" in system else "Fold it twice."

        async with hosted(place, ScriptedProvider(answer), config=Config()) as (host, _profile):
            conv = await host.new("chat")
            await host.say(conv, [clew.user("How do I fold a boat?")], emit=events.append)
            await until(lambda: "Titled" in kinds(events))
            info = await conv.info()
            assert (info.title, info.title_origin) == ("Boats of paper", "llm")
            await conv.set_title("Mine")
            await host.say(conv, [clew.user("And a hat?")])
            assert (await conv.info()).title == "Mine"
            purposes = [call.purpose for call in await conv.calls()]
            assert purposes.count("title") == 1

    asyncio.run(main())


def test_tools_change_only_when_they_are_pinned_anew(place: Path) -> None:
    """S35.1, S35.4: not by what is there at the moment; by a reload, and in a new conversation."""

    async def main() -> None:
        script = ScriptedProvider("Yes.")
        async with hosted(place, script, Made("one", lambda _: "1")) as (host, _):
            conv = await host.new("chat")
            await host.say(conv, [clew.user("a")])
            id = conv.id
        more = [Made("zero", lambda _: "0"), Made("one", lambda _: "1")]
        async with hosted(place, script, *more) as (host, profile):
            conv = await profile.open(id)
            await host.say(conv, [clew.user("b")])
            names = await host.reload_tools(conv)
            assert names[-2:] == ("one", "zero"), "S35.3: what is new comes last"
            await host.say(conv, [clew.user("c")])
        tools = [[t["function"]["name"] for t in r.payload["tools"]] for r in script.requests]
        assert tools[0] == tools[1]
        assert tools[1][-1] == "one"
        assert tools[2] == [*tools[1], "zero"]

    asyncio.run(main())


def test_a_failure_names_every_model_that_was_asked(place: Path) -> None:
    async def main() -> None:
        first = ScriptedProvider(BadKey("the key is wrong.", provider="scripted", status=401))
        other = ScriptedProvider(BadKey("no credit.", provider="other"), name="other")
        config = Config(chat=NO_TITLES, fallback=["other/scripted"])
        async with hosted(place, first, config=config, more=[other]) as (host, _):
            conv = await host.new("chat")
            with pytest.raises(BadKey, match=r"no credit.*scripted/scripted: the key is wrong"):
                await host.say(conv, [clew.user("hi")])

    asyncio.run(main())


@pytest.mark.parametrize(("stop", "said"), [("length", "reply"), ("content_filter", "filter")])
def test_an_answer_that_says_nothing_is_not_asked_for_again(
    place: Path, stop: Stop, said: str
) -> None:
    """Where it is known why: the same request would end the same."""

    async def main() -> None:
        script = ScriptedProvider(Reply(parts=(), stop=stop))
        async with hosted(place, script) as (host, _):
            conv = await host.new("chat")
            with pytest.raises(BadRequest, match=said):
                await host.say(conv, [clew.user("hi")])
            assert len(script.requests) == 1

    asyncio.run(main())


def test_a_tool_server_that_is_away_is_told_once(place: Path) -> None:
    class Gone:
        name = "gone"

        async def tools(self) -> Sequence[Tool]:
            raise ToolsUnavailable("gone is not there", origin="gone")

        async def close(self) -> None:
            """Nothing to close."""

    async def main() -> None:
        events: list[Event] = []
        async with clew.aio.open(place) as store:
            providers = Providers(QUIET, lambda name, section: None)
            providers.add(ScriptedProvider("Yes."))
            toolbox = Toolbox(QUIET.tools, sources=[Gone()])
            async with Host(store.profile("me"), providers, toolbox, QUIET) as host:
                for _ in range(2):
                    conv = await host.new("chat")
                    await host.say(conv, [clew.user("hi")], emit=events.append)
        (notice,) = (event for event in events if isinstance(event, Notice))
        assert notice.kind == "tools"
        assert "gone is not there" in notice.text

    asyncio.run(main())


def test_a_slow_channel_holds_up_no_turn(place: Path) -> None:
    class Slow:
        def __init__(self) -> None:
            self.sent: list[str] = []
            self.go = asyncio.Event()

        async def send(self, route: str, payload: object, key: str) -> None:
            await self.go.wait()
            self.sent.append(key)

    async def main() -> None:
        slow = Slow()
        async with hosted(place, ScriptedProvider("Yes."), channels={"post": slow}) as (host, _):
            conv = await host.new("chat")
            for n in range(3):
                message = clew.user(f"{n}", meta={"reply_to": "post:me"})
                assert (await host.say(conv, [message])).state == "done"
            assert slow.sent == []
            slow.go.set()
            await until(lambda: len(slow.sent) == 3)
            assert slow.sent == [f"{conv.id}:{n}" for n in (1, 2, 3)]

    asyncio.run(main())


def test_a_tool_that_only_reads_is_run_again_and_that_is_said(place: Path) -> None:
    """To the person and to the model: nothing runs twice unnoticed."""

    async def main() -> None:
        events: list[Event] = []
        script = ScriptedProvider("Seen.")
        look = Made("look", lambda _: "all there", read_only=True)
        async with clew.aio.open(place) as store:
            conv = await store.profile("me").conversation("c")
            turn = await conv.begin_turn([clew.user("go")], ttl=1)
            assert isinstance(turn, clew.aio.AsyncTurn)
            call = clew.ToolCall("a", "look", "{}")
            await turn.record([clew.Draft(role=clew.Role.ASSISTANT, parts=(call,))])
            id = conv.id
        async with hosted(place, script, look) as (host, profile):
            report = await host.go_on(await profile.open(id), emit=events.append)
            assert report is not None
            assert report.text == "Seen."
            assert len(look.calls) == 1
        (notice,) = (event for event in events if isinstance(event, Notice))
        assert "look ran" in notice.text
        assert notice.text in str(script.requests[0].payload["messages"][-1])

    asyncio.run(main())


def test_a_turn_that_is_taken_up_counts_once_for_the_day(place: Path) -> None:
    """Its calls are among those of the day already."""

    async def main() -> None:
        async with clew.aio.open(place) as store:
            conv = await store.profile("me").conversation("c")
            plan = clew.CallPlan(model="scripted")
            turn = await conv.begin_turn([clew.user("go")], ttl=1, call=plan)
            assert isinstance(turn, clew.aio.AsyncTurn)
            call = clew.ToolCall("a", "look", "{}")
            result = clew.CallResult(usage=clew.Usage(100, 10))
            draft = clew.Draft(role=clew.Role.ASSISTANT, parts=(call,))
            await turn.record([draft], call=turn.call, result=result)
            id = conv.id
        config = Config(chat=NO_TITLES, limits=LimitsConfig(day_tokens=200))
        look = Made("look", lambda _: "all there", read_only=True)
        script = ScriptedProvider("Seen.")
        async with hosted(place, script, look, config=config) as (host, profile):
            report = await host.go_on(await profile.open(id))
            assert report is not None
            assert (report.state, report.text) == ("done", "Seen.")

    asyncio.run(main())
