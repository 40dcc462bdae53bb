"""Conversations on both sides: reading them with their records, and finding or making their place
in the copy. Inner numbers differ between stores; ids do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from clew.store.backend import Row, Transaction, Value
from clew.store.copy.removal import remove
from clew.store.copy.tables import RECORDS, digest
from clew.store.copy.target import Place, Target

PAGE, MESSAGES = 500, 20_000
"""Conversations read at once, with all their records, unless they have more messages than this
together: their records are about as many."""

COLUMNS = (
    "id", "profile", "kind", "source", "origin", "base", "head", "affinity", "created_at", "view",
    "generation", "fence", "holder", "held_at", "held_ttl", "turn", "title_user", "title_llm",
    "title_derived", "title_locked", "preview", "message_count", "waiting", "cwd", "git_root",
    "git_branch", "model", "prompt_hash", "toolset_hash", "attribution", "pinned", "archived",
    "automation", "read_only", "imported_at", "imported_to", "active_at", "ended_at", "end_reason",
    "reopened_at", "binned_at", "deleting", "meta",
)  # fmt: skip
_CHANGING = COLUMNS.index("view")


class Item(NamedTuple):
    """A conversation: its row as COLUMNS, the origin by its id, and its records by table."""

    no: int
    gone: bool
    """Being deleted, and of no use to any branch: a copy does not have it."""
    row: Row
    records: Sequence[Sequence[Row]] = ()

    @property
    def id(self) -> str:
        return self.row[0]

    @property
    def origin(self) -> str | None:
        return self.row[4]

    @property
    def affinity(self) -> str:
        return self.row[7]

    @property
    def span(self) -> tuple[int, int]:
        """Base and head."""
        return self.row[5], self.row[6]

    def digest(self) -> bytes:
        """Names the row and all records."""
        return digest((self.row, self.records))

    def place(self) -> Place:
        """As a conversation of a copy."""
        row = self.row
        return Place(self.no, row[0], row[1], row[7], row[5], row[6], self.gone)

    def changing(self, origin: int | None, no: int) -> dict[str, Value]:
        """What copy_conversation_update takes."""
        later = zip(COLUMNS[_CHANGING:], self.row[_CHANGING:], strict=True)
        return {"no": no, "origin": origin, **dict(later)}


class Seen:
    """What a store has: the digest of each conversation's row and records by its id, the id by its
    number, and how many rows there are."""

    def __init__(self) -> None:
        self.digests: dict[str, bytes] = {}
        self.ids: dict[int, str] = {}
        names = ("conversation", "message", *(table.name for table in RECORDS))
        self.rows: Counter[str] = Counter(dict.fromkeys(names, 0))

    def add(self, items: Iterable[Item]) -> None:
        """Take in a page."""
        for item in items:
            if not item.gone:
                self.digests[item.id] = item.digest()
                self.ids[item.no] = item.id
                self.rows["conversation"] += 1
                for table, rows in zip(RECORDS, item.records, strict=True):
                    self.rows[table.name] += len(rows)


def page(tx: Transaction, after: int) -> list[Item]:
    """The conversations that follow a number, with their records; empty at the end."""
    rows = tx.rows("copy_conversation_page", no=after, limit=PAGE)
    few: list[Row] = []
    size = 0
    for row in rows:
        size += row[8] - row[7]
        if few and size > MESSAGES:
            break
        few.append(row)
    return _with_records(tx, few)


def pages(tx: Transaction) -> Iterator[list[Item]]:
    """All conversations, by number."""
    after = 0
    while items := page(tx, after):
        yield items
        after = items[-1].no


def one(tx: Transaction, no: int) -> Item | None:
    """One conversation with its records."""
    return next(iter(_with_records(tx, tx.rows("copy_conversation_one", no=no))), None)


def _with_records(tx: Transaction, rows: Sequence[Row]) -> list[Item]:
    if not rows:
        return []
    records: dict[int, list[list[Row]]] = {row[0]: [[] for _ in RECORDS] for row in rows}
    for index, table in enumerate(RECORDS):
        for row in tx.rows(table.rows, first=rows[0][0], last=rows[-1][0]):
            records[row[0]][index].append(row[1:])
    return [Item(row[0], bool(row[1]), row[2:], records[row[0]]) for row in rows]


# ---------------------------------------------------------------- places


def look_up(tx: Transaction, target: Target, numbers: Iterable[int]) -> None:
    """Give each of these numbers of the source its place in the copy (None: gone)."""
    items: list[Item] = []
    for no in numbers:
        if no not in target.numbers:
            row = tx.row("copy_conversation_one", no=no)
            if row is None:
                target.numbers[no] = None
            else:
                items.append(Item(no, bool(row[1]), row[2:]))
    settle(target, items)


def settle(target: Target, items: Iterable[Item]) -> None:
    """Find the places of these conversations, and make those that are missing."""
    new: list[Item] = []
    for item in items:
        place = target.places.get(item.id)
        if place is not None and (place.gone or place.affinity != item.affinity):
            remove(target, place)  # deleted in the source, and its id used again
            place = None
        if item.gone:
            target.numbers[item.no] = None
        elif place is None:
            new.append(item)
        else:
            target.numbers[item.no] = place
    if new:
        _make(target, new)


def _make(target: Target, items: Sequence[Item]) -> None:
    """Without messages and records; the origin follows when all of them are there."""
    rows = [dict(zip(COLUMNS[:9], item.row[:9], strict=True)) | {"origin": None} for item in items]

    def work(tx: Transaction) -> None:
        tx.batch("copy_conversation_insert", rows)

    target.write(work)
    made = target.db.read(lambda tx: [tx.row("conversation_no", id=item.id) for item in items])
    for item, found in zip(items, made, strict=True):
        assert found is not None
        place = item._replace(no=found[0]).place()
        place.head = place.base
        target.places[item.id] = target.numbers[item.no] = place
        target.bare.add(item.id)
