"""Servers of tools over stdio: what they offer and answer, killed, restarted, cancelled, closed."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from mcpkit import QUIET, call, desk, gone, lines, old, run, toolbox, until
from msgspec.structs import replace

from clew.domain.parts import File, Image, Text


def test_what_a_server_offers() -> None:
    """Names that providers take, schemas, and what may run without asking."""

    async def body() -> None:
        async with toolbox(desk=desk()) as box:
            specs = {spec.name: spec for spec in await box.pin(None)}
            assert specs["desk__add"].description == "Add two numbers."
            assert specs["desk__add"].parameters["required"] == ["a", "b"]
            dotted = {name for name in specs if name.startswith("desk__read_file")}
            assert len(dotted) == 2
            assert [str((await call(box, name)).content) for name in sorted(dotted)] == [
                "with a line", "with a dot",
            ]  # fmt: skip
            assert (box.verdict("desk__add"), box.is_read_only("desk__add")) == ("allow", True)
            assert (box.verdict("desk__write"), box.is_read_only("desk__write")) == ("ask", False)

    run(body())


def test_a_restarted_process_knows_what_a_tool_says_of_itself_once_it_asked() -> None:
    async def body() -> None:
        async with toolbox(desk=desk()) as box:
            assert box.verdict("desk__add") == "ask"
            await box.prepare(["desk__add"])
            assert box.verdict("desk__add") == "allow"

    run(body())


def test_every_kind_of_content_becomes_a_part() -> None:
    async def body() -> None:
        async with toolbox(desk=desk()) as box:
            assert (await call(box, "desk__add", '{"a": 1, "b": 2}')).content == "3"
            found = (await call(box, "desk__everything")).content
            assert isinstance(found, tuple)
            assert [type(part) for part in found] == [
                Text,
                Image,
                Text,
                Text,
                Text,
                File,
                Text,
                Text,
            ]
            texts = [part.text for part in found if isinstance(part, Text)]
            assert texts == [
                "a text", "[image/png left out: it is no base64]",
                "[resource memo:1]\nof a resource", "[resource file:///a/b.pdf]",
                "[resource log: file:///log (the log)]", '{"rows": 3}',
            ]  # fmt: skip
            image, file = found[1], found[5]
            assert isinstance(image, Image)
            assert isinstance(file, File)
            assert image.data == file.data
            assert (file.name, file.media_type) == ("b.pdf", "application/pdf")

    run(body())


def test_errors_are_answers() -> None:
    async def body() -> None:
        async with toolbox(desk=desk()) as box:
            failed = await call(box, "desk__fail", '{"why": "no paper"}')
            assert failed.is_error
            assert "Error executing tool fail" in str(failed.content)
            wrong = await call(box, "desk__add", '{"a": "one", "b": 2}')
            assert wrong.is_error
            assert "- a: 'one' is not of type 'integer'" in str(wrong.content)
            unknown = await call(box, "desk__sing")
            assert "there is no tool 'desk__sing' now" in str(unknown.content)

    run(body())


def test_calls_of_one_server_run_beside_each_other(tmp_path: Path) -> None:
    """A quick one is answered while another is still at work."""
    log = tmp_path / "log"

    async def body() -> None:
        async with toolbox(desk=desk(log)) as box:
            slow = asyncio.create_task(call(box, "desk__slow"))
            await until(lambda: lines(log, "slow"))
            found = await asyncio.gather(
                *(call(box, "desk__add", f'{{"a": {n}, "b": 0}}') for n in range(20))
            )
            assert [result.content for result in found] == [str(n) for n in range(20)]
            assert not slow.done()
            slow.cancel()
            assert len(lines(log, "start")) == 1

    run(body())


def test_a_cancelled_call_is_cancelled_at_the_server(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def body() -> None:
        async with toolbox(desk=desk(log)) as box:
            slow = asyncio.create_task(call(box, "desk__slow"))
            await until(lambda: lines(log, "slow"))
            slow.cancel()
            with pytest.raises(asyncio.CancelledError):
                await slow
            await until(lambda: lines(log, "cancelled"))
            assert (await call(box, "desk__add", '{"a": 1, "b": 1}')).content == "2"

    run(body())


def test_a_server_killed_in_mid_call_costs_that_call_and_no_other(tmp_path: Path) -> None:
    """The call is answered at once; the next one starts the server again."""
    log = tmp_path / "log"

    async def body() -> None:
        async with toolbox(desk=desk(log)) as box:
            pinned = await box.pin(None)
            calls = [asyncio.create_task(call(box, "desk__slow")) for _ in range(3)]
            await until(lambda: len(lines(log, "slow")) == 3)
            (first,) = lines(log, "start")
            os.kill(first, signal.SIGKILL)
            for result in await asyncio.gather(*calls):
                assert result.is_error
                assert "whether the call was carried out is not known" in str(result.content)
            second = int(str((await call(box, "desk__process")).content))
            assert second != first
            assert lines(log, "start") == [first, second]
            assert await box.pin(pinned) == pinned

    run(body())


def test_a_server_that_died_between_two_calls_is_not_noticed_by_anybody(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def body() -> None:
        async with toolbox(desk=desk(log)) as box:
            first = int(str((await call(box, "desk__process")).content))
            os.kill(first, signal.SIGKILL)
            source: Any = box._started[0]._source
            await until(lambda: not source._links[-1].alive)  # the end of its stdout was read
            result = await call(box, "desk__process")
            assert not result.is_error, result.content
            assert int(str(result.content)) != first

    run(body())


def test_closing_ends_the_servers(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def body() -> None:
        async with toolbox(desk=desk(log), old=old(log=log)) as box:
            await box.pin(None)
            pids = {*lines(log, "start"), *lines(log, "initialize")}
            assert len(pids) == 2
        await until(lambda: all(map(gone, pids)))

    run(body())


@pytest.mark.parametrize("kind", ["desk", "old"])
def test_a_change_of_tools_is_noted_and_changes_nothing(kind: str) -> None:
    """S35.1 It is there after a reload."""

    async def body() -> None:
        server, tool = (desk(), "grow") if kind == "desk" else (old(), "echo")
        async with toolbox(it=server) as box:
            before = await box.pin(None)
            await call(box, f"it__{tool}", "{}")
            deadline = asyncio.get_running_loop().time() + 20
            while box.changed() != ("it",):
                assert asyncio.get_running_loop().time() < deadline
                await asyncio.sleep(0.01)
            after = await box.pin(before)
            assert after[: len(before)] == before
            assert len(after) == len(before) + 1
            assert box.changed() == ()

    run(body())


def test_a_large_output_is_kept_whole_and_shown_in_part() -> None:
    async def body() -> None:
        async with toolbox(replace(QUIET, output=1000), desk=desk()) as box:
            result = await call(box, "desk__write", '{"text": "abcdefgh", "times": 250000}')
            assert len(str(result.content)) == 2_000_000
            assert result.shown == 1000

    run(body())


def test_more_than_can_be_stored_loses_its_middle() -> None:
    async def body() -> None:
        async with toolbox(desk=desk()) as box:
            result = await call(box, "desk__write", '{"text": "abcdefgh", "times": 1250000}')
            assert "of 10,000,000 characters were left out here" in str(result.content)
            assert 8_200_000 < len(str(result.content)) < 8_400_000

    run(body())


def test_the_environment_of_a_server_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in ours, such as the keys of providers, is not given away."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-provider")
    monkeypatch.setenv("DESK_TOKEN", "of-the-desk")

    async def body() -> None:
        async with toolbox(desk=desk(env={"TOKEN": "${DESK_TOKEN}"})) as box:
            token = await call(box, "desk__surroundings", '{"name": "TOKEN"}')
            assert token.content == "of-the-desk"
            key = await call(box, "desk__surroundings", '{"name": "OPENAI_API_KEY"}')
            assert key.content == "(none)"

    run(body())
