"""Committing a compaction of 1,000 messages, against Hermes in place, and reading after it."""

from __future__ import annotations

import time
from collections.abc import Callable

import clew
from benchmarks import clew_adapter, workload
from benchmarks.compaction import kit
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Interleaved, Target, typical
from benchmarks.workload import Chat
from clew.compaction.engine import Compactor
from clew.context.budget import Budget
from clew.domain.compactions import Inline, Proposal
from clew.domain.messages import Role
from clew.domain.parts import Text

_MESSAGES, _TAIL = 1_000, 20
_SUMMARY = "What was done, and what is still to do. " * 200
_BUDGET = Budget(window=400_000)
"""Large enough that all of it fits before."""


def commits(bench: Bench) -> Readings:
    """A conversation of its own for each commit, the same rows on both sides."""
    rounds = bench.pick(4, 25)
    path = bench.path("commit")
    clew_adapter.write(path, workload.w1(2 * rounds + 1, _MESSAGES))
    with clew.open(path) as store, kit.start("hermes", "hermes", bench.folder) as hermes:
        profile = store.profile(clew_adapter.PROFILE)
        found = sorted(profile.list(limit=2 * rounds + 1).items, key=lambda each: str(each.title))
        first, *rest = [profile.open(each.id) for each in found]
        version = hermes.run("open", path=str(bench.path("hermes")))
        samples = Interleaved()
        for chat in workload.w1(rounds, _MESSAGES):
            hermes.run("create", name=chat.name, messages=chat.messages)
            samples.add("clew", _commit(rest.pop()))
            samples.add("hermes", _hermes(hermes, chat))
            samples.add("whole", _whole(rest.pop()))
        yield "commit_vs_hermes", samples.ratio("clew", "hermes", "ms", version)
        yield "compact_vs_hermes", samples.ratio("whole", "hermes", "ms", "ledger included")
        yield from _reads(bench, first)


def _commit(conversation: clew.Conversation) -> float:
    """Milliseconds of commit_attempt alone; the body is what Hermes is given."""
    body = (Inline(Role.USER, (Text(_SUMMARY),)),)
    proposal = Proposal(
        covers_to=_MESSAGES - _TAIL, body=body, tokens_before=200_000, tokens_after=6_000
    )
    number = conversation.open_attempt("user").number
    return _milliseconds(lambda: conversation.commit_attempt(number, proposal))


def _hermes(hermes: kit.Kit, chat: Chat) -> float:
    tail = [dict(message) for message in chat.messages[-_TAIL:]]
    messages = [{"role": "user", "content": _SUMMARY}, *tail]
    return hermes.run("compact", name=chat.name, messages=messages, tail=_TAIL)


def _whole(conversation: clew.Conversation) -> float:
    """Milliseconds of everything: read, plan, write the ledger, check, commit."""
    compactor = Compactor(_BUDGET)
    outcome: list[str] = []
    took = _milliseconds(lambda: outcome.append(compactor.compact(conversation).state))
    assert outcome == ["committed"], outcome
    return took


def _milliseconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return (time.perf_counter() - started) * 1e3


def _reads(bench: Bench, conversation: clew.Conversation) -> Readings:
    """The context of one conversation, as a request needs it: whole, compacted, and so on in turns
    (undoing and committing again is not part of it)."""
    compactor = Compactor(_BUDGET)
    samples = Interleaved()
    for _ in range(bench.pick(3, 15)):
        for side in ("before", "after"):
            samples.add(side, typical(3, lambda: _request(compactor, conversation)) * 1e3)
            if side == "before":
                _commit(conversation)
        conversation.undo_compaction(conversation.info().generation)
    yield "read_after_commit", samples.ratio("after", "before", "ms")


def _request(compactor: Compactor, conversation: clew.Conversation) -> int:
    return len(compactor.peek(conversation).chat(conversation.blob))


COMMIT = Job(
    "commit",
    commits,
    (
        Target(
            "commit_vs_hermes", 0.3, "x", sides=("clew", "hermes in place"),
            says=f"commit a compaction of {_MESSAGES:,} messages",
        ),
        Target(
            "read_after_commit", 1, "x", sides=("after", "before"),
            says="build and render the context, after against before",
        ),
        Target(
            "compact_vs_hermes", None, "x", sides=("clew, all of it", "hermes, commit alone"),
            says="the whole of a compaction, the ledger written too",
        ),
    ),
)  # fmt: skip
