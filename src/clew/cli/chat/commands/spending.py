"""/usage: tokens and cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clew.cli.chat.api import Chat
from clew.cli.chat.commands.showing import alone
from clew.cli.text import one_line
from clew.cli.times import parse_moment
from clew.cli.tokenbar import percent
from clew.domain.turns import ModelUsage

TITLES = ("", "MODEL", "CALLS", "IN", "CACHED", "OUT", "COST")


async def usage(chat: Chat, given: str) -> None:
    """Shows what the models have read and written, in this conversation and today in all of the
    profile. Cached is what their providers still had of earlier requests. Models without a price
    have a dash; `clew usage` shows more."""
    alone(given, "usage")
    midnight = parse_moment("today", chat.conv.clock.now())
    rows = [
        *_rows("here", await chat.conv.usage()),
        *_rows("today", await chat.profile.usage(midnight or 0)),
    ]
    if rows:
        chat.table(TITLES, rows)
    else:
        chat.write(("No model was asked yet.", "dim"))


def _rows(where: str, used: Iterable[ModelUsage]) -> Iterator[tuple[str, ...]]:
    for each in used:
        counts = each.usage
        yield (
            where, one_line(each.model), f"{each.calls:,}", f"{counts.input:,}",
            percent(counts.cached, counts.input), f"{counts.output:,}",
            money(each.cost) if each.cost else "-",
        )  # fmt: skip


def money(dollars: float) -> str:
    """An amount, exact to where it says something."""
    return f"${dollars:.2f}" if dollars >= 1 or not dollars else f"${dollars:.4f}"
