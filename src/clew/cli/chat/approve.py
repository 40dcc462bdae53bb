"""Questions to a person about tool calls, one after the other. No is what is done by default.

Keys that were typed before the question was there are no answer to it: for a moment after it
appears it takes none, and says its keys only when it does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Literal

from clew.domain.parts import ToolCall

MOMENT = 0.4
"""Seconds in which what is typed was meant for something else."""
KEYS = "y once, a always here, n no"
Answer = Literal["once", "always", "no"]
ANSWERS: dict[str, Answer] = {
    "y": "once", "yes": "once", "a": "always", "always": "always", "n": "no", "no": "no",
    "": "no",
}  # fmt: skip


class Questions:
    """Calls that wait for an answer, and when the first of them was shown."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._calls: deque[ToolCall] = deque()
        self._since = 0.0

    def ask(self, calls: Iterable[ToolCall]) -> list[ToolCall]:
        """Add calls; gives those that were not there."""
        known = {call.id for call in self._calls}
        new = [call for call in calls if call.id not in known]
        if not self._calls:
            self._since = self._now()
        self._calls.extend(new)
        return new

    def clear(self) -> None:
        """Nothing is asked any more."""
        self._calls.clear()

    @property
    def current(self) -> ToolCall | None:
        """What is asked."""
        return self._calls[0] if self._calls else None

    @property
    def more(self) -> int:
        """How many are asked after it."""
        return max(0, len(self._calls) - 1)

    @property
    def open(self) -> bool:
        """Whether a key is an answer now."""
        return bool(self._calls) and self._now() - self._since >= MOMENT

    def answered(self) -> ToolCall | None:
        """The current one was answered; gives the next."""
        self._calls.popleft()
        self._since = self._now()
        return self.current


def read(text: str) -> Answer | None:
    """What a typed answer means; None: it is none."""
    return ANSWERS.get(text.strip().lower())
