"""Requests and what became of them: an exchange ends with a text of the agent that calls nothing,
and after which the agent does nothing more."""

from __future__ import annotations

import re

from clew.compaction.ledger.rows import Row
from clew.compaction.ledger.sentences import clip, sentences
from clew.compaction.ledger.speech import Said, withdraws
from clew.compaction.ledger.words import is_chatter
from clew.domain.messages import Message, Role
from clew.domain.parts import ToolCall


class Exchanges:
    """Follows the requests of a conversation. `open` are those not answered yet."""

    def __init__(self, open_before: list[Row]) -> None:
        self.open: list[Row] = list(open_before)
        self.ended: list[Row] = []
        self.closed: list[Row] = []
        """The requests that ended, as they were while open."""
        self._answer: Message | None = None

    def read(self, message: Message, said: list[Said]) -> None:
        """The next message, and what it says."""
        if message.role is Role.USER:
            self.finish()
            if self.open and withdraws(message.text):
                self._end(self.open[-1:], message, "withdrawn", "")
            self.open += [_opened(one.row) for one in said if one.asking and one.row.kind == "ask"]
        elif message.role is Role.ASSISTANT:
            self._answer = message if self.open and _answers(message) else None
        elif message.role is Role.TOOL:
            self._answer = None

    def finish(self) -> None:
        """Here the agent stops for now: what it said last is its answer to all that is open."""
        if self._answer is not None:
            self._end(list(self.open), self._answer, "done", _gist(self._answer.text))
            self._answer = None

    def close(self, seq: int, message: Message | None) -> None:
        """The requests of the message `seq` are done."""
        self._end([row for row in self.open if row.seq == seq], message, "done", "")

    def _end(self, rows: list[Row], by: Message | None, state: str, answer: str) -> None:
        for row in rows:
            self.open.remove(row)
            self.closed.append(row)
            at = (by.created_at if by else None) or row.at
            slot = f"answer:{by.seq}" if by else None
            self.ended.append(Row("done", row.text, row.seq, slot, answer or None, at, (), state))


def _opened(row: Row) -> Row:
    return Row("ask", row.text, row.seq, None, None, row.at, (), "open")


def _answers(message: Message) -> bool:
    if any(isinstance(part, ToolCall) for part in message.parts):
        return False
    text = message.text.strip()
    return bool(text) and not is_chatter(text) and not _is_unfinished(text)


_UNFINISHED = re.compile(
    r"\b(?:not yet|can ?not|can'?t|could(?: not|n'?t)|unable to|have(?: not|n'?t) (?:yet )?"
    r"(?:started|begun|done|found|finished)|"
    r"i(?:'ll| will) (?:get to|do (?:it|that)|start|wait|look)|"
    r"(?:still|now) (?:running|waiting|failing|fails)|waiting (?:for|on)|before i can|"
    r"i need (?:you|your|the|to know|more)|(?:failed|fails) with)\b",
    re.IGNORECASE,
)
"""Signs that an answer leaves the request open: it fails, waits or asks back."""
_EDGE = 300
"""Characters at both ends of an answer in which it says how it ends."""


def _is_unfinished(text: str) -> bool:
    """Whether an answer asks back, or says that the work is not done."""
    short = len(text) <= 2 * _EDGE
    ends = text.lower() if short else f"{text[:_EDGE]} {text[-_EDGE:]}".lower()
    return text.endswith("?") or _UNFINISHED.search(ends) is not None


def _gist(text: str) -> str:
    """The first sentence of an answer that says something."""
    for sentence in sentences(text[:2_000]):
        if not is_chatter(sentence.text) and len(sentence.text) > 12 and sentence.text[-1] != ":":
            return clip(sentence.text, 110)
    return ""
