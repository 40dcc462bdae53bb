"""What `clew ask` does: a host for one question, its answer, an exit code."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from clew import startup
from clew.cli.ask_answer import Answer
from clew.cli.ask_input import asked_text, parts_of, piped_text
from clew.cli.ask_output import Output
from clew.cli.ask_run import Asking, Question
from clew.cli.pulse import living
from clew.cli.registry import HOSTING, load
from clew.cli.settings import Settings
from clew.cli.starting import starting
from clew.config.loading import load as load_config
from clew.config.values import Config
from clew.host.api import Hosting
from clew.store.aio.opening import open_store
from clew.store.aio.profile import AsyncProfile

ENDING = ("SIGTERM", "SIGHUP")
"""Signals by which others end us: as Ctrl-C, they stop the turn first."""


class Options(Struct, frozen=True):
    """What the command line asks for."""

    conversation: str | None
    resume: str | None
    key: str | None
    model: str | None
    system: str | None
    file: tuple[Path, ...]
    as_json: bool
    stream: bool | None
    tools: bool
    allow: tuple[str, ...]
    max_cost: float | None
    timeout: float | None
    wait: bool


def run(settings: Settings, words: Sequence[str], options: Options) -> int:
    """Ask, and print what came of it; gives the exit code."""
    parts = parts_of(asked_text(words, piped_text(sys.stdin)), options.file)
    question = Question(
        parts=parts, bound=options.conversation, resume=options.resume, key=options.key,
        model=options.model, system=options.system is not None, wait=options.wait,
        timeout=options.timeout,
    )  # fmt: skip
    out = settings.screen
    stream = out.is_terminal if options.stream is None else options.stream
    output = Output(out, settings.notes, stream, options.as_json)
    ended: list[int] = []
    try:
        with starting(settings, quiet=options.as_json):  # what is piped in took its own time
            asking = _ask(settings, _configured(options), question, output, ended)
            answer = asyncio.run(living(asking))
    except asyncio.CancelledError:
        if not ended:
            raise
        return 128 + ended[0]
    output.answer(answer)
    return answer.code


def _configured(options: Options) -> Config:
    """The configuration, with what this call wants otherwise. A title by a model would have the
    script wait for it."""
    config = load_config().config
    policy = {**config.tools.policy, **dict.fromkeys(options.allow, "allow")}
    limits = config.limits
    if options.max_cost is not None:
        limits = replace(limits, turn_cost=options.max_cost)
    return replace(
        config,
        system=config.system if options.system is None else options.system,
        chat=replace(config.chat, titles=False),
        tools=replace(config.tools, policy=policy, builtin=config.tools.builtin and options.tools),
        mcpServers=config.mcpServers if options.tools else {},
        limits=limits,
    )


def _end_by_signals(ended: list[int]) -> None:
    """Cancel this task when a signal comes, and note which."""
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        return
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def end(number: int) -> None:
        ended.append(number)
        task.cancel()

    for name in ENDING:
        number = getattr(signal, name)
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            loop.add_signal_handler(number, end, number)


async def _ask(
    settings: Settings, config: Config, question: Question, output: Output, ended: list[int]
) -> Answer:  # fmt: skip
    """Open the store, making it where there is none, and ask. `ended`: signals that came."""
    _end_by_signals(ended)
    startup.report("opening the store")
    async with open_store(settings.store) as store:
        startup.report("loading the host")
        profile = store.profile(settings.profile)
        host: Hosting = _host(profile, config)
        try:
            startup.ready()
            asking = Asking(host, profile, config, question, output.event, output.note)
            return await asking.run()
        finally:
            await host.close()


def _host(profile: AsyncProfile, config: Config) -> Hosting:
    hosting: Any = load(HOSTING)
    return hosting.make(profile, config)
