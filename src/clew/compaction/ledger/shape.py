"""Selection: which rows stand in an epoch when the room is small.

Kinds come in the order of what an agent cannot do without: rules, open requests, what was edited,
exact values and decisions, errors, commands, what was read, what is done, remarks. In a first pass
each kind has at most its share of the room; in a second, what is left goes round in the same order.
What only looked, and files that are only named somewhere, are worth little: they have a small share
and no more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from clew.compaction.ledger.rows import Row
from clew.compaction.ledger.speech import content_words, is_hard
from clew.compaction.ledger.text import file_lines, line

Count = Callable[[str], int]
TIERS: tuple[tuple[str, float], ...] = (
    ("rule", 0.6), ("ask", 0.15), ("edited", 0.4), ("value", 0.4), ("decision", 0.15),
    ("error", 0.1), ("command", 0.08), ("read", 0.15), ("done", 0.15), ("fact", 0.08),
    ("note", 0.05), ("seen", 0.06), ("look", 0.02),
)  # fmt: skip
"""Tiers in their order, and the share of the room that each may take at first. Edited files have
theirs before all others: none may be missing, and their share bounds them."""
_FILES = ("edited", "read", "seen")
_SCANT = ("seen", "look")
"""Tiers that never take more than their share, whatever is left."""
MOST_NAMED = 60
"""Files that are only named somewhere which stand in one epoch, at most: the newest."""
CHOICE = ("note", *_SCANT)
"""Tiers of which an epoch holds a choice and no record: what is not there is not missing."""
_DEAR = {"money": 0.6, "approver": 0.4, "code": 0.4}
"""Dimensions of rules that are dearest to break: limits, approvals, secrets."""
MOST_NOTES = 400
"""Remarks that are compared with each other: the newest."""
_HOPELESS = 25
"""Rows in a row that did not fit, after which a tier is given up."""


def tier_of(row: Row) -> str:
    if row.kind == "file":
        return "edited" if row.state == "deleted" else row.state or "seen"
    if row.kind in ("command", "error") and row.state == "looked":
        return "look"
    if row.kind in ("fact", "decision"):
        if row.state == "user" and (row.slot or row.value or row.kind == "decision"):
            return "value"
        return "decision" if row.kind == "decision" or row.slot else "fact"
    return row.kind


def weight(row: Row, first: int, last: int) -> float:
    """How much a row counts among those of its tier: exactness, recency, and its price."""
    recency = (row.seq - first) / max(1, last - first)
    exact = (1.0 if row.slot else 0.0) + (0.5 if row.value else 0.0)
    if row.kind == "rule":
        exact += 0.8 if is_hard(row.text) else 0.0
        exact += _DEAR.get((row.slot or "").partition(":")[0], 0.0)
    if row.kind == "done":
        exact = 0.5 if row.value else 0.0
    said = {"user": 1.0, "system": -2.0, "open": 0.5, "looked": -1.0}.get(row.state or "", 0.0)
    return exact + said + 0.8 * recency - len(row.text) / 600


class Picker:
    """Chooses rows for a room: `fill` at first, `refill` for what turns out to be left."""

    def __init__(
        self, rows: Sequence[Row], first: int, last: int, count: Count, whole: bool
    ) -> None:
        self.rows: list[Row] = []
        """Those that stand, in the order in which they were chosen."""
        self._all = rows
        self._first, self._count, self._whole = first, count, whole
        self._waiting: dict[str, list[Row]] = {name: [] for name, _ in TIERS}
        for row in rows:
            self._waiting[tier_of(row)].append(row)
        for name, members in self._waiting.items():
            if name == "note":
                self._waiting[name] = central(members, first, last)
            elif name in _FILES:
                members.sort(key=lambda row: (-row.seq, row.text))
            else:
                members.sort(key=lambda row: (-weight(row, first, last), row.seq, row.text))
        self._open: set[str] = set()

    def fill(self, room: int) -> None:
        left = room
        for name, share in sorted(TIERS, key=lambda tier: tier[0] != "edited"):
            if name != "look":
                left -= self._take(name, min(left, int(room * share)))
        left -= self._refilled(left)
        if not any(rows for name, rows in self._waiting.items() if name not in CHOICE):
            self._take("look", min(left, int(room * dict(TIERS)["look"])))

    def refill(self, room: int) -> bool:
        """Whether anything more was taken."""
        return self._refilled(room) > 0

    def _refilled(self, room: int) -> int:
        left = room
        for name, _ in TIERS:
            if name not in _SCANT:
                left -= self._take(name, left)
        return room - left

    def left(self) -> list[Row]:
        chosen = {id(row) for row in self.rows}
        return [row for row in self._all if id(row) not in chosen]

    def _take(self, name: str, most: int) -> int:
        """Take rows of a tier, in their order, for at most `most`; what they take."""
        if most <= 0 or not self._waiting[name]:
            return 0
        if name in _FILES:
            return self._take_files(name, most)
        misses, spent = 0, 0
        rest: list[Row] = []
        for place, row in enumerate(self._waiting[name]):
            if misses >= _HOPELESS:
                rest += self._waiting[name][place:]
                break
            cost = self._cost(name, row)
            if spent + cost > most:
                misses += 1
                rest.append(row)
                continue
            self.rows.append(row)
            self._open.add(name)
            spent += cost
        self._waiting[name] = rest
        return spent

    def _cost(self, name: str, row: Row) -> int:
        opening = self._count("## Values, newest first\n") if name not in self._open else 0
        return self._count(f"{line(row, self._first)}\n") + opening

    def _take_files(self, name: str, most: int) -> int:
        """As many files as fit, newest first, together: those of a folder share a line."""
        members = self._waiting[name]

        def cost(end: int) -> int:
            return self._count(
                "\n".join(["## Files", *file_lines(members[:end], self._whole)]) + "\n"
            )

        low, high = 0, min(len(members), MOST_NAMED) if name == "seen" else len(members)
        while low < high:
            middle = (low + high + 1) // 2
            if cost(middle) <= most:
                low = middle
            else:
                high = middle - 1
        self.rows += members[:low]
        self._waiting[name] = members[low:]
        return cost(low) if low else 0


def central(notes: list[Row], first: int, last: int) -> list[Row]:
    """Remarks by how much they share with the rest (tf-idf), newer ones first among equals."""
    notes = sorted(notes, key=lambda row: (row.state == "user", row.seq))[-MOST_NOTES:]
    words = [content_words(row.text) for row in notes]
    seen = Counter(word for one in words for word in set(one))
    many = len(notes) + 1

    def score(i: int) -> float:
        unique = sorted(set(words[i]))
        shared = sum(math.log(many / seen[w]) * math.log(1 + seen[w]) for w in unique)
        said = 2.0 if notes[i].state == "user" else 0.0
        return (
            round(shared / (2 + len(unique)), 6)
            + said
            + (notes[i].seq - first) / max(1, last - first)
        )

    return [notes[i] for i in sorted(range(len(notes)), key=lambda i: (-score(i), notes[i].seq, i))]
