"""Usage of each day as bars. Pure: sums in, lines out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clew.cli.screen import Piece
from clew.cli.text import cells
from clew.cli.usage_rows import Sum

WIDEST = 60
"""Cells of the longest bar: a longer one says no more."""
NARROWEST = 4
"""Cells that are worth a bar."""
_EIGHTHS = " ▏▎▍▌▋▊▉"


def short(number: int) -> str:
    """A count in few characters: 999, 12.3k, 4.5M."""
    if number < 1000:
        return str(number)
    value = float(number)
    for unit in ("k", "M", "G", "T"):
        value /= 1000
        if value < 999.95:
            return f"{value:.0f}{unit}" if value >= 99.95 else f"{value:.1f}{unit}"
    return f"{value:,.0f}T"


def dollars(amount: float, known: int) -> str:
    """A cost; "-" when no call of it says what it cost."""
    if not known:
        return "-"
    if 0 < amount < 0.01:
        return "<$0.01"
    return f"${amount:,.2f}"


def chart(days: Sequence[Sum], width: int, unicode: bool) -> Iterator[list[Piece]]:
    """A line for each day, at most `width` columns: its name, a bar, tokens, cost. What has no room
    is left out, the bar last but one."""
    most = max((each.tokens for each in days), default=0)
    facts = [(short(each.tokens), dollars(each.cost, each.priced)) for each in days]
    tokens = max((cells(said) for said, _ in facts), default=0)
    costs = max((cells(said) for _, said in facts), default=0)
    names = 10 if width >= 60 else 5
    room = min(WIDEST, width - names - tokens - costs - 6)
    for each, (said, cost) in zip(days, facts, strict=True):
        yield [
            (each.key[-names:], "dim"), ("  ", ""),
            *([(_bar(each.tokens, most, room, unicode), "green"), ("  ", "")]
              if room >= NARROWEST else []),
            (said.rjust(tokens), ""), ("  ", ""), (cost.rjust(costs), "dim"),
        ]  # fmt: skip


def _bar(part: int, most: int, room: int, unicode: bool) -> str:
    """A bar, filled up with blanks. Whatever is there at all is seen."""
    eighths = part * room * 8 // most if most else 0
    if part:
        eighths = max(1, eighths)
    if not unicode:
        return ("#" * max(bool(part), eighths // 8)).ljust(room)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(room)
