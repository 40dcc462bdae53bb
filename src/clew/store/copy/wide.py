"""Tables of the whole store: what is not in the source goes, what is missing comes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clew.errors import InputError
from clew.store.backend import Row, Transaction, Value
from clew.store.copy.tables import DICTIONARY, PAGE, Wide, digest, walk
from clew.store.copy.target import Target

Held = dict[str, set[bytes]]
"""Digests of the rows that the copy has, by table."""


def held(target: Target, tables: Iterable[Wide]) -> Held:
    """Look at the copy."""

    def read(tx: Transaction) -> Held:
        return {table.name: {digest(row) for row in walk(tx, table)} for table in tables}

    return target.db.read(read)


def copy_dictionaries(tx: Transaction, target: Target) -> None:
    """Dictionaries never change and keep their numbers, for packed bytes name them."""
    there = {row[0]: row for row in target.db.read(lambda copy: list(walk(copy, DICTIONARY)))}
    new = [row for row in walk(tx, DICTIONARY) if row[0] not in there]
    if any(there.pop(row[0], row) != row for row in walk(tx, DICTIONARY)) or there:
        raise InputError(
            f"{target.where} has a compression dictionary of its own; copy to an empty place"
        )
    _insert(tx, target, DICTIONARY, new)


def bring_missing(tx: Transaction, target: Target, tables: Iterable[Wide], has: Held) -> None:
    """Insert rows that the copy lacks."""
    for table in tables:
        known, new = has[table.name], list[Row]()
        for row in walk(tx, table):
            if digest(row) not in known:
                new.append(row)
            if len(new) == PAGE:
                _insert(tx, target, table, new)
                known.update(map(digest, new))
                new = []
        _insert(tx, target, table, new)
        known.update(map(digest, new))


def drop_others(tx: Transaction, target: Target, tables: Iterable[Wide], has: Held) -> None:
    """Delete rows that the source has not."""
    for table in tables:
        known = has[table.name]
        others = known - {digest(row) for row in walk(tx, table)} if known else known
        if not others:
            continue
        old = target.db.read(lambda copy, table=table: list(walk(copy, table)))
        keys = [table.key(row) for row in old if digest(row) in others]
        target.write(lambda copy, table=table, keys=keys: copy.batch(table.delete, keys))
        known -= others


def _insert(tx: Transaction, target: Target, table: Wide, rows: Sequence[Row]) -> None:
    if not rows:
        return
    if table.one is not None:
        whole = (tx.row(table.one, **table.key(row)) for row in rows)
        rows = [row for row in whole if row is not None]
    values = [dict[str, Value](zip(table.columns, row, strict=True)) for row in rows]
    target.write(lambda copy: copy.batch(table.insert, values))
