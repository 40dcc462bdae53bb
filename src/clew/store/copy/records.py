"""Conversations' rows and records: what differs is replaced, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clew.errors import StoreError
from clew.store.backend import Row, Transaction, Value
from clew.store.copy import conversations, messages
from clew.store.copy.conversations import Item, Seen
from clew.store.copy.removal import remove
from clew.store.copy.tables import RECORDS, Records
from clew.store.copy.target import Place, Target, WrittenByOthers

BLOB_BYTES = 8 << 20
"""After this many no more blobs go into one transaction."""

_BLOB = next(index for index, table in enumerate(RECORDS) if table.name == "blob")
_INBOX = next(index for index, table in enumerate(RECORDS) if table.name == "inbox")
_UID = 1


def copy_records(tx: Transaction, target: Target) -> Seen:
    """Make rows and records of all conversations those that this snapshot of the source shows.
    Their messages are there. Gives what the source has."""
    seen, done = Seen(), 0
    of = tx.rows("copy_totals")[0][0]
    for items in conversations.pages(tx):
        conversations.settle(target, items)
        seen.add(items)
        changed = [
            item for item in items
            if not item.gone and target.digests.get(item.id) != seen.digests[item.id]
        ]  # fmt: skip
        _bring(tx, target, changed)
        for item in changed:
            target.digests[item.id] = seen.digests[item.id]
            target.bare.discard(item.id)
            target.touched.add(item.id)
        done += len(items)
        target.progress("Copying records", done, of)
    return seen


def remove_gone(tx: Transaction, target: Target, seen: Seen) -> bool:
    """Delete what the source has no more. Gives whether there was anything."""
    gone = [place for id, place in target.places.items() if id not in seen.digests]
    for place in gone:
        tx.row("stamp_read")  # a server ends a transaction that says nothing for long
        remove(target, place)
    return bool(gone)


def _bring(tx: Transaction, target: Target, items: Sequence[Item]) -> None:
    work = _Work()
    for item in items:
        place = target.places[item.id]
        if (place.base, place.head) != item.span:
            messages.fill(tx, target, item.no, place, *item.span)
        work.compare(item, place, _here(target, item, place))
        work.update(item.changing(_origin(tx, target, item), place.no))
    _bring_blobs(tx, target, work.blobs)
    if work.updates:
        target.write(work.run)


def _here(target: Target, item: Item, place: Place) -> Sequence[Sequence[Row]]:
    """The records that the copy has."""
    if item.id in target.bare:
        return [()] * len(RECORDS)
    found = target.db.read(lambda tx: conversations.one(tx, place.no))
    if found is None:
        raise WrittenByOthers(target.where)
    lost = {row[_UID] for row in found.records[_INBOX]} - {
        row[_UID] for row in item.records[_INBOX]
    }
    if lost:  # messages that were accepted in the copy
        raise WrittenByOthers(target.where)
    return found.records


def _origin(tx: Transaction, target: Target, item: Item) -> int | None:
    """The number that the origin has in the copy."""
    if item.origin is None:
        return None
    if item.origin not in target.places:
        row = tx.row("copy_conversation_by_id", id=item.origin)
        if row is None:
            raise StoreError(f"the origin of {item.id} is gone; run `clew verify` on the source")
        conversations.look_up(tx, target, [row[0]])
    return target.places[item.origin].no


def _bring_blobs(tx: Transaction, target: Target, wanted: Iterable[tuple[int, int, bytes]]) -> None:
    """Bytes of images and files: (number in the source, number in the copy, hash)."""
    rows: list[dict[str, Value]] = []
    size = 0
    for source, no, hash in wanted:
        found = tx.row("blob_get", no=source, hash=hash)
        if found is None:
            raise StoreError("a blob of the source is gone; run `clew verify` on the source")
        rows.append({"no": no, "hash": hash, "bytes": found[0]})
        size += len(found[0])
        if size > BLOB_BYTES:
            _insert_blobs(target, rows)
            rows, size = [], 0
    if rows:
        _insert_blobs(target, rows)


def _insert_blobs(target: Target, rows: list[dict[str, Value]]) -> None:
    target.write(lambda tx: tx.batch(RECORDS[_BLOB].insert, rows))


class _Work:
    """The rows to delete, insert and update in one transaction, in this order: what is unique
    among the new ones may still be taken by an old one."""

    def __init__(self) -> None:
        self.deletes: dict[str, list[dict[str, Value]]] = {}
        self.inserts: dict[str, list[dict[str, Value]]] = {}
        self.updates: list[dict[str, Value]] = []
        self.blobs: list[tuple[int, int, bytes]] = []

    def compare(self, item: Item, place: Place, here: Sequence[Sequence[Row]]) -> None:
        """Take note of what differs in one conversation."""
        for index, table in enumerate(RECORDS):
            there, keys = item.records[index], table.keys
            old = {row[:keys]: row for row in here[index]}
            new = [row for row in there if old.get(row[:keys]) != row]
            kept = {row[:keys] for row in there} - {row[:keys] for row in new}
            for key in old.keys() - kept:
                self._add(self.deletes, table, table.delete, key, place)
            if index == _BLOB:
                self.blobs += [(item.no, place.no, row[0]) for row in new]
                continue
            for row in new:
                self._add(self.inserts, table, table.insert, row, place)

    def update(self, values: dict[str, Value]) -> None:
        self.updates.append(values)

    def run(self, tx: Transaction) -> None:
        """Do it."""
        for name, rows in (*self.deletes.items(), *self.inserts.items()):
            tx.batch(name, rows)
        tx.batch("copy_conversation_update", self.updates)

    def _add(
        self, todo: dict[str, list[dict[str, Value]]], table: Records, name: str, row: Row,
        place: Place,
    ) -> None:  # fmt: skip
        values = dict[str, Value](zip(table.columns, row, strict=False))
        todo.setdefault(name, []).append(values | {"no": place.no})
