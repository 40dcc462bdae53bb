"""Outcomes as a table for people, one JSON object, or benchmarks/RESULTS.md."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import NOT_RUN, Outcome

REASONS = Path(__file__).with_name("reasons.toml")
"""Why a figure is missed, by name of the target: the only words of RESULTS.md kept by hand."""


def as_json(outcomes: Sequence[Outcome]) -> str:
    """One object: name -> value, target, ok, unit and both sides. Comparisons have no target."""
    promised = (outcome for outcome in outcomes if outcome.target.limit is not None)
    return json.dumps({o.target.name: o.as_json() for o in promised}, indent=1)


def as_text(facts: dict[str, str], outcomes: Sequence[Outcome]) -> str:
    """The header and one line per target."""
    lines = [f"{name + ':':<10}{value}" for name, value in facts.items()]
    rows = [
        (o.target.name, *_figures(o), "" if o.reading is None else o.reading.note)
        for o in outcomes
        if o.reading is not None or o.target.limit is not None
    ]
    head = ("name", "measured", "target", "", "sides", "note")
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(5)]
    lines.append("")
    for row in [head, *rows]:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        lines.append("  ".join([*cells, row[5]]).rstrip())
    lines += ["", _summary(outcomes)]
    return "\n".join(lines)


def as_markdown(facts: dict[str, str], outcomes: Sequence[Outcome], area: str = "store") -> str:
    """The whole of an area's file of results."""
    promised = [o for o in outcomes if o.target.limit is not None]
    lines = [
        "# Results",
        "",
        f"Written by `scripts/bench {area} --markdown`: no figure is typed by hand. A ratio is "
        "that of the medians of interleaved rounds of one run; absolute times belong to this "
        "machine and hour.",
        "",
        *(f"- **{name}**: {value}" for name, value in facts.items()),
        "",
        _summary(outcomes),
        "",
        *_table(promised),
        "",
        *_missed(promised),
        *_not_run(outcomes),
    ]
    if compared := [o for o in outcomes if o.target.limit is None]:
        lines += ["## Side by side", "", *_table(compared), ""]
    return "\n".join(lines).rstrip() + "\n"


def _table(outcomes: Sequence[Outcome]) -> list[str]:
    lines = [
        "| measurement | measured | target | | sides | rounds | note |",
        "|---|---|---|---|---|---|---|",
    ]
    for outcome in outcomes:
        measured, target, mark, sides = _figures(outcome)
        rounds = "" if outcome.reading is None else str(outcome.reading.rounds)
        note = "" if outcome.reading is None else outcome.reading.note
        says = outcome.target.says or outcome.target.name
        cells = (f"{says} (`{outcome.target.name}`)", measured, target, mark, sides, rounds, note)
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _figures(outcome: Outcome) -> tuple[str, str, str, str]:
    """Measured, target, verdict and both sides, as text."""
    target, reading = outcome.target, outcome.reading
    bound = ""
    if target.limit is not None:
        bound = f"{'≥' if target.at_least else '≤'} {target.limit:g} {target.unit}"
    if reading is None:
        return NOT_RUN, bound, "", outcome.note
    verdict = "" if target.limit is None else "ok" if outcome.ok else "MISSED"
    sides = ""
    if reading.left is not None:
        sides = f"{target.sides[0]} {_number(reading.left)}"
        if reading.right is not None:
            sides += f", {target.sides[1]} {_number(reading.right)}"
        sides += f" {reading.side_unit}"
    return f"{_number(reading.value)} {target.unit}".strip(), bound, verdict, sides.rstrip()


def _summary(outcomes: Sequence[Outcome]) -> str:
    promised = [o for o in outcomes if o.target.limit is not None]
    met = sum(o.ok for o in promised)
    absent = sum(o.reading is None for o in promised)
    missed = len(promised) - met - absent
    return f"{met} targets met, {missed} missed, {absent} not run."


def _missed(outcomes: Sequence[Outcome]) -> list[str]:
    """By how much, and why as far as somebody has found out."""
    reasons: dict[str, str] = {}
    if REASONS.exists():
        reasons = tomllib.loads(REASONS.read_text("utf-8"))
    lines: list[str] = []
    for outcome in outcomes:
        target, reading = outcome.target, outcome.reading
        if reading is None or outcome.ok or target.limit is None:
            continue
        why = reasons.get(target.name, "The reason is not known yet.")
        lines.append(f"- `{target.name}`: {_distance(reading.value, target.limit)}. {why}")
    return ["## Missed", "", *lines, ""] if lines else []


def _distance(value: float, limit: float) -> str:
    measured = f"{_number(value)} instead of {limit:g}"
    if not limit:
        return measured
    share = abs(value - limit) / limit
    return f"{measured}, {share:.0%} {'over' if value > limit else 'under'}"


def _not_run(outcomes: Sequence[Outcome]) -> list[str]:
    absent = [f"- `{o.target.name}`: {o.note}" for o in outcomes if o.reading is None]
    return ["## Not run", "", *absent, ""] if absent else []


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
