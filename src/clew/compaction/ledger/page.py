"""A page: an epoch's text under a room that it never exceeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from clew.compaction.ledger.rows import Row
from clew.compaction.ledger.shape import CHOICE, Picker, tier_of
from clew.compaction.ledger.text import more_line, render, whole_paths

Count = Callable[[str], int]
_MOST_REFILLS = 3


class Page(NamedTuple):
    """What stands on it beside the rows, and what it may take.

    `missing`: rows that earlier epochs left out, when this page stands for them (a fold).
    """

    head: str
    gone: str
    told: str
    first: int
    room: int
    measure: Count
    whole: bool = False
    missing: int = 0
    places: Mapping[int, int] = {}
    """Where each row (by its id) stood among all, so that those of a message keep their order."""

    def left_out(self, left: Sequence[Row]) -> int:
        """How many rows the text says are not here, without those of which it holds a choice."""
        return sum(tier_of(row) not in CHOICE for row in left) + self.missing

    def text(self, rows: Sequence[Row], left: Sequence[Row]) -> str:
        missing = self.left_out(left)
        more = more_line(missing, sum(row.kind == "rule" for row in left)) if missing else ""
        return render(
            self.head, self.gone, self.ordered(rows), self.first, more, self.told, self.whole
        )

    def ordered(self, rows: Sequence[Row]) -> list[Row]:
        return sorted(rows, key=lambda row: self.places[id(row)])

    def room_for_rows(self) -> int:
        """What is left beside the other parts."""
        parts = [self.head, self.gone, self.told, more_line(9_999)]
        return max(0, self.room - sum(self.measure(f"{part}\n") for part in parts if part))


def fitted(page: Page, rows: Sequence[Row], last: int) -> tuple[list[Row], list[Row], str]:
    """(rows that stand, rows left out, text). `last`: the newest seq, for what recency is."""
    page = page._replace(
        whole=whole_paths(rows, page.room, page.measure),
        places={id(row): place for place, row in enumerate(rows)},
    )
    picker = Picker(rows, page.first, last, page.measure, page.whole)
    picker.fill(page.room_for_rows())
    for _ in range(_MOST_REFILLS):  # lines that rows share, short numbers: reserved, not needed
        spare = page.room - page.measure(page.text(picker.rows, picker.left()))
        if not picker.refill(spare):
            break
    return _cut(page, picker.rows, picker.left())


def _cut(page: Page, rows: list[Row], left: list[Row]) -> tuple[list[Row], list[Row], str]:
    """Rows taken away from the end, then the other parts, until the text is within the room."""
    while True:
        text = page.text(rows, left)
        size = page.measure(text)
        if size <= page.room:
            return page.ordered(rows), left, text
        if rows:
            drop = max(1, min(len(rows), len(rows) * (size - page.room) // (size + 1)))
            rows, left = rows[:-drop], [*left, *rows[-drop:]]
        elif page.told or page.gone or page.head:
            page = page._replace(
                told="", gone=page.gone if page.told else "",
                head=page.head if page.told or page.gone else "",
            )  # fmt: skip
        else:
            return rows, left, ""


def narrative_part(narrative: str | None, room: int, count: Count) -> str:
    """A model's text as a section of at most `room`: whole lines of it, or ""."""
    lines = (narrative or "").strip().splitlines()
    if not lines:
        return ""
    title = "## Narrative (by a model, not checked against the log)"
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high + 1) // 2
        if count("\n".join([title, *lines[:middle]])) <= room:
            low = middle
        else:
            high = middle - 1
    return "\n".join([title, *lines[:low]]) if low else ""
