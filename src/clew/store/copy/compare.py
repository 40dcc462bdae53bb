"""Whether the copy equals its source: every column of every row but inner numbers and ids.

Each side is read by itself, and gives a digest of each conversation's messages, of its row and
records, and of each table of the whole store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from clew.errors import StoreError
from clew.store.backend import Row, Transaction
from clew.store.copy import conversations
from clew.store.copy.conversations import Seen
from clew.store.copy.tables import WIDE, Wide, digest, walk
from clew.store.copy.target import Target

PAGE = 500
TOLD = 3
"""Differences that an error names."""

_encode = msgspec.msgpack.Encoder().encode


class Sums(NamedTuple):
    """One side. `messages` by conversation, `wide` by table."""

    seen: Seen
    messages: Mapping[str, bytes]
    wide: Mapping[str, int]
    rows: Mapping[str, int]


def look(tx: Transaction) -> Seen:
    """All conversations with their records."""
    seen = Seen()
    for items in conversations.pages(tx):
        seen.add(items)
    return seen


def sum_up(tx: Transaction, seen: Seen, tell: Callable[[int], None]) -> Sums:
    """Read all messages and the tables of the whole store. `tell` is given the messages read."""
    rows = Counter(seen.rows)
    messages = _messages(tx, seen, rows, tell)
    wide: dict[str, int] = {}
    for table in WIDE:
        rows[table.name], wide[table.name] = total(map(digest, _whole(tx, table)))
    return Sums(seen, messages, wide, dict(rows))


def total(digests: Iterable[bytes]) -> tuple[int, int]:
    """How many, and one number that names them all, in whatever order."""
    count = sum_of = 0
    for value in digests:
        count += 1
        sum_of = (sum_of + int.from_bytes(value, "big")) % (1 << 128)
    return count, sum_of


def differences(source: Sums, copy: Sums) -> list[str]:
    """What is not the same, in words."""
    found = [
        f"{name}: {source.rows.get(name, 0)} rows in the source, {copy.rows.get(name, 0)} here"
        for name in sorted(source.rows.keys() | copy.rows.keys())
        if source.rows.get(name, 0) != copy.rows.get(name, 0)
    ]
    found += [f"rows of {name}" for name, value in source.wide.items() if copy.wide[name] != value]
    for what, ours, theirs in (
        ("records", source.seen.digests, copy.seen.digests),
        ("messages", source.messages, copy.messages),
    ):
        ids = ours.keys() | theirs.keys()
        found += [f"{what} of {id}" for id in sorted(ids) if ours.get(id) != theirs.get(id)]
    return found


def refuse(target: Target, found: list[str]) -> None:
    """Raise if there are differences."""
    if found:
        more = "" if len(found) <= TOLD else f" and {len(found) - TOLD} more"
        raise StoreError(
            f"{target.where} does not equal its source ({'; '.join(found[:TOLD])}{more}): others "
            f"wrote to it, or a disk is at fault. Copy to an empty place"
        )


def check_touched(tx: Transaction, target: Target, seen: Seen) -> None:
    """Compare what was written since all was compared: records, and messages from the first new
    one of each conversation on."""
    numbers = {id: no for no, id in seen.ids.items()}
    wrong: list[str] = []
    for id in sorted((target.touched | target.fresh.keys()) & seen.digests.keys()):
        no, place = numbers[id], target.places[id]
        item = target.db.read(lambda copy, no=place.no: conversations.one(copy, no))
        if item is None or item.digest() != seen.digests[id]:
            wrong.append(f"records of {id}")
        if id in target.fresh:
            first, last = target.fresh[id], place.head
            here = target.db.read(
                lambda copy, no=place.no, a=first, b=last: _digest(_range(copy, no, a, b))
            )
            if here != _digest(_range(tx, no, first, last)):
                wrong.append(f"messages of {id}")
    refuse(target, wrong)


def _messages(
    tx: Transaction, seen: Seen, rows: Counter[str], tell: Callable[[int], None]
) -> dict[str, bytes]:
    """A digest of each conversation's messages, by seq."""
    sums: dict[str, blake2b] = {}
    no = seq = done = 0
    while page := tx.rows("copy_message_walk", no=no, seq=seq, limit=PAGE):
        for row in page:
            id = seen.ids.get(row[1])
            if id is not None:
                if id not in sums:
                    sums[id] = blake2b(digest_size=16)
                sums[id].update(_encode(row[2:]))
                rows["message"] += 1
        no, seq = page[-1][1:3]
        done += len(page)
        tell(done)
    return {id: value.digest() for id, value in sums.items()}


def _range(tx: Transaction, no: int, first: int, last: int) -> Iterator[Row]:
    while rows := tx.rows("copy_message_range", no=no, first=first, last=last, limit=PAGE):
        yield from rows
        first = rows[-1][2] + 1


def _digest(rows: Iterable[Row]) -> bytes:
    value = blake2b(digest_size=16)
    for row in rows:
        value.update(_encode(row[2:]))
    return value.digest()


def _whole(tx: Transaction, table: Wide) -> Iterator[Row]:
    """All rows of a table, each of them whole."""
    for row in walk(tx, table):
        yield from [row] if table.one is None else tx.rows(table.one, **table.key(row))
