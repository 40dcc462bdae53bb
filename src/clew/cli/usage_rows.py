"""Usage as `clew usage` groups it. Pure: rows of the store in, sums out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, timedelta
from typing import Any

from msgspec import Struct

from clew.cli.times import day
from clew.domain.turns import UsageRow


class Sum(Struct):
    """Usage of one group. `key` is a model, a day, an id or a purpose."""

    key: str
    title: str | None = None
    calls: int = 0
    failed: int = 0
    priced: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    cost: float = 0.0

    @property
    def tokens(self) -> int:
        """All that was read and written."""
        return self.input + self.output

    def add(self, row: UsageRow) -> None:
        """One row more."""
        self.calls += row.calls
        self.failed += row.failed
        self.priced += row.priced
        self.input += row.usage.input
        self.output += row.usage.output
        self.cached += row.usage.cached
        self.reasoning += row.usage.reasoning
        self.cost += row.cost

    def fields(self, name: str | None) -> dict[str, Any]:
        """As JSON has it, `key` under this name. A cost that nobody knows is null."""
        head: dict[str, Any] = {} if name is None else {name: self.key}
        if name == "conversation":
            head["title"] = self.title
        share = round(self.cached / self.input, 4) if self.input else None
        return head | {
            "calls": self.calls, "failed": self.failed, "input": self.input,
            "cached": self.cached, "cache_share": share, "output": self.output,
            "reasoning": self.reasoning, "cost": self.cost if self.priced else None,
            "priced_calls": self.priced,
        }  # fmt: skip


def grouped(rows: Iterable[UsageRow], key: Callable[[UsageRow], str]) -> list[Sum]:
    """A sum for each key, in the order in which the keys come."""
    found: dict[str, Sum] = {}
    for row in rows:
        name = key(row)
        found.setdefault(name, Sum(name, row.title)).add(row)
    return list(found.values())


def total(rows: Iterable[UsageRow]) -> Sum:
    """All together."""
    whole = Sum("total")
    for row in rows:
        whole.add(row)
    return whole


def by(name: str, rows: Iterable[UsageRow]) -> list[Sum]:
    """By model or conversation, the one with most tokens first; by day, the newest last."""
    if name == "day":
        return by_day(rows)
    keys: dict[str, Callable[[UsageRow], str]] = {
        "model": lambda row: row.model,
        "conversation": lambda row: row.conversation or "",
    }
    return sorted(grouped(rows, keys[name]), key=lambda each: -each.tokens)


def by_day(rows: Iterable[UsageRow]) -> list[Sum]:
    """By local day, of rows by time."""
    return sorted(grouped(rows, lambda row: day(row.at or 0)), key=lambda each: each.key)


def by_purpose(rows: Iterable[UsageRow]) -> list[Sum]:
    """Turns first, then what goes on beside them: summary, title, review."""
    return sorted(grouped(rows, lambda row: row.purpose), key=lambda each: each.key != "turn")


def filled(days: list[Sum], most: int) -> list[Sum]:
    """The last so many days, those without a call among them."""
    if not days:
        return []
    known = {each.key: each for each in days}
    last = date.fromisoformat(days[-1].key)
    first = max(date.fromisoformat(days[0].key), last - timedelta(days=most - 1))
    names = ((first + timedelta(days=i)).isoformat() for i in range((last - first).days + 1))
    return [known.get(name) or Sum(name) for name in names]
