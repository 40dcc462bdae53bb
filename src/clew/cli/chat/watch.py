"""Makes of the events of a turn what a person is shown. Pure but for what it tells the screen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from clew.cli.chat import tools_view
from clew.cli.chat.status import Status
from clew.cli.screen import Piece
from clew.cli.text import glance
from clew.domain.parts import ToolCall, ToolResult
from clew.host.events import (
    Answered,
    Asked,
    CallStarted,
    Compacted,
    Compacting,
    Event,
    Notice,
    Queued,
    Retrying,
    Steered,
    Titled,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from clew.providers.api import ReasoningDelta, TextDelta
from clew.store.findings import counted

NOTE = 400
"""Columns of a notice or an error."""


class Out(Protocol):
    """Where it is shown."""

    @property
    def width(self) -> int: ...

    @property
    def unicode(self) -> bool: ...

    def text(self, text: str, thinking: bool = False) -> None:
        """A piece of an answer."""
        ...

    def flush(self) -> None:
        """The answer so far is whole."""
        ...

    def cut(self) -> None:
        """The answer so far counts no more."""
        ...

    def write(self, *pieces: Piece | str) -> None:
        """A line."""
        ...

    def ask(self, calls: Iterable[ToolCall]) -> None:
        """A person must allow these."""
        ...

    def changed(self) -> None:
        """The status, or what is running, is another."""
        ...


class Watcher:
    """Called with each event (`host.events.Emit`)."""

    def __init__(self, out: Out, status: Status, reasoning: bool = False) -> None:
        self._out, self._status, self._reasoning = out, status, reasoning
        self.running: dict[str, ToolCall] = {}
        """Calls that have begun, by id."""
        self.last: tuple[ToolCall, ToolResult] | None = None
        """The call that was answered last."""
        self.said = ""
        """The error that was shown last."""
        self._partial = False
        self.answered = False
        """Whether a turn that goes on does so because the person has answered."""
        self.spoke = False
        """Whether an answer was shown since this turn began."""

    def __call__(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                self._speak(text, False)
            case ReasoningDelta(text=text):
                self._speak(text, True)
            case ToolStarted() | ToolFinished() | Asked() | Answered():
                self._step(event)
            case TurnStarted() | CallStarted() | TurnEnded():
                self._turn(event)
            case _:
                self._beside(event)
        self._out.changed()

    def _speak(self, text: str, thinking: bool) -> None:
        self._status.doing = "thinking" if thinking else "writing"
        if thinking and not self._reasoning:
            return
        self.spoke = self.spoke or not thinking
        self._out.text(text, thinking)

    def _step(self, event: ToolStarted | ToolFinished | Asked | Answered) -> None:
        match event:
            case ToolStarted(call=call):
                self.running[call.id] = call
                self._status.doing = "running tools"
            case ToolFinished(call=call, result=result, seconds=seconds):
                self.running.pop(call.id, None)
                self.last = call, result
                self._out.write(
                    *tools_view.finished(call, result, seconds, self._out.width, self._out.unicode)
                )
            case Asked(calls=calls):
                self._status.doing = ""
                self._out.ask(calls)
            case Answered(usage=usage, cost=cost, partial=partial):
                self._out.flush()
                self._status.add(usage, cost)
                self._partial = partial
                if partial:
                    self._note("stopped; what was said is kept")

    def _turn(self, event: TurnStarted | CallStarted | TurnEnded) -> None:
        match event:
            case TurnStarted(resumed=resumed):
                self.spoke, self.said, self._partial = False, "", False
                self._status.begin()
                self._status.doing = "starting"
                if resumed and not self.answered:
                    self._note("going on where it was interrupted")
                self.answered = False
            case CallStarted(model=model, tokens=tokens, limit=limit):
                status = self._status
                status.model, status.tokens, status.limit = model, tokens, limit
                status.doing = "waiting for the model"
            case TurnEnded(state=state, waiting=waiting, error=error):
                self._out.flush()
                self.running.clear()
                self._status.waiting, self._status.doing = waiting, ""
                if state == "failed":
                    self.error(error or "the turn failed")
                elif state == "interrupted" and not self._partial:
                    self._note(error or "stopped")

    def _beside(self, event: Event) -> None:
        match event:
            case Retrying(why=why, seconds=seconds, model=model):
                self._out.cut()
                when = f"in {seconds:.0f} s" if seconds >= 0.5 else "now"
                self._note(f"{why.rstrip('.')}; asking {model.shown} again {when}", "yellow")
                self._status.doing = "waiting to ask again"
            case Compacting():
                self._status.doing = "compacting"
            case Compacted(outcome=outcome):
                self._note(outcome.reason)
                if outcome.notice:
                    self._note(outcome.notice, "yellow")
            case Titled(title=title):
                self._note(f"title: {title}")
            case Notice(kind=kind, text=text):
                self._note(text, "dim" if kind in ("stop", "model") else "yellow")
            case Queued(numbers=numbers):
                self._status.waiting += len(numbers)
            case Steered(numbers=numbers):
                self._status.waiting = max(0, self._status.waiting - len(numbers))
                self._note(f"{counted(len(numbers), 'message')} taken into this turn")
            case _:
                pass

    def error(self, text: str) -> None:
        """Show what went wrong, unless it was just shown."""
        if text != self.said:
            self.said = text
            self._out.write((glance(text, NOTE), "red"))

    def _note(self, text: str, style: str = "dim") -> None:
        self._out.write((glance(text, NOTE), style))
