"""Servers that are older than the SDK, broken, mute, or not there at all."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mcpkit import call, desk, gone, lines, old, run, toolbox, until

from clew.config.values import McpConfig, ToolsConfig

SHORT = ToolsConfig(builtin=False, timeout=0.5)


@pytest.mark.parametrize("habit", ["plain", "garbage", "chatters"])
def test_an_old_server_works_whatever_else_it_prints(
    habit: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """And nothing of it stands on the screen of the chat."""

    async def body() -> None:
        async with toolbox(old=old(habit)) as box:
            assert [spec.name for spec in await box.pin(None)] == ["old__echo"]
            assert box.verdict("old__echo") == "ask"
            result = await call(box, "old__echo", '{"a": ["ü", 1]}')
            assert (result.content, result.is_error) == ('{"a": ["\\u00fc", 1]}', False)

    run(body())
    assert capfd.readouterr() == ("", "")


def test_the_sdk_writes_nothing_on_the_screen(tmp_path: Path) -> None:
    """Python prints what is logged where nobody has set up logging, as in a chat."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from mcpkit import call, old, run, toolbox\n"
        "async def body():\n"
        "    async with toolbox(old=old('garbage', 'chatters')) as box:\n"
        "        assert not (await call(box, 'old__echo', '{}')).is_error\n"
        "run(body())\n",
        "utf-8",
    )
    done = subprocess.run([sys.executable, program], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_mute_server_is_given_up_and_ended(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def body() -> None:
        async with toolbox(old=old("mute", log=log, timeout=2.0)) as box:
            assert await box.pin(None) == ()
            (status,) = await box.status()
            assert "it did not answer within 2 seconds" in str(status.error)
            pids = set(lines(log, "server/discover"))
        assert pids
        await until(lambda: all(map(gone, pids)))

    run(body())


def test_a_call_that_is_never_answered_ends_and_the_server_is_told(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def body() -> None:
        async with toolbox(SHORT, old=old("lingers", log=log, timeout=5.0)) as box:
            result = await call(box, "old__echo")
            assert "no answer within 5 seconds" in str(result.content)
            await until(lambda: lines(log, "notifications/cancelled"))

    run(body())


def test_the_last_words_of_one_that_cannot_start_are_told_without_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LICENCE", "key-0815")

    async def body() -> None:
        async with toolbox(old=old("quits", env={"OLD_KEY": "${LICENCE}"})) as box:
            assert await box.pin(None) == ()
            (status,) = await box.status()
            assert "it ended while it was started. Its last words: no licence for ***" in str(
                status.error
            )

    run(body())


@pytest.mark.parametrize(
    ("server", "told"),
    [
        (McpConfig(command="no-such-command-here"), "'no-such-command-here' was not found"),
        (McpConfig(command=sys.executable, cwd="/no/such/folder"), "was not found, or its cwd"),
        (McpConfig(command=__file__), "may not be run"),
        (McpConfig(), "needs a command or a url"),
        (McpConfig(command="x", url="http://127.0.0.1:1/mcp"), "needs a command or a url"),
        (McpConfig(command="x", env={"A": "${NO_SUCH_THING}"}), "mcpServers.it.env.A names"),
        (McpConfig(command=sys.executable, args=["-c", "print('{}')"]), "it ended while"),
        (McpConfig(url="http://127.0.0.1:1/mcp"), "its url does not answer"),
        (McpConfig(url="not a url"), "UnsupportedProtocol"),
    ],
)
def test_one_that_cannot_be_used_says_why(server: McpConfig, told: str) -> None:
    async def body() -> None:
        async with toolbox(it=server) as box:
            assert await box.pin(None) == ()
            (status,) = await box.status()
            assert told in str(status.error)
            result = await call(box, "it__anything")
            assert told in str(result.content)
            assert result.is_error

    run(body())


@pytest.mark.parametrize(
    ("habit", "told"),
    [
        ("hides", "no answer in 3 seconds"),
        ("refuses", "it says: not today"),
        ("lies", "ValidationError"),
    ],
)
def test_one_that_does_not_say_what_it_offers(habit: str, told: str) -> None:
    async def body() -> None:
        async with toolbox(old=old(habit, timeout=3.0)) as box:
            assert await box.pin(None) == ()
            (status,) = await box.status()
            assert "it does not say what it offers" in str(status.error)
            assert told in str(status.error)

    run(body())


def test_closing_does_not_wait_for_one_that_is_starting(tmp_path: Path) -> None:
    """Leaving a chat takes seconds, not as long as a server may take to start."""
    log = tmp_path / "log"

    async def body() -> None:
        async with toolbox(old=old("mute", log=log, timeout=3600.0)) as box:
            pinning = asyncio.create_task(box.pin(None))
            await until(lambda: lines(log, "server/discover"))
        assert await pinning == ()
        result = await call(box, "old__echo")
        assert result.is_error

    run(body())


def test_one_broken_server_costs_the_others_nothing() -> None:
    async def body() -> None:
        async with toolbox(no=McpConfig(command="no-such-command"), desk=desk()) as box:
            assert "desk__add" in [spec.name for spec in await box.pin(None)]
            assert (await call(box, "desk__add", '{"a": 1, "b": 1}')).content == "2"

    run(body())


def test_a_server_that_dies_again_and_again_is_started_again_and_again(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def body() -> None:
        async with toolbox(old=old("lingers", log=log)) as box:
            await box.pin(None)
            for number in range(1, 4):
                waiting = asyncio.create_task(call(box, "old__echo"))
                await until(lambda n=number: len(lines(log, "tools/call")) == n)
                os.kill(lines(log, "tools/call")[-1], signal.SIGKILL)
                assert "is not known" in str((await waiting).content)
            assert len(set(lines(log, "tools/call"))) == 3

    run(body())


def test_who_is_cancelled_while_it_connects_leaves_no_process_behind(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def body() -> None:
        async with toolbox(old=old("mute", log=log)) as box:
            waiting = asyncio.create_task(call(box, "old__echo"))
            await until(lambda: lines(log, "server/discover"))
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            pids = lines(log, "server/discover")
            await until(lambda: all(map(gone, pids)))

    run(body())
