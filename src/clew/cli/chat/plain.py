"""`clew chat` without a terminal to draw on: in a pipe, or where TERM is dumb.

Each line that is read is a message, one that ends in a backslash goes on in the next, and a line
that begins with a slash is a command. What is answered is printed as it comes, without colours;
what is said about it goes to standard error, so that a pipe gets answers only.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Iterable, Sequence

from clew.cli.chat import tools_view
from clew.cli.chat.approve import KEYS, read
from clew.cli.chat.leaving import farewell
from clew.cli.chat.rows import piece_lines, table_rows
from clew.cli.chat.session import Session
from clew.cli.chat.starting import Options, Started
from clew.cli.chat.typed import Lines
from clew.cli.failures import OK, REFUSED, code_of
from clew.cli.lines import Line, PlainWriter
from clew.cli.screen import Piece, Screen
from clew.cli.settings import Settings
from clew.cli.text import visible
from clew.domain.messages import user
from clew.domain.parts import ToolCall

PROMPT = "> "
WIDE = 100


class PlainChat(Session):
    """The chat of a pipe."""

    def __init__(self, settings: Settings, start: Started, options: Options) -> None:
        super().__init__(settings, start, options)
        self._out, self._notes = settings.screen, Screen(sys.stderr, False)
        self._person = sys.stdin.isatty()
        self._prompt = self._person and self._out.is_terminal
        self._calls: deque[ToolCall] = deque()
        self._lines = Lines()
        self._middle = False
        self._leaves = False
        self._unanswered = False

    @property
    def width(self) -> int:
        return self._out.width if self._out.is_terminal else WIDE

    @property
    def unicode(self) -> bool:
        return self._out.unicode

    def text(self, text: str, thinking: bool = False) -> None:
        if thinking:
            return
        self._middle = not text.endswith("\n") if text else self._middle
        self._out.stream.write(visible(text))
        self._out.stream.flush()

    def flush(self) -> None:
        if self._middle:
            self._out.stream.write("\n")
            self._out.stream.flush()
        self._middle = False

    def cut(self) -> None:
        if self._middle:
            self.flush()
            self._note("(this answer was cut off)")

    def write(self, *pieces: Piece | str) -> None:
        self.write_lines(piece_lines(pieces))

    def write_lines(self, lines: Iterable[Line]) -> None:
        self.flush()
        PlainWriter(self._notes).write(
            Line(indent, tuple((text, "") for text, _ in pieces)) for indent, pieces, _ in lines
        )

    def _note(self, text: str) -> None:
        self.flush()
        self._notes.line(text)

    def table(self, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        for row in table_rows(titles, rows, self.width, False):
            self._out.line(row)

    def markdown(self, text: str) -> None:
        self.text(text if text.endswith("\n") else text + "\n")

    async def page(self, text: str) -> None:
        self.markdown(text)

    async def confirm(self, question: str) -> bool:
        return self._prompt and read(await self._line(f"{question} [y/N] ") or "") == "once"

    async def edit(self, text: str) -> str | None:
        self._note("there is no input line to edit in; give the text behind the command")
        return None

    def ask(self, calls: Iterable[ToolCall]) -> None:
        known = {call.id for call in self._calls}
        self._calls.extend(call for call in calls if call.id not in known)

    def queued(self) -> None:
        self._note("another process has the conversation; it answers this there")

    def changed(self) -> None:
        pass

    def quit(self) -> None:
        self._leaves = True

    async def run(self) -> int:
        """To the end of the input; gives the exit code: of the last turn that failed."""
        await self.begin()
        if self.is_open:
            await self.take_up()
            await self._decide()
        elif self._prompt and self.options.model is None:
            await self.greet()
        if self.options.text:
            await self._take(self.options.text)
        elif not self._leaves:
            while not self._leaves and (text := await self._message()) is not None:
                if text.strip():
                    await self._take(text)
        if self._prompt:
            await self._say_farewell()
        if self.code_error is not None:
            return code_of(self.code_error)
        return REFUSED if self._unanswered else OK

    async def _say_farewell(self) -> None:
        if not self._leaves and not self.options.text:  # the prompt stands there
            self._out.line()
        for pieces in await farewell(self):
            self.write(*pieces)

    async def _take(self, text: str) -> None:
        if text.startswith("/") and not text.startswith("//") and "\n" not in text:
            if await self.command(text.strip()):
                self._calls.clear()
                await self.take_up()
        else:
            await self.say([user(text.removeprefix("/") if text[:2] == "//" else text)])
        await self._decide()

    async def _decide(self) -> None:
        """Ask about calls; where nobody can be asked they wait, and it is said how to answer."""
        while self._calls:
            if not self._prompt:
                names = ", ".join(visible(call.name) for call in self._calls)
                command = self.settings.command(f"chat --resume {self.conv.id}")
                self._note(f"waits for a person to allow {names}: {command}")
                self._calls.clear()
                self._unanswered = True
                return
            call = self._calls.popleft()
            self.write_lines(tools_view.asked(call))
            answer = read(await self._line(f"Allow it? {KEYS} ") or "") or "no"
            await self.host.answer(
                self.conv, call.id, answer != "no", always=answer == "always", by="chat"
            )
            if not self._calls:
                self.watcher.answered = True
                await self.go_on()

    async def _message(self) -> str | None:
        """The next message; None at the end of the input."""
        lines: list[str] = []
        while (line := await self._line(PROMPT)) is not None:
            lines.append(line.removesuffix("\\"))
            if not line.endswith("\\"):
                return "\n".join(lines)
        return "\n".join(lines) if lines else None

    async def _line(self, prompt: str) -> str | None:
        if self._prompt:
            self._out.stream.write(prompt)
            self._out.stream.flush()
        return await self._lines.next()


async def run(settings: Settings, start: Started, options: Options) -> int:
    """A whole chat; gives the exit code."""
    chat = PlainChat(settings, start, options)
    try:
        return await chat.run()
    except asyncio.CancelledError:
        await chat.interrupt()
        raise
    finally:
        chat.flush()
        await chat.close()
