"""What somebody said is left open, until somebody says that it is done, or nobody speaks of it any
more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from clew.compaction.ledger.rows import Row
from clew.compaction.ledger.sentences import clip
from clew.compaction.ledger.speech import Said, content_words
from clew.compaction.ledger.words import DENIES, UNSURE, fold
from clew.domain.messages import Message, Role

MOST_AGE = 20
"""Requests after which something left open is no longer shown: by then it was done without a word
about it, or it does not matter. An agent that takes it up again does old work twice."""
MOST_OPEN = 64
"""Open ones that a sentence is compared with, newest first."""
_SHARED = 0.75
"""The part of its words that a sentence must have to speak of the same thing."""
_FINISHES = re.compile(
    r"\b(?:done|finished|completed|fixed|resolved|solved|added|implemented|merged|ported|wrote|"
    r"written|closed|landed|shipped|released|updated|removed|renamed|replaced|approved|answered|"
    r"pass(?:es|ed)?|works?|in place|in order|"
    r"no longer (?:needed|missing|pending|open|blocked|failing|fails))\b",
    re.I,
)
_ABOUT = """
still need needs needed missing remaining todo fixme done yet open follow pending waiting blocked
unresolved deferred awaiting item point have failing fails
"""
_OF_TODOS = frozenset(_ABOUT.split())
"""Words that say that something is open, and not what."""


class _Open(NamedTuple):
    """Something left open, and the words that say what."""

    row: Row
    words: frozenset[str]


class Pending:
    """Follows what is left open. `ended`: what was done, as done rows; `closed`: rows of earlier
    epochs that ended or are old; `aged`: how many of these messages' own are old."""

    def __init__(self, earlier: Sequence[Row]) -> None:
        self.ended: list[Row] = []
        self.closed: list[Row] = []
        self.aged = 0
        self._open: dict[str, _Open] = {}
        for row in filter(is_pending, earlier):
            self._open[row.text.lower()] = _Open(row, _words(row.text))
        self._before = {(one.row.seq, one.row.text) for one in self._open.values()}
        self._asked = [row.seq for row in earlier if is_request(row)]

    def read(self, message: Message, found: Iterable[Said]) -> None:
        """The next message, and what it says."""
        for one in found:
            if is_pending(one.row):
                self._add(one.row)
            elif one.asking and message.role is Role.USER:
                self._asked.append(message.seq)
            elif self._open:
                self.finish(one.row.text, one.row)

    def finish(self, text: str, by: Row) -> None:
        """What this sentence says is done."""
        if not _FINISHES.search(text) or DENIES.search(text) or UNSURE.search(text.lower()):
            return
        told = _words(text)
        for one in list(islice(reversed(self._open.values()), MOST_OPEN)):
            if one.row.seq < by.seq and _same(one.words, told):
                self._end(one.row, by, clip(text, 110))

    def close(self, seq: int) -> None:
        """What the message `seq` left open is done."""
        for one in [one for one in self._open.values() if one.row.seq == seq]:
            self._end(one.row, None, "")

    def standing(self) -> list[Row]:
        """Those of these messages that are open and not old."""
        rows = [one.row for one in self._open.values()]
        for row in aged(rows, self._asked):
            self._drop(row)
            self.aged += not self._is_earlier(row)
        return [one.row for one in self._open.values() if not self._is_earlier(one.row)]

    def _add(self, row: Row) -> None:
        """The same said again is one, the newer; but what an earlier epoch shows stays there."""
        key = row.text.lower()
        again = self._open.get(key)
        if again is None or not self._is_earlier(again.row):
            self._open.pop(key, None)
            self._open[key] = _Open(row, _words(row.text))

    def _end(self, row: Row, by: Row | None, answer: str) -> None:
        self._drop(row)
        slot, at = (f"answer:{by.seq}", by.at) if by else (None, row.at)
        self.ended.append(Row("done", row.text, row.seq, slot, answer or None, at, (), "done"))

    def _drop(self, row: Row) -> None:
        del self._open[row.text.lower()]
        if self._is_earlier(row):
            self.closed.append(row)

    def _is_earlier(self, row: Row) -> bool:
        return (row.seq, row.text) in self._before


def is_pending(row: Row) -> bool:
    """Whether a row is something that prose says is open; not an agent's list of things to do."""
    return row.kind == "ask" and row.state == "todo" and row.slot is None


def is_request(row: Row) -> bool:
    """Whether a row is a request of a person, open or not."""
    return row.kind == "done" or (row.kind == "ask" and row.state == "open")


def aged(rows: Iterable[Row], asked: Sequence[int]) -> list[Row]:
    """Of what is left open, that after which MOST_AGE requests came. `asked`: their seqs."""
    if len(asked) < MOST_AGE:
        return []
    border = sorted(asked)[-MOST_AGE]
    return [row for row in rows if is_pending(row) and row.seq < border]


def _words(text: str) -> frozenset[str]:
    return frozenset(fold(word) for word in content_words(text) if word not in _OF_TODOS)


def _same(todo: frozenset[str], told: frozenset[str]) -> bool:
    shared = len(todo & told)
    return shared >= min(2, len(todo)) and shared > 0 and shared >= _SHARED * len(todo)
