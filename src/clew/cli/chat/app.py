"""`clew chat` on a terminal: the prompt first, then everything behind it.

Whatever takes long is a task: a turn, a command, an answer to a question. While a turn runs the
person types on; what is entered then goes to the host as well, which steers or queues it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterable, Sequence
from time import monotonic
from typing import Any

from clew.cli.chat import elsewhere, tools_view
from clew.cli.chat.approve import MOMENT, Answer, Questions, read
from clew.cli.chat.session import Session
from clew.cli.chat.starting import Options, Started
from clew.cli.chat.status import STOPPING
from clew.cli.chat.terminal import Terminal
from clew.cli.lines import Line
from clew.cli.screen import Piece
from clew.cli.settings import Settings
from clew.domain.messages import Draft, user
from clew.domain.parts import ToolCall

PATIENCE = 5.0
"""Seconds that a turn has to stop in when the person leaves."""
TWICE = 2.0
"""Seconds in which a second Ctrl-C leaves."""


class TerminalChat(Session):
    """The chat of a person at a terminal."""

    def __init__(
        self, settings: Settings, start: Started, options: Options, terminal: Terminal,
        questions: Questions,
    ) -> None:  # fmt: skip
        self._terminal, self._questions = terminal, questions
        super().__init__(settings, start, options)
        terminal.status = self.status
        terminal.running = lambda: [*self.watcher.running.values()]
        self._turns: set[asyncio.Task[Any]] = set()
        self._command: asyncio.Task[None] | None = None
        self._follower: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._pending: deque[tuple[str, str]] = deque()
        self._wanted: asyncio.Future[str | None] | None = None
        self._stopped_at = -TWICE
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done with an error when there is a fault of ours."""

    # The screen, as Session and commands have it.

    @property
    def width(self) -> int:
        return self._terminal.width

    @property
    def unicode(self) -> bool:
        return self._terminal.unicode

    def text(self, text: str, thinking: bool = False) -> None:
        self._terminal.text(text, thinking)

    def flush(self) -> None:
        self._terminal.flush()

    def cut(self) -> None:
        self._terminal.cut()

    def write(self, *pieces: Piece | str) -> None:
        self._terminal.write(*pieces)

    def write_lines(self, lines: Iterable[Line]) -> None:
        self._terminal.write_lines(lines)

    def table(self, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        self._terminal.table(titles, rows)

    def markdown(self, text: str) -> None:
        self._terminal.markdown(text)

    def changed(self) -> None:
        self._terminal.changed()

    async def page(self, text: str) -> None:
        if self.busy:  # a turn must not stand still while somebody reads
            self._terminal.write(text)
        else:
            await self._terminal.page(text)

    async def confirm(self, question: str) -> bool:
        self._terminal.question = question
        try:
            return await self._want() is not None
        finally:
            self._terminal.question = None
            self._terminal.changed()

    async def edit(self, text: str) -> str | None:
        self._terminal.put(text)
        self._terminal.hint = "Enter takes it, Ctrl-C leaves it as it was"
        try:
            return await self._want()
        finally:
            self._terminal.hint = None
            self._terminal.buffer.reset()

    async def _want(self) -> str | None:
        """What the person answers; None for no, or for nothing."""
        self._wanted = asyncio.get_running_loop().create_future()
        self._terminal.changed()
        try:
            return await self._wanted
        finally:
            self._wanted = None

    # What the person does.

    @property
    def busy(self) -> bool:
        """Whether a turn runs."""
        return bool(self._turns)

    def entered(self, text: str, shown: str) -> None:
        """Enter."""
        wanted = self._wanted
        if wanted is not None and not wanted.done():
            editing = self._terminal.question is None
            wanted.set_result(text if editing or read(text) == "once" else None)
        elif self._questions.current is not None and (answer := read(text)) is not None:
            if self._questions.open:
                self._terminal.buffer.reset()
                self._answer(answer)
        elif text.strip():
            self._terminal.taken()
            self.take(text, shown)

    def take(self, text: str, shown: str) -> None:
        """Something was sent: now, or when the command that runs has ended."""
        is_command = text.startswith("/") and not text.startswith("//") and "\n" not in text
        if self._command is not None and (is_command or self._command not in self._turns):
            self._pending.append((text, shown))
            return
        self._terminal.echo(shown)
        if is_command:
            self._command = self._task(self._run_command(text.strip()))
        else:
            self._start(self.say([user(text.removeprefix("/") if text[:2] == "//" else text)]))

    async def _run_command(self, typed: str) -> None:
        try:
            if await self.command(typed, busy=self.busy):
                self._questions.clear()
                self._start(self.take_up())
            elif self._questions.current is not None:
                await self._look_again()
        except asyncio.CancelledError:
            self.write(("given up", "dim"))
        finally:
            self._command = None
            self.status.doing = self.status.doing if self.busy else ""
            self._terminal.changed()
            asyncio.get_running_loop().call_soon(self._take_next)

    async def _look_again(self) -> None:
        """A command may have answered what is asked, or ended the turn."""
        waiting = await self.waiting_calls()
        if self._questions.current not in waiting:
            self._questions.clear()
            self.ask(waiting)

    def _take_next(self) -> None:
        if self._pending and self._command is None:
            self.take(*self._pending.popleft())

    def _start(self, turn: Coroutine[Any, Any, None]) -> None:
        task = self._task(turn)
        self._turns.add(task)
        if not self.status.doing:
            self.status.doing = "sending"
        task.add_done_callback(self._turn_ended)
        self._terminal.changed()

    def _turn_ended(self, task: asyncio.Task[Any]) -> None:
        self._turns.discard(task)
        if not self._turns:
            self.status.doing = ""
        self._terminal.changed()

    def _task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not self.failed.done():
            self.failed.set_exception(error)

    async def say(self, drafts: Sequence[Draft]) -> None:
        """Send messages; while a turn runs it goes on, and is told of them."""
        others = self._turns - {asyncio.current_task()}
        if others or self._questions.current is not None:
            how = "for the next turn" if self.config.chat.busy == "queue" else "for its next step"
            if self._questions.current is not None:
                how = "until you have answered"
            self.write((f"waits {how}", "dim"))
        await self._as_turn(super().say(drafts))

    def queued(self) -> None:
        others = self._turns - {asyncio.current_task()}
        following = self._follower is not None and not self._follower.done()
        if not others and not following and self._questions.current is None:
            self.write(("another process has the conversation; it takes this up", "dim"))
            self.shown.clear()
            self._follower = self._task(elsewhere.follow(self))

    def asked(self) -> ToolCall | None:
        """What is asked."""
        return self._questions.current

    def unasked(self) -> None:
        """It was answered elsewhere."""
        self._questions.clear()
        self.write(("it was answered elsewhere", "dim"))

    def waits(self, waiting: int) -> None:
        """So many messages wait."""
        self.status.waiting = waiting
        self._terminal.changed()

    async def go_on(self) -> None:
        await self._as_turn(super().go_on())

    async def _as_turn(self, turn: Coroutine[Any, Any, None]) -> None:
        """Also one that a command runs is a turn, which can be steered and stopped."""
        task = asyncio.current_task()
        if task is None or task in self._turns:
            await turn
            return
        self._turns.add(task)
        try:
            await turn
        finally:
            self._turn_ended(task)

    def stopped(self) -> None:
        """Ctrl-C."""
        now, again = monotonic(), monotonic() - self._stopped_at < TWICE
        typed = self._terminal.buffer.text
        if self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(None)
            return
        if self._command is not None and self._command not in self._turns:
            self._command.cancel()
            return
        if again and not (typed and not self.busy):
            self.quit()
            return
        self._stopped_at = now
        if self.busy or self._questions.current is not None:
            self.status.doing = STOPPING
            self._task(self._stop())
        elif typed:
            self._terminal.buffer.reset()
            self._stopped_at = -TWICE
        else:
            self.write(("Ctrl-C again leaves, and so does Ctrl-D", "dim"))
        self._terminal.changed()

    async def _stop(self) -> None:
        asked = self._questions.current is not None
        self._questions.clear()
        stopped = await self.interrupt()
        if not self.busy:  # no turn is here that would say so
            self.status.doing = ""
            if stopped and asked:
                self.write(("stopped; it was not run", "dim"))
            if stopped and self.status.waiting:
                self._start(self.take_up())
        self._terminal.changed()

    def left(self) -> None:
        """Ctrl-D."""
        self.quit()

    def quit(self) -> None:
        app = self._terminal.area.app
        if app.is_running and not app.is_done:
            app.exit()

    def expand(self) -> None:
        """Show the last tool call whole."""
        if self.watcher.last is None:
            self.write(("no tool was called yet", "dim"))
        else:
            self.write_lines(tools_view.expanded(*self.watcher.last))

    def begun(self) -> None:
        """Take up what was left in the conversation that was opened; greet in a new one."""
        if self.is_open:
            self._start(self.take_up())
        elif self.options.model is None:
            self._task(self.greet())

    async def end(self) -> None:
        """Stop what runs."""
        self._stopped_at = monotonic()
        tasks = [*self._turns, *([self._command] if self._command else [])]
        if self.busy:
            await self.interrupt()
        for task in (self._command, self._follower, self._asking):
            if task is not None:
                task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE)

    # Questions about tool calls.

    def ask(self, calls: Iterable[ToolCall]) -> None:
        """Ask the person; keys count from a moment later on."""
        for call in self._questions.ask(calls):
            self.write_lines(tools_view.asked(call))
        if self._questions.current is not None and (self._asking is None or self._asking.done()):
            self._asking = self._task(elsewhere.watch(self))
        self._terminal.soon(MOMENT + 0.01)
        self._terminal.changed()

    def pressed(self, key: str) -> None:
        """A key that answers."""
        answer = read(key) or "no"
        if self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(key if answer == "once" else None)
        elif self._questions.open:
            self._answer(answer)

    def _answer(self, answer: Answer) -> None:
        call = self._questions.current
        if call is None:
            return
        more = self._questions.answered() is not None
        said = {"once": "allowed once", "always": "allowed in this conversation", "no": "refused"}
        self.write((f"  {said[answer]}", "red" if answer == "no" else "green"))
        if more:
            self._terminal.soon(MOMENT + 0.01)
        self._start(self._answered(call, answer, more))

    async def _answered(self, call: ToolCall, answer: Answer, more: bool) -> None:
        allow = answer != "no"
        always = answer == "always"
        if not await self.host.answer(self.conv, call.id, allow, always=always, by="chat"):
            self.write(("it was answered elsewhere", "dim"))
        if not more:
            self.watcher.answered = True
            await self.go_on()
