"""What a host must stand: providers, screens and callers that do not keep to what was agreed, and
everything at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hosting import Made, calls, hosted, kinds, log, told

import clew
from clew.config.values import ChatConfig, Config
from clew.domain.messages import Draft, Role
from clew.domain.parts import ToolCall, ToolResult
from clew.errors import Busy, ClewError
from clew.host import running, toolstep
from clew.host.events import Event
from clew.host.host import Host
from clew.providers.api import Body, Reply, StreamEvent, TextDelta
from clew.providers.errors import BadRequest, Overflow
from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.turn import AsyncTurn
from clew.testing.provider import Hold, ScriptedProvider


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


class Strange(ScriptedProvider):
    """Says half of its first answer, and then raises what no provider should."""

    def __init__(self, make: Callable[[], BaseException]) -> None:
        super().__init__("Whole.")
        self._make = make

    async def stream(self, body: Body) -> AsyncIterator[StreamEvent]:  # type: ignore[override]
        if not self.requests:
            self.requests.append(body)
            yield TextDelta("half")
            raise self._make()
        async for event in super().stream(body):
            yield event


STRANGE: list[Callable[[], BaseException]] = [
    lambda: KeyError("a secret"), lambda: TimeoutError(), lambda: asyncio.CancelledError(),
    lambda: GeneratorExit(),
]  # fmt: skip


@pytest.mark.parametrize("make", STRANGE, ids=lambda make: type(make()).__name__)
def test_a_turn_is_closed_whatever_its_provider_raises(
    place: Path, make: Callable[[], BaseException]
) -> None:
    """What was said is kept, and nobody's secret in the reason. The next message has its turn."""

    async def main() -> None:
        async with hosted(place, Strange(make)) as (host, _):
            conv = await host.new("chat")
            with pytest.raises((ClewError, KeyError, TimeoutError)):
                await host.say(conv, [clew.user("hi")])
            (turn,) = await conv.turns()
            assert turn.state == "failed"
            assert "secret" not in str(turn.error)
            assert (await conv.info()).turn is None
            assert (await host.say(conv, [clew.user("again")])).text == "Whole."
            assert await told(conv) == [
                "user: hi", "assistant: half~", "user: again", "assistant: Whole.",
            ]  # fmt: skip

    asyncio.run(main())


def test_a_reply_that_cannot_be_stored_fails_its_turn(place: Path) -> None:
    async def main() -> None:
        wrong = Reply(parts=(clew.Text("a"),), stop="stop", usage=clew.Usage(-5, 3))
        async with hosted(place, ScriptedProvider(wrong, "Right.")) as (host, _):
            conv = await host.new("chat")
            with pytest.raises(clew.InputError):
                await host.say(conv, [clew.user("hi")])
            assert [t.state for t in await conv.turns()] == ["failed"]
            assert (await host.say(conv, [clew.user("again")])).seqs == (3, 4)

    asyncio.run(main())


def test_a_screen_that_fails_stops_no_turn(place: Path) -> None:
    async def main() -> None:
        errors: list[object] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: errors.append(context.get("exception"))
        )

        def broken(_: Event) -> None:
            raise KeyError("no such widget")

        async with hosted(place, ScriptedProvider("Hello.")) as (host, _):
            conv = await host.new("chat")
            report = await host.say(conv, [clew.user("hi")], emit=broken)
            assert (report.state, report.text) == ("done", "Hello.")
        assert errors
        assert all(isinstance(error, KeyError) for error in errors)

    asyncio.run(main())


@pytest.mark.parametrize("id", ["a", "", "a\0"])
def test_calls_that_share_an_id_are_all_run(place: Path, id: str) -> None:
    """Some models count from nought in each answer; a result belongs to one call."""

    async def main() -> None:
        one = Made("one", lambda arguments: str(arguments))
        script = ScriptedProvider(
            calls((id, "one", '{"n":1}'), (id, "one", '{"n":2}')), calls((id, "one", '{"n":3}')),
            "Done.",
        )  # fmt: skip
        async with hosted(place, script, one) as (host, _):
            conv = await host.new("chat")
            await host.say(conv, [clew.user("go")])
            assert sorted(int(each["n"]) for each in one.calls) == [1, 2, 3]
            parts = [part for message in await log(conv) for part in message.parts]
            ids = [part.id for part in parts if isinstance(part, ToolCall)]
            assert len(set(ids)) == 3
            assert {p.call_id for p in parts if isinstance(p, ToolResult)} == set(ids)

    asyncio.run(main())


@pytest.mark.parametrize("allow", [True, False])
def test_an_answer_is_to_one_call_and_not_to_the_next_of_its_id(place: Path, allow: bool) -> None:
    async def main() -> None:
        careful = Made("careful", lambda _: "did it", default="ask")
        script = ScriptedProvider(
            calls(("call_0", "careful", '{"n":1}')),
            calls(("call_0", "careful", '{"n":2}')),
            "Done.",
        )
        async with hosted(place, script, careful) as (host, _):
            conv = await host.new("chat")
            report = await host.say(conv, [clew.user("go")])
            for n in range(2):
                assert report is not None
                assert report.state == "waiting"
                assert len(careful.calls) == (n if allow else 0)
                (asked,) = [a for a in await conv.approvals() if a.state == "asked"]
                assert await host.answer(conv, asked.call_id, allow)
                report = await host.go_on(conv)
            assert report is not None
            assert report.text == "Done."
            assert len(careful.calls) == (2 if allow else 0)

    asyncio.run(main())


def test_a_call_that_is_answered_while_another_runs_is_gone_on_with(place: Path) -> None:
    """By whoever sees the question in the store: nobody is asked again."""

    async def main() -> None:
        entered, go = asyncio.Event(), asyncio.Event()

        async def slow(_: object) -> str:
            entered.set()
            await go.wait()
            return "slow"

        careful = Made("careful", lambda _: "did it", default="ask")
        script = ScriptedProvider(calls(("a", "careful"), ("b", "slow")), "Done.")
        async with hosted(place, script, careful, Made("slow", slow)) as (host, _):
            conv = await host.new("chat")
            turn = asyncio.create_task(host.say(conv, [clew.user("go")]))
            await entered.wait()
            assert await host.answer(conv, "a", True)
            assert await host.go_on(conv) is None, "this host is at it"
            go.set()
            assert (await turn).text == "Done."
            assert len(careful.calls) == 1

    asyncio.run(main())


def test_an_answer_that_comes_too_late_is_told_so(place: Path) -> None:
    async def main() -> None:
        careful = Made("careful", lambda _: "did it", default="ask")
        async with hosted(place, ScriptedProvider(calls(("a", "careful"))), careful) as (host, _):
            conv = await host.new("chat")
            await host.say(conv, [clew.user("go")])
            assert await host.stop(conv)
            assert not await host.answer(conv, "a", True)
            assert await host.go_on(conv) is None
            assert careful.calls == []

    asyncio.run(main())


def test_a_stop_as_the_turn_comes_to_wait_leaves_the_conversation_free(place: Path) -> None:
    async def main() -> None:
        stops: list[asyncio.Task[bool]] = []

        def watch(point: str) -> None:
            if point == "waiting":
                stops.append(asyncio.ensure_future(host.stop(conv)))

        careful = Made("careful", lambda _: "did it", default="ask")
        script = ScriptedProvider(calls(("a", "careful")))
        async with hosted(place, script, careful, watch=watch) as (host, _):
            conv = await host.new("chat")
            await host.say(conv, [clew.user("go")])
            assert await stops[0]
            assert (await conv.info()).turn is None

    asyncio.run(main())


@pytest.mark.parametrize("times", [2, 3])
def test_a_caller_that_is_cancelled_again_leaves_one_turn(place: Path, times: int) -> None:
    """While its turn is being ended. What is said then comes behind it."""

    async def main() -> None:
        entered, go = asyncio.Event(), asyncio.Event()

        async def stubborn(_: object) -> str:
            entered.set()
            try:
                await go.wait()
            except asyncio.CancelledError:
                await go.wait()
            return "at last"

        script = ScriptedProvider(calls(("a", "stubborn")), "Next.")
        async with hosted(place, script, Made("stubborn", stubborn)) as (host, _):
            conv = await host.new("chat")
            turn = asyncio.create_task(host.say(conv, [clew.user("go")]))
            await entered.wait()
            for _ in range(times):
                turn.cancel()
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                await turn
            following = asyncio.create_task(host.say(conv, [clew.user("and?")]))
            await asyncio.sleep(0.05)
            go.set()
            await following
            while await host.go_on(conv) is not None:
                pass
            lines = await told(conv)
            assert lines[2].startswith("tool: ")
            assert lines[3:] == ["user: and?", "assistant: Next."]
            assert [t.state for t in await conv.turns()] == ["done", "interrupted"]

    asyncio.run(main())


def test_what_waits_is_answered_when_the_turn_before_fails(place: Path) -> None:
    """And whose failure it was is told to whom it belongs."""

    async def main() -> None:
        hold = Hold("one mo", then=BadRequest("no images", provider="scripted", status=400))
        async with hosted(place, ScriptedProvider(hold, "Second.")) as (host, _):
            conv = await host.new("chat")
            turn = asyncio.create_task(host.say(conv, [clew.user("first")]))
            await hold.reached.come()
            await host.say(conv, [clew.user("second")], queue=True)
            hold.let_go()
            with pytest.raises(BadRequest):
                await turn
            assert (await told(conv))[-2:] == ["user: second", "assistant: Second."]

    asyncio.run(main())


def test_a_later_failure_is_not_that_of_the_first(place: Path) -> None:
    async def main() -> None:
        hold = Hold("Fir", then="st.")
        failure = BadRequest("no", provider="scripted", status=400)
        events: list[Event] = []
        async with hosted(place, ScriptedProvider(hold, failure)) as (host, _):
            conv = await host.new("chat")
            turn = asyncio.create_task(host.say(conv, [clew.user("first")], emit=events.append))
            await hold.reached.come()
            await host.say(conv, [clew.user("second")], queue=True)
            hold.let_go()
            assert (await turn).text == "First."
            assert [t.state for t in await conv.turns()] == ["failed", "done"]
        assert kinds(events).count("TurnEnded") == 2

    asyncio.run(main())


class Slow:
    """A channel that sends when it is let go."""

    def __init__(self) -> None:
        self.entered, self.go = asyncio.Event(), asyncio.Event()
        self.sent: list[str] = []

    async def send(self, route: str, payload: Any, key: str) -> None:
        self.entered.set()
        await self.go.wait()
        self.sent.append(payload["text"])


def test_a_long_reply_is_delivered(place: Path) -> None:
    """JSON as ASCII takes six bytes for a letter of most scripts."""

    async def main() -> None:
        channel = Slow()
        channel.go.set()
        text = "Привет. " * 20_000
        script = ScriptedProvider(Reply(parts=(clew.Text(text),), stop="stop"))
        async with hosted(place, script, channels={"slow": channel}) as (host, _):
            conv = await host.new("chat")
            message = clew.user("tell", meta={"reply_to": "slow:me"})
            assert (await host.say(conv, [message])).state == "done"
        assert channel.sent == [text]

    asyncio.run(main())


def test_two_messages_at_once_keep_their_order(place: Path) -> None:
    """Also the first ones, while the tools are still being pinned."""

    async def main() -> None:
        async with hosted(place, ScriptedProvider("Yes.")) as (host, profile):
            for _ in range(10):
                conv = await profile.create(source="chat")
                says = [host.say(conv, [clew.user(str(n))]) for n in range(5)]
                await asyncio.gather(*says)
                lines = [line for line in await told(conv) if line.startswith("user")]
                assert lines == [f"user: {n}" for n in range(5)]
                assert (await conv.info()).waiting == 0

    asyncio.run(main())


def test_go_on_and_a_message_at_once_are_one_turn_after_the_other(place: Path) -> None:
    async def main() -> None:
        def answer(body: Body) -> str:
            return f"To {body.payload['messages'][-1]['content']}"

        async with hosted(place, ScriptedProvider(answer)) as (host, profile):
            for _ in range(10):
                conv = await profile.create(source="chat")
                await conv.append([clew.user("left")])
                went, report = await asyncio.gather(
                    host.go_on(conv), host.say(conv, [clew.user("new")])
                )
                assert went is not None
                assert went.state == "done"
                assert report.state in ("done", "queued"), report
                lines = await told(conv)
                assert lines[0] == "user: left"
                assert lines.count("user: new") == 1
                assert lines[-1].startswith("assistant: To new")

    asyncio.run(main())


def test_a_closed_host_begins_nothing(place: Path) -> None:
    async def main() -> None:
        hold = Hold("half")
        script = ScriptedProvider(hold, "Never.")
        async with hosted(place, script) as (host, _):
            conv = await host.new("chat")
            turn = asyncio.create_task(host.say(conv, [clew.user("1")]))
            await hold.reached.come()
            await host.say(conv, [clew.user("2")], queue=True)
            await asyncio.gather(host.close(), host.close())
            assert (await turn).state == "interrupted"
            with pytest.raises(ClewError, match="closed"):
                await host.say(conv, [clew.user("3")])
            with pytest.raises(ClewError, match="closed"):
                await host.go_on(conv)
            assert await told(conv) == ["user: 1", "assistant: half~"]
            assert (await conv.info()).waiting == 1
            assert len(script.requests) == 1

    asyncio.run(main())


@pytest.mark.parametrize("recovery", ["resume", "close"])
def test_what_a_crash_left_is_gone_on_with_or_closed(place: Path, recovery: Any) -> None:
    async def main() -> None:
        config = Config(chat=ChatConfig(titles=False, recovery=recovery))
        script = ScriptedProvider("Late.")
        async with hosted(place, script, config=config) as (host, _):
            conv = await host.new("chat")
            await conv.begin_turn([clew.user("hi")], holder="gone", ttl=1)
            await host.recover()
            closed = recovery == "close"
            assert [t.state for t in await conv.turns()] == ["interrupted" if closed else "done"]
            assert len(script.requests) == (0 if closed else 1)
            await host.recover()
            assert len(script.requests) == (0 if closed else 1)

    asyncio.run(main())


def test_one_that_cannot_be_recovered_is_no_matter_to_the_others(place: Path) -> None:
    async def main() -> None:
        def answer(body: Body) -> str:
            if "bad" in str(body.payload["messages"][-1]["content"]):
                raise KeyError("x")
            return "Fine."

        events: list[Event] = []
        async with hosted(place, ScriptedProvider(answer)) as (host, _):
            convs = [await host.new("chat") for _ in range(3)]
            for n, conv in enumerate(convs):
                text = "bad" if n == 1 else "good"
                await conv.begin_turn([clew.user(text)], holder="gone", ttl=1)
            assert await host.recover(emit=events.append) == 2
            states = [(await conv.turns())[0].state for conv in convs]
            assert states == ["done", "failed", "done"]
        assert "Notice" in kinds(events)

    asyncio.run(main())


def test_a_turn_that_is_taken_up_leaves_queued_words_for_the_next(place: Path) -> None:
    """`busy = "queue"`: also then. And they are answered."""

    async def main() -> None:
        config = Config(chat=ChatConfig(titles=False, busy="queue"))
        async with hosted(place, ScriptedProvider("One.", "Two."), config=config) as (host, _):
            conv = await host.new("chat")
            await left_behind(conv, clew.user("1"), more=[clew.user("2")])
            await host.recover()
            assert await told(conv) == [
                "user: 1", "assistant: One.", "user: 2", "assistant: Two.",
            ]  # fmt: skip

    asyncio.run(main())


async def left_behind(
    conv: AsyncConversation, *steps: Draft | list[Draft], more: list[Draft] | None = None
) -> None:
    """An open turn whose holder's right has run out; `more` came in while it ran."""
    first, *others = steps
    assert isinstance(first, Draft)
    turn = await conv.begin_turn([first], holder="gone", ttl=800_000)
    assert isinstance(turn, AsyncTurn)
    for step in others:
        await turn.record([step] if isinstance(step, Draft) else step)
    if more:
        await conv.append(more)
    await asyncio.sleep(0.85)


def test_each_model_of_the_list_has_its_own_overflow(place: Path) -> None:
    """The next one is asked for less, too, when it finds the request too large."""

    async def main() -> None:
        too_large = Overflow("too large", provider="scripted", status=400)
        one = ScriptedProvider(*["word " * 400] * 20, too_large, too_large)
        two = ScriptedProvider(
            Overflow("too large", provider="two", status=400), "It fits.", name="two"
        )
        config = Config(chat=ChatConfig(titles=False), fallback=["two/scripted"])
        async with hosted(place, one, config=config, more=[two]) as (host, _):
            conv = await host.new("chat")
            for n in range(20):
                await host.say(conv, [clew.user(f"question {n}")])
            report = await host.say(conv, [clew.user("the last one")])
            assert report.text == "It fits."

    asyncio.run(main())


def test_the_report_names_all_messages_of_the_turn(place: Path) -> None:
    async def main() -> None:
        async def more(_: object) -> str:
            await host.say(conv, [clew.user("by the way")])
            return "ok"

        async with hosted(
            place, ScriptedProvider(calls(("a", "more")), "Done."), Made("more", more)
        ) as (host, _):
            conv = await host.new("chat")
            assert (await host.say(conv, [clew.user("go")])).seqs == (1, 2, 3, 4, 5)

    asyncio.run(main())


def test_a_crash_among_a_hundred_calls_leaves_none_unanswered(place: Path) -> None:
    async def main() -> None:
        many = [(f"c{n}", "look") for n in range(100)]
        look = Made("look", lambda _: "seen", read_only=True)
        async with hosted(place, ScriptedProvider("Done."), look) as (host, _):
            conv = await host.new("chat")
            asked = Draft(
                role=Role.ASSISTANT, parts=tuple(ToolCall(id, name, "{}") for id, name in many)
            )
            done = [toolstep.result_message(ToolResult(id, "seen")) for id, _ in many[:80]]
            await left_behind(conv, clew.user("go"), asked, done)
            assert await host.recover() == 1
            results = [p for m in await log(conv) for p in m.parts if isinstance(p, ToolResult)]
            assert {result.call_id for result in results} == {id for id, _ in many}
            assert len(look.calls) == 20

    asyncio.run(main())


@pytest.mark.parametrize("at", range(1, 10))
def test_a_write_that_fails_leaves_nothing_half_done(place: Path, at: int) -> None:
    """Each write of a turn in its order: the conversation is free, and what was said is answered
    when somebody goes on."""

    async def main() -> None:
        done: list[str] = []
        write = Made("write", lambda _: done.append("write") or "written")
        careful = Made("careful", lambda _: "did it", default="ask")

        def answer(body: Body) -> Reply | str:
            said = [str(m["content"]) for m in body.payload["messages"] if m["role"] == "tool"]
            if not said:
                return calls(("a", "write"))
            return "Done." if len(said) > 1 else calls(("b", "careful"))

        async with hosted(place, ScriptedProvider(answer), write, careful) as (host, profile):
            conv = await host.new("chat")
            backend: Any = profile._db.backend  # pyright: ignore[reportPrivateUsage]
            real, count = backend.write_async, 0

            async def failing(unit: Any) -> Any:
                nonlocal count
                count += 1
                if count == at:
                    raise Busy("somebody else writes")
                return await real(unit)

            backend.write_async = failing
            message = clew.user("go", key="k")
            with suppress(Busy):
                await carried_on(host, conv, message)
            await carried_on(host, conv, message)
            lines = await told(conv)
            assert lines[0] == "user: go"
            assert lines[-1] == "assistant: Done."
            assert len(done) == 1
            info = await conv.info()
            assert (info.turn, info.waiting) == (None, 0)
            assert not [call for call in await conv.calls() if call.state == "planned"]

    asyncio.run(main())


async def carried_on(host: Host, conv: AsyncConversation, message: Draft) -> None:
    """Say it, which may have been said before, and do all that is left; a person allows all."""
    await host.say(conv, [message])
    while True:
        for approval in await conv.approvals():
            if approval.state == "asked":
                await host.answer(conv, approval.call_id, True)
        if await host.go_on(conv) is None:
            return


def test_a_provider_that_cannot_be_stopped_is_left_alone(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "GRACE", 0.05)
    entered, go = asyncio.Event(), asyncio.Event()

    class Deaf(ScriptedProvider):
        async def stream(self, body: Body) -> AsyncIterator[StreamEvent]:  # type: ignore[override]
            if not self.requests:
                self.requests.append(body)
                yield TextDelta("half")
                entered.set()
                while not go.is_set():
                    with suppress(asyncio.CancelledError):
                        await go.wait()
                return
            async for event in super().stream(body):
                yield event

    async def main() -> None:
        async with hosted(place, Deaf("Whole.")) as (host, _):
            conv = await host.new("chat")
            turn = asyncio.create_task(host.say(conv, [clew.user("hi")]))
            await entered.wait()
            assert await host.stop(conv)
            assert (await turn).state == "interrupted"
            assert (await host.say(conv, [clew.user("again")])).text == "Whole."
            go.set()

    asyncio.run(main())


def test_a_turn_ends_when_its_conversation_is_deleted(place: Path) -> None:
    """The model is not asked to the end for nobody."""

    async def main() -> None:
        hold = Hold("half")
        async with hosted(place, ScriptedProvider(hold)) as (host, profile):
            conv = await host.new("chat")
            turn = asyncio.create_task(host.say(conv, [clew.user("hi")]))
            await hold.reached.come()
            await profile.delete(conv.id)
            assert (await turn).state == "interrupted"
            assert hold.ended.is_set()

    asyncio.run(main())
