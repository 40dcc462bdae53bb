"""What `clew ask` prints: the answer and nothing else on standard output, notes on the other."""

from __future__ import annotations

from clew.cli import jsonout
from clew.cli.ask_answer import Answer
from clew.cli.screen import Screen
from clew.cli.text import one_line, visible
from clew.host.events import Answered, Event, Retrying, ToolStarted, TurnStarted
from clew.providers.api import TextDelta


class Output:
    """Prints an answer: as it comes (`stream`), at the end, or as JSON."""

    def __init__(self, out: Screen, notes: Screen, stream: bool, as_json: bool) -> None:
        self._out, self._notes = out, notes
        self._stream, self._json = stream and not as_json, as_json
        self._at_start = True
        """Whether the next character begins a line."""
        self._printed = False
        self._said = False
        """Whether the model call that runs has said something that was printed."""
        self._mine: int | None = None
        """The turn of the question: a host may run what was left before it, and what came after."""
        self._muted = False
        self._gone: BrokenPipeError | None = None

    def event(self, event: Event) -> None:
        """Something happened in the turn. A reader who has gone does not end it: see `answer`."""
        if isinstance(event, Retrying):
            self._again(event)
            return
        if not self._stream or self._gone is not None:
            return
        try:
            self._show(event)
        except BrokenPipeError as error:
            self._gone = error

    def _show(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self._turn(event)
            case _ if self._muted:
                pass
            case TextDelta():
                self._write(event.text)
                self._said = True
            case Answered():
                self._said = False
                if event.calls and self._printed:
                    self._end_line()
                    self._write("\n")
            case ToolStarted() if self._notes.is_terminal:
                self.note(f"calling {event.call.name}")
            case _:
                pass

    def _again(self, event: Retrying) -> None:
        """The call is made again: to be said where what was printed counts no more, and where a
        person would wonder why nothing comes."""
        if self._said:
            self._said = False
            self._end_line()
            self.note(f"the model is asked again, so what it said counts no more: {event.why}")
        elif self._stream or self._notes.is_terminal:
            self.note(f"the model is asked again: {event.why}")

    def _turn(self, event: TurnStarted) -> None:
        if self._mine is None and not event.resumed:
            self._mine = event.turn
        self._muted = event.turn != self._mine

    def note(self, text: str) -> None:
        """A line for the person. It begins a line on a terminal; what is piped stays the answer."""
        if self._out.is_terminal:
            self._end_line()
        self._notes.line((f"clew: {one_line(text)}", "dim"))

    def answer(self, answer: Answer) -> None:
        """The end. Raises BrokenPipeError when nobody reads any more."""
        if self._gone is not None:
            raise self._gone
        if self._json:
            jsonout.write(self._out.stream, answer.facts())
            return
        if not self._printed and answer.text:
            self._write(answer.text)
        self._end_line()
        if answer.error and answer.error not in answer.notices:
            self.note(answer.error)

    def _write(self, text: str) -> None:
        shown = visible(text) if self._out.is_terminal else text
        self._out.stream.write(shown)
        self._out.stream.flush()
        self._at_start, self._printed = text.endswith("\n"), True

    def _end_line(self) -> None:
        if not self._at_start:
            self._out.stream.write("\n")
            self._at_start = True
