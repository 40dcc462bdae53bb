"""The line under the input: model, room, tokens, cost, cache, what waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from clew.cli.screen import Piece
from clew.cli.text import cells, fit, one_line
from clew.domain.turns import Usage

if TYPE_CHECKING:  # at the prompt nobody needs it yet
    from clew.providers.api import Model

BAR = 8
"""Cells of the bar."""
STOPPING = "stopping"
"""What a turn is at that was told to end."""
FULL, HIGH = 0.9, 0.75
"""Shares of the room from which the bar is red and yellow."""


class Status:
    """What is known now; the events of turns change it."""

    def __init__(self) -> None:
        self.model: Model | None = None
        self.tokens = 0
        self.limit = 0
        self.usage = Usage()
        """Of the turn that runs, or the last one."""
        self.cost = 0.0
        """Of the turn."""
        self.spent = 0.0
        """Of all turns since the chat began."""
        self.waiting = 0
        self.doing = ""
        """What the turn is at; "" when none runs."""

    def begin(self) -> None:
        """A turn begins."""
        self.usage, self.cost = Usage(), 0.0

    def add(self, usage: Usage, cost: float | None) -> None:
        """A model call of the turn has ended."""
        self.usage = Usage(
            input=self.usage.input + usage.input, output=self.usage.output + usage.output,
            cached=self.usage.cached + usage.cached,
            reasoning=self.usage.reasoning + usage.reasoning,
        )  # fmt: skip
        self.cost += cost or 0.0
        self.spent += cost or 0.0

    def pieces(self, width: int, unicode: bool = True) -> list[Piece]:
        """As much of it as has room, the most important first; never wider than `width`."""
        shown: list[Piece] = []
        room = width
        for number, (text, style) in enumerate(self._parts(unicode)):
            gap = "  " if number else ""
            if number == 0:
                text = fit(text, width)
            if cells(gap + text) > room:
                continue
            shown += [(gap, ""), (text, style)]
            room -= cells(gap + text)
        return shown

    def _parts(self, unicode: bool) -> Iterator[Piece]:
        name = one_line(self.model.shown) if self.model else "connecting"
        yield name, "dim"
        if self.waiting:
            yield f"{self.waiting} waiting", "yellow"
        if self.limit:
            share = self.tokens / self.limit
            style = "red" if share >= FULL else "yellow" if share >= HIGH else "dim"
            yield f"{bar(share, unicode)} {short(self.tokens)}/{short(self.limit)}", style
        if self.usage.input or self.usage.output:
            sent, said = ("↑", "↓") if unicode else ("in ", "out ")
            yield f"{sent}{short(self.usage.input)} {said}{short(self.usage.output)}", "dim"
        if self.usage.cached:
            share = 100 * self.usage.cached // max(1, self.usage.input)
            yield f"cache {share}%", "dim"
        if self.spent:
            yield f"{money(self.cost)} of {money(self.spent)}", "dim"


def bar(share: float, unicode: bool = True) -> str:
    """A share as a bar of 8 cells; not empty when there is anything."""
    filled = min(BAR, round(share * BAR))
    if share > 0:
        filled = max(1, filled)
    full, free = ("▰", "▱") if unicode else ("#", ".")
    return full * filled + free * (BAR - filled)


def short(number: int) -> str:
    """A count in at most four characters: 950, 1.2k, 128k, 1.2M."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size * 0.9995:
            value = number / size
            digits = f"{value:.0f}" if value >= 9.95 else f"{value:.1f}".removesuffix(".0")
            return digits + unit
    return str(number)


def money(dollars: float) -> str:
    """An amount in US dollars, two digits that say something."""
    return f"${dollars:.2f}" if dollars >= 0.1 or not dollars else f"${dollars:.2g}"
