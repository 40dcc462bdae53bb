"""How much of each request a provider's cache may hold already.

The measure is that of maf-cachebench 0.4.1 (`--dry-run`), which needs Python 3.12 and the
strategies of one framework and so cannot take clew's requests: the messages that a request shares
with the one before it, from the first on, in tokens; a request that does not begin with all of the
one before is a break. Bytes: the same on the JSON of the messages, whatever their borders.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import clew
from benchmarks import clew_adapter
from benchmarks.compaction import histories
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import NotRun, Reading, Target
from clew.compaction.engine import Compactor
from clew.context.budget import Budget
from clew.context.tokens import count_text
from clew.domain.notes import Todo

_SEED = 31
_FULL = 1_000_000
"""Messages, as a target's size: only of a full run."""
_PROMPT = "You are a coding agent in /srv/billing. " * 40


@dataclass
class _Tally:
    """Requests of one way to keep within a window."""

    sent: int = 0
    reused: int = 0
    sent_bytes: int = 0
    reused_bytes: int = 0
    breaks: int = 0
    _before: list[str] = field(default_factory=list[str])
    _joined: str = ""
    _tokens: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, messages: Sequence[dict[str, Any]]) -> None:
        texts = [json.dumps(message, ensure_ascii=False) for message in messages]
        joined = ",".join(texts)
        shared = _common(self._before, texts)
        self.sent += sum(map(self.tokens, texts))
        self.reused += sum(map(self.tokens, texts[:shared]))
        self.breaks += shared < len(self._before)
        self.sent_bytes += len(joined)
        self.reused_bytes += _common(self._joined, joined)
        self._before, self._joined = texts, joined

    def tokens(self, text: str) -> int:
        if text not in self._tokens:
            self._tokens[text] = count_text(text)
        return self._tokens[text]

    @property
    def share(self) -> float:
        return 100 * self.reused / self.sent

    @property
    def share_bytes(self) -> float:
        return 100 * self.reused_bytes / self.sent_bytes


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """How many messages, or characters, two requests share from the first on; by halving."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def prefix(bench: Bench) -> Readings:
    """Every model call of a long conversation, beside a window that slides with each of them; in a
    full run once more with an item open on the agent's list, which stands in each request's last
    message."""
    count, window = bench.pick(60, 400), bench.pick(16_000, 100_000)
    with clew.open(bench.path("prefix")) as store:
        profile = store.profile(clew_adapter.PROFILE)
        conversation = profile.create(source="cli", prompt=_PROMPT)
        ours, sliding = _measured(conversation, count, window)
        compactions = len(conversation.compactions())
        if not compactions:
            raise NotRun("the conversation was never compacted; make it longer")
        note = f"{count} turns, a window of {window:,} tokens, {compactions} compactions"
        yield "prefix_reuse", Reading(ours.share, ours.share, sliding.share, "%", note=note)
        yield (
            "prefix_breaks",
            Reading(ours.breaks / compactions, ours.breaks, sliding.breaks, "breaks", note=note),
        )
        shares = ours.share_bytes, sliding.share_bytes
        yield "prefix_reuse_bytes", Reading(shares[0], *shares, "%")
        if "prefix_reuse_todo" in bench.wanted:
            conversation = profile.create(source="cli", prompt=_PROMPT)
            conversation.set_todos([Todo("write the report")])
            again, _ = _measured(conversation, count, window)
            note = f"{again.breaks} breaks: each request at the last message of the one before"
            yield "prefix_reuse_todo", Reading(again.share, again.share, ours.share, "%", note=note)


def _measured(conversation: clew.Conversation, count: int, window: int) -> tuple[_Tally, _Tally]:
    """clew's requests, and those of a sliding window."""
    ours, sliding = _Tally(), _Tally()
    compactor = Compactor(Budget(window=window))
    for log in _requests(conversation, count):
        context = compactor.context(conversation)
        ours.add(context.chat(conversation.blob))
        sliding.add(_newest(log, context.limit, sliding))
    return ours, sliding


def _requests(conversation: clew.Conversation, count: int) -> Iterator[list[dict[str, Any]]]:
    """Appends the turns message by message; yields the log so far at each model call."""
    log: list[dict[str, Any]] = [{"role": "system", "content": _PROMPT}]
    for turn in histories.turns(_SEED, count):
        for message in turn:
            if message["role"] == "assistant":
                yield log
            conversation.add(message)
            log.append(message)


def _newest(log: list[dict[str, Any]], limit: int, tally: _Tally) -> list[dict[str, Any]]:
    """The system prompt and the newest messages within the limit."""
    prompt, *rest = log
    room = limit - tally.tokens(json.dumps(prompt, ensure_ascii=False))
    start = len(rest)
    for at in range(len(rest) - 1, -1, -1):
        room -= tally.tokens(json.dumps(rest[at], ensure_ascii=False))
        if room < 0:
            break
        start = at
    return [prompt, *rest[start:]]


_SIDES = ("clew", "a sliding window")
PREFIX = Job(
    "prefix",
    prefix,
    (
        Target(
            "prefix_reuse", 95, "%", at_least=True, sides=_SIDES,
            says="input tokens that the request before had already",
        ),
        Target(
            "prefix_breaks", 1, "per compaction", sides=_SIDES,
            says="requests that do not begin with all of the one before",
        ),
        Target(
            "prefix_reuse_bytes", None, "%", sides=_SIDES,
            says="bytes that the request before had already",
        ),
        Target(
            "prefix_reuse_todo", None, "%", sides=("with an open todo", "without"), size=_FULL,
            says="input tokens that the request before had, with an item on the agent's list",
        ),
    ),
)  # fmt: skip
