"""compaction-conformance-kit: planted statements that survive five rounds of compaction, and values
that are out of date, on its standard corpus and on the generated one; and what searching adds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import clew
from benchmarks import clew_adapter
from benchmarks.compaction import kit
from benchmarks.compaction.ledger import Conversation
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Reading, Target
from clew.compaction.lookup import search
from clew.domain.chat import draft_of

_NAME = "conformance-kit"
_BUDGETS = {"20": 0.2, "30": 0.3}
_SEEDS = tuple(range(1, 9))
_ROUNDS = 5
_TOP = 3
Entry = dict[str, Any]


class Ours:
    """clew's side of the kit's questions: a conversation for each session of the kit."""

    def __init__(self) -> None:
        self._sessions: dict[int, Conversation] = {}

    def __call__(self, asked: dict[str, Any]) -> str:
        one = self._sessions.setdefault(asked["session"], Conversation())
        return one.compact(chat_of(asked["turns"]), asked["room"])


def chat_of(turns: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """The kit's turns, (role, text) each, as Chat Completions messages."""
    return [{"role": role, "content": text} for role, text in turns]


def standard(bench: Bench) -> Readings:
    """The kit's own benchmark, at both budgets."""
    with kit.start(_NAME, "conformance", bench.folder) as running:
        entries = running.run("standard", Ours(), budgets=list(_BUDGETS.values()))
    at = {label: _entries(entries, "budget_fraction", share) for label, share in _BUDGETS.items()}
    for label, found in at.items():
        _check(found, "budget_compliant")
        yield f"cck_survival_{label}", _side_by_side(found, _survival)
    for name, of, pick in (
        ("cck_resolved", lambda e: 100 * e["semantic"]["resolved_rate"], min),
        ("cck_stale", lambda e: e["semantic"]["conflicts"]["stale"], max),
        ("cck_distinct", lambda e: 100 * e["semantic"]["distinct_pair_rate"], min),
    ):
        both = {label: _side_by_side(found, of) for label, found in at.items()}
        worst = pick(both.values(), key=lambda reading: reading.value)
        told = ", ".join(f"{r.value:.4g} at {label} %" for label, r in both.items())
        yield name, Reading(worst.value, worst.left, worst.right, note=f"{told}; {worst.note}")


def generated(bench: Bench) -> Readings:
    """The kit's generated corpus: other subjects and other words for each seed."""
    with kit.start(_NAME, "conformance", bench.folder) as running:
        entries = running.run(
            "generated", Ours(), budgets=list(_BUDGETS.values()), seeds=_SEEDS, rounds=_ROUNDS
        )
        for label, share in _BUDGETS.items():
            found = _entries(entries, "budget", share)
            _check(found, "compliant")
            yield f"generated_survival_{label}", _side_by_side(found, _generated_survival)
        yield "generated_stale", _side_by_side(found, lambda e: e["stale"])
        yield "recall_top_3", _recalled(bench, running)


def _entries(entries: Sequence[Entry], key: str, share: float) -> list[Entry]:
    """Those of one budget, clew's first."""
    found = [entry for entry in entries if entry[key] == share]
    return sorted(found, key=lambda entry: entry["compactor"] != "clew")


def _check(found: Sequence[Entry], compliant: str) -> None:
    assert found[0][compliant], "clew's text is larger than the kit's budget"


def _survival(entry: Entry) -> float:
    return 100 * entry["randomized"]["overall_final_survival"]


def _generated_survival(entry: Entry) -> float:
    return 100 * entry["survived"] / entry["n"]


def _side_by_side(found: Sequence[Entry], of: Callable[[Entry], float]) -> Reading:
    """clew's figure beside that of the kit's compactor that keeps the most."""
    ours, *theirs = found
    survival = _survival if "randomized" in ours else _generated_survival
    best = max(theirs, key=survival)
    note = f"kit: {best['compactor']}, which keeps {survival(best):.4g} %"
    return Reading(of(ours), of(ours), of(best), note=note)


def _recalled(bench: Bench, running: kit.Kit) -> Reading:
    """Canaries that stand in the context at a budget of 5 %, or in what a search for the kit's own
    question brings back."""
    kept = found = asked = 0
    for seed in _SEEDS:
        session = running.run("recall", Ours(), budget=0.05, seed=seed, rounds=_ROUNDS)
        asked += session["n"]
        kept += session["n"] - len(session["lost"])
        found += _searched(bench, seed, session)
    share, alone = 100 * (kept + found) / asked, 100 * kept / asked
    return Reading(share, share, alone, note=f"{asked} canaries in {len(_SEEDS)} sessions")


def _searched(bench: Bench, seed: int, session: dict[str, Any]) -> int:
    """How many of the lost are found among the first hits in a store that holds the session."""
    path = bench.path(f"recall-{seed}")
    with clew.open(path) as store:
        conversation = store.profile(clew_adapter.PROFILE).create(source="cli")
        conversation.append([draft_of(message) for message in chat_of(session["turns"])])
    clew_adapter.index(path)
    with clew.open(path) as store:
        profile = store.profile(clew_adapter.PROFILE)
        conversation = profile.open(profile.list().items[0].id)
        return sum(_is_found(profile, conversation, lost) for lost in session["lost"])


def _is_found(profile: clew.Profile, conv: clew.Conversation, lost: dict[str, Any]) -> bool:
    """Whether the tool's answer, as an agent reads it, has every token."""
    answer = " ".join(found.text for found in search(conv, profile, lost["ask"], top=_TOP))
    return all(token.lower() in answer.lower() for token in lost["tokens"])


_SIDES = ("clew", "the kit's best")
STANDARD = Job(
    "cck-default",
    standard,
    (
        Target(
            "cck_survival_20", 90, "%", at_least=True, sides=_SIDES,
            says="conformance kit: survival at a budget of 20 %",
        ),
        Target(
            "cck_survival_30", 100, "%", at_least=True, sides=_SIDES,
            says="conformance kit: survival at a budget of 30 %",
        ),
        Target(
            "cck_resolved", 90, "%", at_least=True, sides=_SIDES,
            says="conformance kit: values that are the latest, alone",
        ),
        Target(
            "cck_stale", 3, "of 64", sides=_SIDES,
            says="conformance kit: values that are out of date",
        ),
        Target(
            "cck_distinct", 100, "%", at_least=True, sides=_SIDES,
            says="conformance kit: pairs that look alike, both kept",
        ),
    ),
)  # fmt: skip
GENERATED = Job(
    "cck-generated",
    generated,
    (
        Target(
            "generated_survival_20", 75, "%", at_least=True, sides=_SIDES,
            says="generated corpus: survival at a budget of 20 %",
        ),
        Target(
            "generated_survival_30", 98, "%", at_least=True, sides=_SIDES,
            says="generated corpus: survival at a budget of 30 %",
        ),
        Target(
            "generated_stale", 4, "of 24", sides=_SIDES,
            says="generated corpus: values that are out of date, at 30 %",
        ),
        Target(
            "recall_top_3", 99, "%", at_least=True,
            sides=("context or search", "context alone"),
            says="generated corpus at 5 %: in the context, or among the first 3 hits of a search",
        ),
    ),
)  # fmt: skip
