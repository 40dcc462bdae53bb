"""One conversation compacted four times as it grows, by the engine, in a store: what is known in
the end of all that was said, and whether what was written once stays as it is.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

import clew
from benchmarks import clew_adapter
from benchmarks.compaction import histories
from benchmarks.compaction.histories import Fact
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Reading, Target
from clew.compaction.engine import Compactor
from clew.compaction.ledger import Epoch, epoch_of
from clew.context.budget import Budget
from clew.domain.compactions import Compaction, Inline
from clew.domain.parts import plain_text

_SEEDS = (21, 22, 23, 24)
_ROUNDS = 4
_MESSAGES = 1_000
_BUDGET = Budget(window=48_000)
"""So small that each round writes an epoch; with more, shorter outputs suffice at first."""


@dataclass
class _Tally:
    """What four conversations came to."""

    facts: int = 0
    known: int = 0
    changed: int = 0
    """Facts that got another value."""
    stale: list[str] = field(default_factory=list[str])
    epochs: int = 0
    """Epochs that were there before a compaction, and were not folded by it."""
    rewritten: int = 0
    lost: str = ""


def rounds(bench: Bench) -> Readings:
    """What stands in the context is known; an older value is stale where nothing marks it."""
    tally = _Tally()
    with clew.open(bench.path("rounds")) as store:
        profile = store.profile(clew_adapter.PROFILE)
        for seed in _SEEDS:
            _one(profile.create(source="cli"), seed, tally)
    known = 100 * tally.known / tally.facts
    note = f"{tally.facts} facts in {len(_SEEDS)} conversations of {_MESSAGES:,} messages"
    yield "rounds_recall", Reading(known, note=f"{note}{tally.lost and '; lost: ' + tally.lost}")
    yield (
        "rounds_rewritten",
        Reading(tally.rewritten, note=f"{tally.epochs} epochs that a compaction met"),
    )
    note = f"{tally.changed} facts changed; stale: {', '.join(tally.stale) or 'none'}"
    yield "rounds_stale", Reading(len(tally.stale), note=note)


def _one(conversation: clew.Conversation, seed: int, tally: _Tally) -> None:
    told = histories.history(seed, _MESSAGES)
    compactor = Compactor(_BUDGET)
    before: dict[int, str] = {}
    epochs: list[Epoch] = []
    for part in _parts(told.chat):
        conversation.add(part)
        outcome = compactor.compact(conversation)
        assert outcome.compaction is not None, outcome.reason
        assert outcome.receipt is not None
        epochs = _epochs(outcome.compaction)
        now = {epoch.number: epoch.text for epoch in epochs}
        met = {n: text for n, text in before.items() if n not in outcome.receipt.folded}
        tally.epochs += len(met)
        tally.rewritten += sum(now.get(number) != text for number, text in met.items())
        before = now
    context = compactor.context(conversation)
    _judge(told.facts, json.dumps(context.chat(conversation.blob), ensure_ascii=False), tally)
    tally.stale += [fact.stale for fact in told.facts if _is_stale(fact.stale, epochs)]


def _parts(chat: list[histories.ChatMessage]) -> list[list[histories.ChatMessage]]:
    """Four parts, each ending with a result or an answer."""
    borders = [0]
    for number in range(1, _ROUNDS):
        at = number * len(chat) // _ROUNDS
        while chat[at]["role"] == "tool":
            at += 1
        borders.append(at)
    return [chat[a:b] for a, b in zip(borders, [*borders[1:], len(chat)], strict=True)]


def _epochs(record: Compaction) -> list[Epoch]:
    """The ledger of a compaction, with the texts as they are sent."""
    found: list[Epoch] = []
    for item in record.body:
        if isinstance(item, Inline) and (epoch := epoch_of(item)) is not None:
            assert epoch.text == plain_text(item.parts)
            found.append(epoch)
    return found


def _judge(facts: tuple[Fact, ...], text: str, tally: _Tally) -> None:
    text = text.lower()
    for fact in facts:
        known = all(json.dumps(token)[1:-1] in text for token in fact.tokens)
        tally.facts += 1
        tally.known += known
        tally.changed += bool(fact.stale)
        if not known:
            tally.lost += f"{fact.kind} {'/'.join(fact.tokens)}; "


def _is_stale(value: str, epochs: list[Epoch]) -> bool:
    """Whether a row gives the older value, and no later epoch says that this row is void."""
    if not value:
        return False
    old = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)", re.IGNORECASE)
    return any(
        old.search(row.text) and not any(_voids(later, row.seq) for later in epochs[at + 1 :])
        for at, epoch in enumerate(epochs)
        for row in epoch.rows
    )


def _voids(epoch: Epoch, seq: int) -> bool:
    """Its text says so, too: that is what a model reads."""
    return any(gone.seq == seq for gone in epoch.gone) and bool(
        re.search(rf"@{seq}(?!\d)", epoch.text)
    )


ROUNDS = Job(
    "rounds",
    rounds,
    (
        Target(
            "rounds_recall", 98, "%", at_least=True,
            says="facts known after four rounds of compaction",
        ),
        Target("rounds_rewritten", 0, "epochs", says="epochs that did not stay byte for byte"),
        Target("rounds_stale", 1, "of 16", says="older values that nothing marks as replaced"),
    ),
)  # fmt: skip
