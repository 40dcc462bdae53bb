"""A summariser that answers from a script, for tests of programs that compact."""

from __future__ import annotations

import threading
from collections.abc import Callable

from clew.compaction.summarize import SummaryReply, SummaryRequest

Answer = str | SummaryReply | Exception | Callable[[SummaryRequest], str | SummaryReply]
"""A text, a whole reply, an error to raise, or what makes one from the request."""

SAYS = '{"narrative": "They went on.", "add": [], "supersede": [], "close": []}'
"""An answer that adds nothing but a sentence."""


class ScriptedSummarizer:
    """Gives its answers in turn, the last one for ever. `requests` is what it was asked."""

    def __init__(self, *answers: Answer, model: str = "scripted") -> None:
        self.model = model
        self._answers: tuple[Answer, ...] = answers or (SAYS,)
        self.requests: list[SummaryRequest] = []
        self._lock = threading.Lock()

    def __call__(self, request: SummaryRequest) -> SummaryReply | str:
        with self._lock:
            answer = self._answers[min(len(self.requests), len(self._answers) - 1)]
            self.requests.append(request)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, str | SummaryReply) else answer(request)


class Gate:
    """An answer that waits until it is let go, as a slow model does; `asked` is set meanwhile."""

    def __init__(self, text: str = SAYS) -> None:
        self.asked, self.open = threading.Event(), threading.Event()
        self._text = text

    def __call__(self, request: SummaryRequest) -> str:
        self.asked.set()
        self.open.wait(60)
        return self._text
