"""Messages: brought over as they are, in the order in which they were committed, so that newest
first is the same in the copy.

After each step the copy has base+1..head of every conversation (I-01). Where the order of ids does
not give that, rows are brought out of turn, by seq, and passed over when their id comes: a
deletion hands rows to a branch highest first, and on PostgreSQL a transaction may have begun, and
so got its number, before another whose messages it follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clew.errors import Corrupt
from clew.store.backend import Row, Transaction, Value
from clew.store.copy import conversations
from clew.store.copy.target import Place, Target, WrittenByOthers

BATCH, BYTES, STEP = 500, 4 << 20, 100
"""Rows and stored bytes of one step, and rows read at once."""
ALL = (1 << 63) - 1

_COLUMNS = (
    "seq", "uid", "key", "turn", "role", "author", "api_group", "replaces", "parts", "meta",
    "tokens", "created_at",
)  # fmt: skip
_PARTS = 10


def settled(tx: Transaction) -> int:
    """The id up to which the source will commit no more."""
    return tx.rows("search_store")[0][2]


def copy_up_to(tx: Transaction, target: Target, last: int, final: int) -> int:
    """Bring one batch of rows with ids up to `last`, from the mark on; gives the id it reached.

    `final`: the mark may move up to here."""
    return _batch(tx, target, target.state.mark, last, final)


def copy_rest(tx: Transaction, target: Target) -> None:
    """Bring all that this snapshot of the source shows and the copy lacks."""
    final, after = settled(tx), target.state.mark
    while (reached := _batch(tx, target, after, ALL, final)) > after:
        after = reached


def _batch(tx: Transaction, target: Target, after: int, last: int, final: int) -> int:
    rows = list(_read(tx, after, last))
    if not rows:
        return after
    conversations.look_up(tx, target, {row[1] for row in rows})
    step = _Step(target)
    for row in _by_seq(rows):
        place = target.numbers[row[1]]
        if place is None or place.base < row[2] <= step.head(place):
            continue
        if row[2] != step.head(place) + 1:
            step.write()
            step = _Step(target)
            _out_of_turn(tx, target, row[1], place)
        else:
            step.add(place, row)
    step.write(min(rows[-1][0], final))
    return rows[-1][0]


def _out_of_turn(tx: Transaction, target: Target, no: int, place: Place) -> None:
    """Bring what a conversation lacks before one of its rows can be added."""
    found = tx.row("copy_conversation_one", no=no)
    if found is None or found[1]:
        target.numbers[no] = None  # its rows are going; the copy deletes it at the end
    else:
        fill(tx, target, no, place, found[7], found[8])


def fill(tx: Transaction, target: Target, no: int, place: Place, base: int, head: int) -> None:
    """Bring the messages of one conversation by seq, until it has base+1..head."""
    if place.head > head or place.base < base:
        raise WrittenByOthers(target.where)
    while place.head < head:
        rows = _range(tx, no, place.head + 1, min(head, place.head + BATCH))
        step = _Step(target)
        for row in rows:
            step.add(place, row)
        step.write()
    while place.base > base:
        first = max(base, place.base - BATCH) + 1
        step = _Step(target)
        for row in _range(tx, no, first, place.base, whole=True):
            step.add(place, row)
        step.lower(place, first - 1)
        step.write()


def _range(tx: Transaction, no: int, first: int, last: int, whole: bool = False) -> list[Row]:
    """Rows by seq from `first` on, all of them or as many as fit one step."""
    found: list[Row] = []
    size = 0
    while first <= last and (whole or size < BYTES):
        rows = tx.rows("copy_message_range", no=no, first=first, last=last, limit=STEP)
        if not rows or rows[0][2] != first or rows[-1][2] != first + len(rows) - 1:
            raise Corrupt(f"the source lacks messages from seq {first} on; run `clew verify`")
        found += rows
        size += sum(len(row[_PARTS]) for row in rows)
        first = rows[-1][2] + 1
    return found


def _read(tx: Transaction, after: int, last: int) -> Iterator[Row]:
    """The rows of one batch, by id."""
    count = size = 0
    while count < BATCH and size < BYTES:
        rows = tx.rows("copy_message_rows", id=after, last=last, limit=STEP)
        yield from rows
        if len(rows) < STEP:
            return
        count, after = count + len(rows), rows[-1][0]
        size += sum(len(row[_PARTS]) for row in rows)


def _by_seq(rows: Sequence[Row]) -> Iterator[Row]:
    """Rows by id, but those of one conversation by seq, in the places that these have."""
    waiting: dict[int, list[Row]] = {}
    for row in rows:
        waiting.setdefault(row[1], []).append(row)
    for group in waiting.values():
        group.sort(key=lambda row: row[2], reverse=True)
    return (waiting[row[1]].pop() for row in rows)


class _Step:
    """Rows for one transaction, and what their conversations are after it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._rows: list[dict[str, Value]] = []
        self._spans: dict[Place, tuple[int, int]] = {}
        self._lowest: dict[str, int] = {}

    def head(self, place: Place) -> int:
        """The head as it will be."""
        return self._spans[place][1] if place in self._spans else place.head

    def add(self, place: Place, row: Row) -> None:
        """One more row, above what is there or below it."""
        values = dict[str, Value](zip(_COLUMNS, row[2:], strict=True))
        self._rows.append(values | {"no": place.no, "nth": len(self._rows)})
        self._spans[place] = (place.base, max(self.head(place), row[2]))
        self._lowest[place.id] = min(self._lowest.get(place.id, row[2]), row[2])

    def lower(self, place: Place, base: int) -> None:
        """The rows added lie below what was there."""
        self._spans[place] = (base, place.head)

    def write(self, mark: int | None = None) -> None:
        """Commit, if there is anything new."""
        target = self._target
        if not self._rows and (mark is None or mark <= target.state.mark):
            return
        spans = [
            {"no": place.no, "base": base, "head": head}
            for place, (base, head) in self._spans.items()
        ]

        def work(tx: Transaction) -> None:
            tx.batch("copy_message_insert", self._rows)
            tx.batch("copy_conversation_span", spans)

        target.write(work, None if mark is None else max(mark, target.state.mark))
        for place, (base, head) in self._spans.items():
            place.base, place.head = base, head
        for id, seq in self._lowest.items():
            target.fresh[id] = min(target.fresh.get(id, seq), seq)
        target.copied += len(self._rows)
