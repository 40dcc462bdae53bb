"""conpact: side constraints said once or twice in a long history, still there after compaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.compaction import histories, kit, sessions
from benchmarks.compaction.ledger import written
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Reading, Target

_ROOM = 12_000
"""Characters for all of the history."""
_POSITIONS = {"top": 1, "middle": 1, "multi": 2}
_SEEDS = (11, 12, 13)


def constraints(bench: Bench) -> Readings:
    """Generated histories and a real one, all of it compacted; nothing is kept as a tail. A quick
    run takes a generated one and the first eighth of the real one."""
    seeds, parts = (_SEEDS[:1], 8) if bench.quick else (_SEEDS, 2)
    real = _parts(sessions.chat(sessions.PI), parts)[: bench.pick(1, parts)]
    found = [
        _history(
            f"generated-{seed}", "generated", histories.history(seed, bench.pick(300, 500)).chat
        )
        for seed in seeds
    ]
    found += [_history(f"real-{at}", "real", part) for at, part in enumerate(real)]
    with kit.start("conpact", "constraints", bench.folder) as running:
        rows = running.run("retention", _answer, histories=found, positions=_POSITIONS)
    for position in _POSITIONS:
        ours, theirs = (
            [row for row in rows if (row["position"], row["compactor"]) == (position, name)]
            for name in ("clew", "keep the last 5")
        )
        note = ", ".join(f"{_share(part):.4g} % {s}" for s, part in _sources(ours).items())
        share = _share(ours)
        yield f"conpact_{position}", Reading(share, share, _share(theirs), "%", note=note)


def _answer(asked: dict[str, Any]) -> str:
    return written(asked["messages"], _ROOM).text


def _parts(chat: Sequence[dict[str, Any]], count: int) -> list[Sequence[dict[str, Any]]]:
    """A long session in parts, cut where somebody speaks."""
    said = [at for at, message in enumerate(chat) if message["role"] == "user"]
    ends = [next(at for at in said if at >= len(chat) * n // count) for n in range(1, count)]
    return [chat[a:b] for a, b in zip([0, *ends], [*ends, len(chat)], strict=True)]


def _history(id: str, source: str, chat: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A haystack in the kit's terms; tokens are only used to cut, and nothing is cut."""
    return {
        "haystack_id": id,
        "source": source,
        "system_prompt": "You are an agent.",
        "messages": [message for message in chat if message["role"] != "system"],
        "message_tokens": [1 for message in chat if message["role"] != "system"],
        "source_conversation_count": 1,
    }


def _sources(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    return {
        source: [row for row in rows if row["source"] == source]
        for source in sorted({row["source"] for row in rows})
    }


def _share(rows: Sequence[dict[str, Any]]) -> float:
    """Percent of all constraints, whatever their type."""
    whole = [row for row in rows if row["sc_type"] == "all"]
    return sum(row["retention_rate_pct"] * row["n"] for row in whole) / sum(r["n"] for r in whole)


CONSTRAINTS = Job(
    "conpact",
    constraints,
    tuple(
        Target(
            f"conpact_{position}", 98, "%", at_least=True, sides=("clew", "keep the last 5"),
            says=f"conpact: side constraints kept, {where}",
        )
        for position, where in (
            ("top", "said first"), ("middle", "said in the middle"), ("multi", "said twice"),
        )
    ),
)  # fmt: skip
