"""compaction-conformance-kit: its budget benchmark, and its generated corpus, on clew and on the
compactors that the kit brings.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import wire
from compaction_kit.benchmark import run_budget_benchmark
from compaction_kit.cli import COMPACTORS
from compaction_kit.compacted import CompactedContext
from compaction_kit.generated import build_generated_session
from compaction_kit.runner import run_conformance
from compaction_kit.session import Turn

OURS = "clew"
_sessions = itertools.count()


class Clew:
    """One conversation compacted again and again; the work is done on the other side."""

    name = OURS

    def __init__(self) -> None:
        self._session = next(_sessions)

    def compact(
        self, turns: Sequence[Turn], round_num: int = 1, budget_chars: int | None = None
    ) -> CompactedContext:
        told = [[turn.role, turn.text] for turn in turns]
        text = wire.ask(session=self._session, turns=told, room=budget_chars)
        return CompactedContext(text=text, compactor_name=self.name, round_num=round_num)


def _all() -> dict[str, Callable[[], Any]]:
    return {OURS: Clew, **COMPACTORS}


def standard(budgets: list[float]) -> list[dict[str, Any]]:
    """The kit's own benchmark: an entry per budget and compactor."""
    return run_budget_benchmark(_all(), budgets=budgets)["entries"]


def generated(budgets: list[float], seeds: list[int], rounds: int) -> list[dict[str, Any]]:
    """Per budget and compactor: canaries, those that survived the rounds, and stale values."""
    found: list[dict[str, Any]] = []
    for budget, (name, make) in itertools.product(budgets, _all().items()):
        entry = {"compactor": name, "budget": budget, "n": 0, "survived": 0, "updated": 0}
        entry |= {"stale": 0, "compliant": True}
        for seed in seeds:
            _count(entry, _run(make(), seed, budget, rounds))
        found.append(entry)
    return found


def _run(compactor: Any, seed: int, budget: float, rounds: int) -> tuple[list[Any], Any]:
    session, canaries = build_generated_session(seed)
    return canaries, run_conformance(
        session, compactor, rounds=rounds, canaries=canaries, budget_fraction=budget
    )


def _count(entry: dict[str, Any], ran: tuple[list[Any], Any]) -> None:
    canaries, run = ran
    last = run.rounds[-1]
    text = last.context.text.lower()
    updated = [canary for canary in canaries if canary.superseded_tokens]
    entry["n"] += len(canaries)
    entry["survived"] += sum(last.survived.values())
    entry["updated"] += len(updated)
    entry["stale"] += sum(any(t in text for t in canary.superseded_tokens) for canary in updated)
    entry["compliant"] &= all(each.within_budget for each in run.rounds)


def recall(budget: float, seed: int, rounds: int) -> dict[str, Any]:
    """A generated session, and what is asked about each canary that clew's context has lost."""
    session, _ = build_generated_session(seed)
    canaries, run = _run(Clew(), seed, budget, rounds)
    last = run.rounds[-1]
    lost = [canary for canary in canaries if not last.survived[canary.id]]
    return {
        "turns": [[turn.role, turn.text] for turn in session.transcript()],
        "n": len(canaries),
        "lost": [{"ask": c.direct_question, "tokens": list(c.required_tokens)} for c in lost],
    }


if __name__ == "__main__":
    wire.serve({"standard": standard, "generated": generated, "recall": recall})
