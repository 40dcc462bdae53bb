"""A chat's terminal: what is written above, what stands below, and what a key means.

It is there before the store is open, so that a person can type at once; what was typed waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from prompt_toolkit.application import in_terminal

from clew.cli.chat.approve import KEYS, Questions
from clew.cli.chat.entry import Completing, Pastes, keys, make_buffer
from clew.cli.chat.history import ChatHistory, history_path
from clew.cli.chat.rows import (
    THINKING,
    Answer,
    is_unicode,
    line_rows,
    markdown_rows,
    piece_lines,
    table_rows,
)
from clew.cli.chat.status import STOPPING, Status
from clew.cli.chat.tools_view import running
from clew.cli.chat.window import FURTHER, PROMPT, Area
from clew.cli.lines import Line, line
from clew.cli.pager import paged
from clew.cli.screen import Piece, painted
from clew.cli.settings import Settings
from clew.cli.text import glance, visible
from clew.domain.parts import ToolCall

ECHOED = 12
"""Lines of a message that are shown when it is sent."""
PAUSE = 0.6
"""Seconds after which a key that answers was meant as an answer."""
RUNNING = 5
"""Calls that are named while they run."""
BUSY = "Enter steers, Ctrl-C stops"
BUSY_QUEUE = "Enter queues, Ctrl-C stops"


class Person(Protocol):
    """Who is told what the person does."""

    def entered(self, text: str, shown: str) -> None: ...
    def stopped(self) -> None: ...
    def left(self) -> None: ...
    def expand(self) -> None: ...
    def pressed(self, key: str) -> None: ...


class Terminal:
    """See the module."""

    def __init__(
        self, settings: Settings, status: Status, questions: Questions, *, vi: bool, queue: bool
    ) -> None:
        self._screen, self.status, self._questions = settings.screen, status, questions
        self.color, self.unicode = self._screen.color, is_unicode()
        self.person: Person | None = None
        self.chat: object | None = None
        self.running: Callable[[], Iterable[ToolCall]] = tuple
        self.question: str | None = None
        """One that is no tool call's: answered by y or n."""
        self.hint: str | None = None
        self._busy = BUSY_QUEUE if queue else BUSY
        self._answer, self._thought = Answer(), Answer(THINKING)
        self._tail: tuple[tuple[object, ...], list[str]] | None = None
        self._version = 0
        self.pastes = Pastes()
        history = ChatHistory(history_path(settings.profile))
        self.buffer = make_buffer(history, Completing(lambda: self.chat))
        bound = keys(self.buffer, self, self.pastes)
        self.area = Area(self.buffer, bound, self._below, self._status_row, color=self.color, vi=vi)

    @property
    def width(self) -> int:
        """Columns that are written: one less, so that no row ends at the edge."""
        return max(10, self.area.columns - 1)

    # What is written above.

    def text(self, text: str, thinking: bool = False) -> None:
        """A piece of an answer."""
        answer, other = (self._thought, self._answer) if thinking else (self._answer, self._thought)
        if other.begun:
            self._write(other.end(self.width, self.color))
        first = [] if answer.begun else [""]
        self._write(first + answer.add(text, self.width, self.color))

    def flush(self) -> None:
        """The answer so far is whole."""
        for answer in (self._thought, self._answer):
            self._write(answer.end(self.width, self.color))

    def cut(self) -> None:
        """The answer so far counts no more: its tail goes, and what stands above is marked."""
        if self._answer.begun or self._thought.begun:
            self._answer, self._thought = Answer(), Answer(THINKING)
            self.write(("(this answer was cut off)", "dim"))

    def write(self, *pieces: Piece | str) -> None:
        """A line."""
        self.write_lines(piece_lines(pieces))

    def write_lines(self, lines: Iterable[Line]) -> None:
        """Lines, wrapped."""
        self._write(line_rows(lines, self.width, self.color))

    def table(self, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Rows under titles."""
        self._write(table_rows(titles, rows, self.width, self.color))

    def markdown(self, text: str) -> None:
        """A whole text."""
        self._write(["", *markdown_rows(text, self.width, self.color)])

    def echo(self, text: str) -> None:
        """What the person sent, as it was typed."""
        rows = visible(text).split("\n")
        lines = [line(0, (PROMPT if not n else FURTHER, "bold cyan"), (row, "bold"), hang=2)
                 for n, row in enumerate(rows[:ECHOED])]  # fmt: skip
        if len(rows) > ECHOED:
            lines.append(line(2, (f"and {len(rows) - ECHOED:,} more lines", "dim")))
        self._write(["", *line_rows(lines, self.width, self.color)])

    def _write(self, rows: list[str]) -> None:
        self._version += 1
        self.area.above(rows)

    async def page(self, text: str) -> None:
        """A long text in the pager; the input is away as long."""
        async with in_terminal():
            with paged(self._screen, wanted=True) as stream:
                stream.write(visible(text).rstrip("\n") + "\n")

    def changed(self) -> None:
        """What stands below is another."""
        self._version += 1
        self.area.changed()

    def soon(self, seconds: float) -> None:
        """It will be another by then."""
        asyncio.get_running_loop().call_later(seconds, self.changed)

    # What stands below.

    def _below(self) -> list[str]:
        key = (
            self._version, self.width, self.area.height, self._questions.open,
            self.status.doing, self.hint, self.question,
        )  # fmt: skip
        if self._tail is None or self._tail[0] != key:
            self._tail = key, self._draw()
        return self._tail[1]

    def _draw(self) -> list[str]:
        room = max(1, self.area.height // 2 - 1)
        notes = [*self._calls(), *self._note()][-room:]
        answer = self._answer if self._answer.begun else self._thought
        return answer.tail(self.width, self.color, room - len(notes)) + notes

    def _calls(self) -> list[str]:
        rows = [
            "".join(painted(text, style, self.color) for text, style in pieces)
            for pieces in (running(c, self.width, self.unicode) for c in self.running())
        ]
        return rows[:RUNNING]

    def _note(self) -> list[str]:
        """A question, or what is going on."""
        doing, keys = self.status.doing, self._busy
        if doing == STOPPING:
            keys = "Ctrl-C leaves"
        said, style = doing and f"{doing}: {keys}", "dim"
        if self.hint is not None:
            said = self.hint
        if self.question is not None:
            said, style = f"{self.question} [y/N]", "yellow"
        elif (call := self._questions.current) is not None:
            more = f" ({self._questions.more} more)" if self._questions.more else ""
            ready = f" {KEYS}" if self._questions.open else ""
            name = glance(call.name, max(8, self.width - 10 - len(KEYS)))
            said, style = f"Allow {name}?{more}{ready}", "yellow"
        rows = line_rows([line(0, (said, style))], self.width, self.color) if said else []
        return ["", *rows] if rows else []

    def _status_row(self) -> str:
        pieces = self.status.pieces(self.width, self.unicode)
        return "".join(painted(text, style, self.color) for text, style in pieces)

    # What a key means.

    def entered(self, text: str) -> None:
        """Enter. What was pasted is put in its place again."""
        if self.person is not None:
            self.person.entered(self.pastes.unfold(text), text)

    def taken(self) -> None:
        """What is typed was sent: kept in the history, and the line is empty."""
        text = self.pastes.unfold(self.buffer.text)
        if text.strip():
            self.buffer.history.append_string(text)
        self.buffer.reset()
        self.pastes.clear()

    def put(self, text: str) -> None:
        """Have a text in the input."""
        self.buffer.reset()
        self.buffer.insert_text(self.pastes.fold(text))

    def stopped(self) -> None:
        """Ctrl-C."""
        if self.person is not None:
            self.person.stopped()

    def left(self) -> None:
        """Ctrl-D."""
        if self.person is not None:
            self.person.left()

    def expand(self) -> None:
        """Ctrl-O."""
        if self.person is not None:
            self.person.expand()

    def pressed(self, key: str) -> None:
        """A key that answers, unless it begins a word: then more is typed at once."""
        self.buffer.insert_text(key)
        asked = (self.question, self._questions.current)
        asyncio.get_running_loop().call_later(PAUSE, self._meant, key, asked)

    def _meant(self, key: str, asked: object) -> None:
        still = asked == (self.question, self._questions.current) and self.asks()
        if self.person is not None and still and self.buffer.text == key:
            self.buffer.reset()
            self.person.pressed(key)

    def asks(self) -> bool:
        """Whether keys are answers now."""
        return self.question is not None or self._questions.open
