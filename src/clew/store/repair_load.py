"""Puts what was salvaged into a new store.

The constraints of the schema decide: a row that breaks one, or that is there already, is left out.
Rows of pages that are not surely in their place are taken last, and only if no index contradicts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

import apsw

from clew.store.salvage import Row, Salvage
from clew.store.salvage_records import Record, Value
from clew.store.salvage_shapes import SQL, Shape
from clew.store.sqlite_driver import query, translate

OURS = frozenset({"schema_version", "min_writer_version", "stamp"})
"""What the new store says of itself; the rest of `meta` is the old one's."""
_BATCH = 500


class Loader:
    """Of one new store, inside its transaction."""

    def __init__(self, store: apsw.Connection, shapes: Mapping[str, Shape]) -> None:
        self._store = store
        self._execute: Any = cast(Any, store).execute
        self.shapes = shapes
        self._indexes = {
            name: [s for s in shapes.values() if s.table == name and s.unique] for name in shapes
        }
        self._insert = {name: _insert(s) for name, s in shapes.items() if s.rows}
        self.read: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        """Rows that the schema refused or that nothing vouched for."""
        self.hints: dict[int, dict[str, Value]] = {}
        """What indexes say of conversations."""
        self._waiting: list[tuple[str, int, str]] = []

    def load(self, salvage: Salvage) -> None:
        """Take all that is there."""
        query(self._store, SQL["evidence_create"])
        for row in salvage.rows():
            if not row.shape.rows:
                self._note(row)
            elif row.sure or self._believed(row, salvage):
                self._add(row)
        self._flush()
        query(self._store, SQL["evidence_order"])

    def lost(self, table: str) -> int:
        """How many rows of a table its indexes name that are not there."""
        most = 0
        for index in self._indexes[table]:
            sql = _lost(self.shapes[table])
            most = max(most, query(self._store, sql, (index.name,))[0][0])
        return most

    def _add(self, row: Row) -> None:
        table = row.shape.table
        if table == "meta":
            if row.values[0] not in OURS:
                query(self._store, SQL["meta_keep"], row.values)
        elif table == "sqlite_sequence":
            query(self._store, SQL["sequence_add"], row.values)
            query(self._store, SQL["sequence_raise"], row.values)
        else:
            try:
                plain = row.shape.by_rowid and row.shape.rowid_at < 0
                values = (row.rowid, *row.values) if plain else row.values
                self._execute(self._insert[table], values)
            except apsw.ConstraintError:
                self.refused[table] += table != "end_reason"
                return
            except apsw.Error as error:
                raise translate(error, self._store.system_errno) from error
        self.read[table] += 1

    def _note(self, row: Row) -> None:
        """An entry of an index."""
        shape, values = row.shape, row.values
        if not row.sure:
            return
        if shape.table == "conversation":
            columns = [column.name for column in shape.columns]
            known = self.hints.setdefault(cast(int, values[-1]), {})
            known.update(zip(columns[:-1], values[:-1], strict=True))
            if shape.name in ("conversation_listed", "conversation_everywhere"):
                known["listed"] = 1
        if shape.unique:
            self._waiting.append((shape.name, cast(int, values[-1]), repr(values[:-1])))
            if len(self._waiting) >= _BATCH:
                self._flush()

    def _flush(self) -> None:
        cast(Any, self._store).executemany(SQL["evidence_add"], self._waiting)
        self._waiting = []

    def _believed(self, row: Row, salvage: Salvage) -> bool:
        """Whether a row on a doubtful page may be taken: an index has it, or the page is known to
        be in use and the index that lacks it is itself damaged."""
        self._flush()
        table, doubtful = row.shape.table, row.hidden
        if row.shape.by_rowid:
            for index in self._indexes[table]:
                found = query(self._store, SQL["evidence_of"], (index.name, row.rowid))
                if found == [(_key(row.shape, index, row.values),)]:
                    return True
                doubtful = doubtful and not found and not salvage.is_whole(index.name)
        self.refused[table] += not doubtful
        return doubtful


def _key(table: Shape, index: Shape, values: Record) -> str:
    """The entry of a row in an index."""
    by_name = {column.name: value for column, value in zip(table.columns, values, strict=True)}
    return repr(tuple(by_name[column.name] for column in index.columns[:-1]))


def _insert(shape: Shape) -> str:
    names = [f'"{column.name}"' for column in shape.columns]
    if shape.by_rowid and shape.rowid_at < 0:
        names.insert(0, "rowid")
    marks = ", ".join("?" * len(names))
    return f"INSERT INTO {shape.table}({', '.join(names)}) VALUES ({marks})"  # noqa: S608 our schema


def _lost(shape: Shape) -> str:
    return SQL["evidence_lost"].replace("FROM message", f"FROM {shape.table}")
