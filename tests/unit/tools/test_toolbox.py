"""The toolbox over sources that a test makes: what is pinned, what may run, what a call gives."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from toolfakes import Given, asking, made, run, where

from clew.config.values import McpConfig, ToolsConfig
from clew.domain.parts import ToolResult
from clew.errors import Busy
from clew.tools.api import ToolOutput
from clew.tools.toolbox import Toolbox

QUIET = ToolsConfig(builtin=False)


def box(*sources: Given, config: ToolsConfig = QUIET) -> Toolbox:
    return Toolbox(config, sources=sources)


def test_built_in_tools_come_first_and_may_run() -> None:
    """Also in a process that has asked nothing yet, as after a restart."""

    async def body() -> None:
        tools = box(Given(made("own")), config=ToolsConfig())
        for name in ("recall", "search", "todo", "goal"):
            assert tools.verdict(name) == "allow"
            assert tools.is_read_only(name)
        names = [spec.name for spec in await tools.pin(None)]
        assert names == ["recall", "search", "todo", "goal", "own"]

    run(body())


def test_a_source_that_goes_away_changes_nothing_of_what_is_pinned() -> None:
    """S35.1, S35.3 Also where its tools were never seen by this process."""

    async def body() -> None:
        first, second = Given(made("a"), made("b"), name="one"), Given(made("c"), name="two")
        pinned = await box(first, second).pin(None)
        first.away = True
        again = box(first, second)
        assert await again.pin(pinned) == pinned
        first.away, first.offered = False, (made("b"), made("d"))
        assert [s.name for s in await again.pin(pinned)] == ["b", "c", "d"]
        assert [s.name for s in await again.pin(None)] == ["b", "d", "c"]

    run(body())


def test_a_person_who_asks_is_not_held_up_by_a_failure_a_moment_ago() -> None:
    """S35.5 A reload asks again; what a model does, does not."""

    async def body() -> None:
        source = Given(made("a"))
        source.away = True
        tools = box(source)
        assert await tools.pin(None) == ()
        await tools.prepare(["a"])
        await tools.call(asking("a"), where())
        assert source.asked == 1
        source.away = False
        assert [s.name for s in await tools.pin(())] == ["a"]
        assert source.asked == 2

    run(body())


def test_what_nobody_knows_yet_is_asked_and_what_nobody_has_does_nothing() -> None:
    async def body() -> None:
        tools = box(Given(made("reads", read_only=True, default="allow"), made("writes")))
        assert tools.verdict("reads") == "ask"
        assert not tools.is_read_only("reads")
        await tools.prepare(["reads", "writes"])
        assert (tools.verdict("reads"), tools.verdict("writes")) == ("allow", "ask")
        assert tools.verdict("writes", ["writes"]) == "allow"
        assert tools.is_read_only("reads")
        assert tools.verdict("invented") == "allow"

    run(body())


def test_of_several_that_a_tool_may_be_of_the_strictest_policy_counts() -> None:
    config = ToolsConfig(builtin=False, policy={"my_server.*": "allow", "my.server.*": "deny"})
    servers = {"my_server": McpConfig(command="x"), "my.server": McpConfig(command="y")}
    assert Toolbox(config, servers).verdict("my_server__write") == "deny"


def test_a_switched_off_server_is_none() -> None:
    tools = Toolbox(QUIET, {"x": McpConfig(command="x", enabled=False)})
    assert tools.verdict("x__write") == "allow"
    run(_says(tools, "x__write", "there is no tool 'x__write' now"))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("{", "the arguments are no JSON"),
        ('{"n": "x"}', "- n: 'x' is not of type 'integer'"),
        ("{}", "- 'n' is a required property"),
    ],
)
def test_wrong_arguments_are_told_and_the_tool_is_not_called(arguments: str, told: str) -> None:
    ran: list[Mapping[str, Any]] = []

    async def note(given: Mapping[str, Any]) -> ToolOutput:
        ran.append(given)
        return ToolOutput("")

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    run(_says(box(Given(made("tool", note, schema=schema))), "tool", told, arguments))
    assert ran == []


def test_what_a_tool_raises_is_an_answer() -> None:
    async def breaks(_: Mapping[str, Any]) -> ToolOutput:
        raise KeyError("door")

    async def busy(_: Mapping[str, Any]) -> ToolOutput:
        raise Busy("the store is busy; try again")

    async def gives_up(_: Mapping[str, Any]) -> ToolOutput:
        raise asyncio.CancelledError

    tools = box(Given(made("breaks", breaks), made("busy", busy), made("gives_up", gives_up)))
    run(_says(tools, "breaks", "Error: KeyError: 'door'"))
    tools = box(Given(made("breaks", breaks), made("busy", busy), made("gives_up", gives_up)))
    run(_says(tools, "busy", "Error: the store is busy; try again"))
    tools = box(Given(made("gives_up", gives_up)))
    run(_says(tools, "gives_up", "Error: the tool was cancelled"))


def test_a_call_of_a_source_that_is_away_says_so_at_once() -> None:
    source = Given(made("a"))
    source.away = True
    run(_says(box(source), "a", "Error: a cannot be called now: the shop is shut. Go on without"))


def test_a_slow_tool_is_stopped_when_its_time_is_over() -> None:
    ended: list[str] = []

    async def slow(_: Mapping[str, Any]) -> ToolOutput:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("slow")
        raise AssertionError

    config = ToolsConfig(builtin=False, timeout=0.05)

    async def body() -> None:
        tools = box(Given(made("slow", slow)), config=config)
        await _says(tools, "slow", "no answer within 0.05 s")
        assert ended == ["slow"]

    run(body())


def test_a_stop_ends_a_call_and_a_cancelled_caller_ends_its_tool() -> None:
    async def body() -> None:
        began, ended, stop = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def slow(_: Mapping[str, Any]) -> ToolOutput:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            raise AssertionError

        tools = box(Given(made("slow", slow)))
        call = asyncio.create_task(tools.call(asking("slow"), where(stop)))
        await began.wait()
        stop.set()
        assert "was stopped by the person" in str((await call).content)
        assert ended.is_set()
        began.clear()
        ended.clear()
        call = asyncio.create_task(tools.call(asking("slow"), where()))
        await began.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert ended.is_set()

    run(body())


def test_calls_run_beside_each_other() -> None:
    """Each waits for the other: one after the other, they would never end."""

    async def body() -> None:
        met = asyncio.Barrier(2)

        async def meet(_: Mapping[str, Any]) -> ToolOutput:
            await met.wait()
            return ToolOutput("met")

        tools = box(Given(made("meet", meet)))
        found = await asyncio.gather(*(tools.call(asking("meet"), where()) for _ in range(2)))
        assert [result.content for result in found] == ["met", "met"]

    run(body())


def test_the_status_names_every_tool_and_what_is_wrong() -> None:
    async def body() -> None:
        shut, twin = Given(name="shut"), Given(made("a", origin="twin"), name="twin")
        shut.away = True
        tools = box(Given(made("a", read_only=True)), twin, shut)
        found = {(s.name, s.origin): s for s in await tools.status()}
        assert [(s.name, s.available) for s in found.values()] == [
            ("a", True), ("a", False), ("shut.*", False),
        ]  # fmt: skip
        assert found["shut.*", "shut"].error == "the shop is shut."
        await tools.close()
        assert twin.closed

    run(body())


def test_nothing_of_the_sdk_is_loaded_before_a_server_is_asked() -> None:
    """A chat shows its prompt before the better part of a second that it takes."""
    code = (
        "import sys, asyncio\n"
        "from clew.config.values import McpConfig, ToolsConfig\n"
        "from clew.tools.toolbox import Toolbox\n"
        "box = Toolbox(ToolsConfig(), {'x': McpConfig(command='x')})\n"
        "box.verdict('x__a'), box.verdict('todo')\n"
        "found = {'mcp', 'httpx2', 'pydantic', 'jsonschema', 'anyio'} & sys.modules.keys()\n"
        "assert not found, found\n"
        "asyncio.run(Toolbox(ToolsConfig()).pin(None))\n"
        "assert 'mcp' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


async def _says(tools: Toolbox, name: str, told: str, arguments: str = "{}") -> None:
    result = await tools.call(asking(name, arguments), where())
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.name, result.is_error) == ("call-1", name, True)
    assert told in str(result.content)
