"""What a context is made of, as a bar: a cell for each so many tokens, by section.

Pure: values in, lines out. Each section has a colour and a letter; where there are no colours the
letters make the bar, so that it says the same in a pipe.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from clew.cli.lines import Line, line
from clew.cli.screen import Piece
from clew.store.findings import counted

WIDEST = 80
"""Cells of a bar at most: a longer one says no more."""


class Kind(NamedTuple):
    """How a section is drawn and what it is."""

    letter: str
    style: str
    what: str


KINDS = {
    "system": Kind("S", "magenta", "the system prompt"),
    "head": Kind("H", "blue", "the beginning, as written"),
    "ledger": Kind("L", "yellow", "what compactions wrote"),
    "kept": Kind("K", "cyan", "covered, but kept or shortened"),
    "tail": Kind("T", "green", "the newest, as written"),
    "free": Kind(".", "dim", "free"),
    "over": Kind("!", "red", "more than there is room for"),
    "reply": Kind("r", "blue dim", "left for the reply"),
}
"""In the order in which a model reads them; then what no message takes."""
FULL, FREE = "█", "░"


class Section(NamedTuple):
    """A stretch of the bar."""

    name: str
    tokens: int
    messages: int = 0


def sections(taken: Iterable[Section], room: int, reply: int) -> list[Section]:
    """All of a window that is not empty: what is taken, then what is free of the room, or how much
    of what is taken is `over` it, and the reply."""
    listed = [each for each in taken if each.tokens or each.messages]
    left = room - sum(each.tokens for each in listed)
    rest = Section("free", left) if left > 0 else Section("over", -left)
    return [*listed, *(each for each in (rest, Section("reply", reply)) if each.tokens)]


def bar(found: Sequence[Section], width: int, color: bool, unicode: bool) -> Line:
    """The bar itself, on a line of at most `width` columns."""
    drawn = _drawn(found)
    counts = shares([tokens for _, tokens in drawn], min(width - 2, WIDEST))
    pieces: list[Piece] = [
        (_sign(name, color and unicode) * cells, KINDS[name].style)
        for (name, _), cells in zip(drawn, counts, strict=True)
    ]
    return line(0, "[", *pieces, "]")


def _drawn(found: Sequence[Section]) -> list[tuple[str, int]]:
    """Tokens by section so that each is drawn once: what is over is taken off the last before."""
    over = sum(each.tokens for each in found if each.name == "over")
    drawn: list[tuple[str, int]] = []
    for name, tokens, _ in reversed(found):
        less = min(over, tokens) if name not in ("over", "reply") else 0
        over -= less
        drawn.append((name, tokens - less))
    return drawn[::-1]


def _sign(name: str, blocks: bool) -> str:
    if not blocks or name == "over":
        return KINDS[name].letter
    return FREE if name == "free" else FULL


def shares(sizes: Sequence[int], cells: int) -> list[int]:
    """Cells for each size, `cells` together: by largest remainder, and one at least for whatever is
    there at all, taken from the largest."""
    total = sum(sizes)
    if not total:
        return [0] * len(sizes)
    counts = [size * cells // total for size in sizes]
    by_rest = sorted(range(len(sizes)), key=lambda i: -(sizes[i] * cells % total))
    for i in by_rest[: cells - sum(counts)]:
        counts[i] += 1
    for i, size in enumerate(sizes):
        largest = max(range(len(sizes)), key=lambda j: counts[j])
        if size and not counts[i] and counts[largest] > 1:
            counts[i], counts[largest] = 1, counts[largest] - 1
    return counts


def legend(found: Sequence[Section], window: int, color: bool, unicode: bool) -> Iterator[Line]:
    """A line for each section: its sign, name, tokens, share of the window, and what it is."""
    width = max(len(f"{each.tokens:,}") for each in found)
    for name, tokens, messages in found:
        kind = KINDS[name]
        sign = _sign(name, color and unicode)
        many = f", {counted(messages, 'message')}" if messages else ""
        yield line(
            1, (sign, kind.style), f" {name:7}", f"{tokens:>{width},}",
            (f"  {percent(tokens, window):>5}  {kind.what}{many}", "dim"), hang=2,
        )  # fmt: skip


def percent(part: int, of: int) -> str:
    """A share, as people read it."""
    if not of:
        return "-"
    if part and part * 1000 < of * 5:
        return "<1 %"
    return f"{part * 100 / of:.0f} %"
