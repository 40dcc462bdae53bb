"""Runs a chat on a terminal from the prompt to the last line. The prompt comes first: the store,
the host and what paints an answer are loaded behind it, and what is typed meanwhile waits."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any

from clew import startup
from clew.cli.chat.approve import Questions
from clew.cli.chat.status import Status
from clew.cli.chat.terminal import Terminal
from clew.cli.registry import load
from clew.cli.settings import Settings
from clew.config.values import Config

APP, LEAVING, STARTING = (f"clew.cli.chat.{name}" for name in ("app", "leaving", "starting"))
WARM = ("clew.cli.chat.painting", "clew.cli.chat.commands.registry")


class _Early:
    """What the person does before there is a chat."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self.sent: list[tuple[str, str]] = []

    def entered(self, text: str, shown: str) -> None:
        if text.strip():
            self.sent.append((text, shown))
            self._running.terminal.taken()

    def stopped(self) -> None:
        self._running.leave()

    def left(self) -> None:
        self._running.leave()

    def expand(self) -> None:
        pass

    def pressed(self, key: str) -> None:
        pass


class Running:
    """One chat on a terminal. `hosting` names the function that starts it (`starting.Start`)."""

    def __init__(
        self, settings: Settings, config: Config, given: dict[str, Any], hosting: str
    ) -> None:
        self._settings, self._config, self._given = settings, config, given
        self._hosting = hosting
        self._questions = Questions(monotonic)
        self.terminal = Terminal(
            settings, Status(), self._questions, vi=config.chat.vi,
            queue=config.chat.busy == "queue",
        )  # fmt: skip
        self._early = _Early(self)
        self.terminal.person = self._early
        self._chat: Any = None

    async def run(self) -> None:
        """To its end. Raises what went wrong."""
        app = self.terminal.area.app
        shown = asyncio.Event()
        app.after_render += partial(_set, shown)
        showing = asyncio.create_task(app.run_async(set_exception_handler=False))
        beginning = asyncio.create_task(self._begin(shown))
        try:
            await asyncio.wait((showing, beginning), return_when=asyncio.FIRST_COMPLETED)
            if beginning.done() and beginning.exception() is None:
                await asyncio.wait((showing, self._chat.failed), return_when="FIRST_COMPLETED")
        finally:
            await self._end(showing, beginning)

    async def _begin(self, shown: asyncio.Event) -> None:
        await shown.wait()
        loop = asyncio.get_running_loop()
        parts: Any = await loop.run_in_executor(None, _load_parts, self._hosting)
        parts.leaving.on_signals(self.leave)
        start = await parts.start(self._settings, self._config)
        chat = parts.app.TerminalChat(
            self._settings,
            start,
            parts.starting.Options(**self._given),
            self.terminal,
            self._questions,
        )
        self._chat = self.terminal.chat = chat
        startup.report("opening the conversation")
        await chat.begin()
        startup.ready()
        self.terminal.person = chat
        chat.begun()
        for text, shown_as in (*_first(self._given["text"]), *self._early.sent):
            chat.take(text, shown_as)
        self.terminal.changed()
        await loop.run_in_executor(None, _warm)

    def leave(self) -> None:
        """End it, as Ctrl-D does."""
        app = self.terminal.area.app
        if app.is_running and not app.is_done:
            app.exit()

    async def _end(self, showing: asyncio.Task[None], beginning: asyncio.Task[None]) -> None:
        """Give the terminal back, then close everything. The first error is raised."""
        self.leave()
        with suppress(EOFError, OSError):  # the terminal may be gone
            await showing
        beginning.cancel()
        (error,) = await asyncio.gather(beginning, return_exceptions=True)
        lines: list[Any] = []
        if self._chat is not None:
            if self._chat.failed.done():
                error = self._chat.failed.exception()
            await self._chat.end()
            leaving: Any = load(LEAVING)
            lines = await leaving.farewell(self._chat)
            await self._chat.close()
        with suppress(OSError):
            for row in self.terminal.area.take_rows():
                sys.stdout.write(row + "\n")
            for line in lines:
                self._settings.screen.line(*line)
            sys.stdout.flush()
        if error is not None and not isinstance(error, asyncio.CancelledError):
            raise error


class _Parts:
    """Modules that a chat needs behind its prompt."""

    def __init__(self, hosting: str) -> None:
        self.app: Any = load(APP)
        self.leaving: Any = load(LEAVING)
        self.starting: Any = load(STARTING)
        module, _, name = hosting.rpartition(".")
        self.start: Any = getattr(load(module), name)


def _set(event: asyncio.Event, _: object) -> None:
    event.set()


def _load_parts(hosting: str) -> _Parts:
    return _Parts(hosting)


def _warm() -> None:
    """What the first answer needs."""
    for module in WARM:
        load(module)


def _first(text: str) -> list[tuple[str, str]]:
    return [(text, text)] if text.strip() else []
