"""What rows of each table and index look like, taken from a new store of this code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import apsw

from clew.store.queries import parse, read
from clew.store.salvage_pages import INDEX_INNER, INDEX_LEAF, TABLE_INNER, TABLE_LEAF
from clew.store.salvage_records import Record, Value
from clew.store.sqlite_driver import query

SQL = parse(read("repair.sqlite.sql"))
"""The statements of repair, by name."""
_TYPES: dict[str, tuple[type, ...]] = {
    "INTEGER": (int,), "TEXT": (str,), "BLOB": (bytes,), "REAL": (float, int),
}  # fmt: skip


class Column(NamedTuple):
    name: str
    types: tuple[type, ...]
    """Empty: anything (an expression of an index)."""
    required: bool
    default: Value = None


class Shape(NamedTuple):
    """A tree of the schema. `columns`: in the order of a stored record."""

    name: str
    table: str
    columns: tuple[Column, ...]
    root: int
    """Its first page in a new store."""
    by_rowid: bool
    key: int = 0
    """How many of the columns order it, where it is not ordered by rowid."""
    rowid_at: int = -1
    """The column that stands for the rowid and is stored as NULL."""
    rows: bool = True
    """Whether its records are rows of the table; else it is an index of one."""
    unique: bool = False
    """An index that has an entry for every row of its table and names each by its rowid."""

    @property
    def kinds(self) -> tuple[int, int]:
        """Kinds of its inner pages and leaves."""
        return (TABLE_INNER, TABLE_LEAF) if self.by_rowid else (INDEX_INNER, INDEX_LEAF)

    def fit(self, rowid: int, found: Record) -> Record | None:
        """The row of a record, or None when it is none of this tree. Columns that the schema has
        got since are filled in."""
        missing = self.columns[len(found) :]
        if len(found) > len(self.columns) or (not self.rows and missing):
            return None
        if any(column.required and column.default is None for column in missing):
            return None
        row = [*found, *(column.default for column in missing)]
        if self.rowid_at >= 0:
            if row[self.rowid_at] is not None:
                return None
            row[self.rowid_at] = rowid
        for column, value in zip(self.columns, row, strict=True):
            if value is None:
                if column.required:
                    return None
            elif column.types and type(value) not in column.types:
                return None
        return tuple(row)


def shapes_of(store: apsw.Connection) -> dict[str, Shape]:
    """All trees of a store's schema by their names, the schema's own too."""
    found = {"sqlite_schema": _schema_shape()}
    trees = query(store, SQL["shape_trees"])
    tables = {row[1]: _table(store, row[1], row[3]) for row in trees if row[0] == "table"}
    found.update(tables)
    for kind, name, table, root in trees:
        if kind == "index":
            found[name] = _index(store, name, tables[table], root)
    return found


def _schema_shape() -> Shape:
    text, number = _TYPES["TEXT"], _TYPES["INTEGER"]
    columns = (
        Column("type", text, True), Column("name", text, True), Column("tbl_name", text, True),
        Column("rootpage", number, False), Column("sql", text, False),
    )  # fmt: skip
    return Shape("sqlite_schema", "sqlite_schema", columns, 1, by_rowid=True)


def _table(store: apsw.Connection, name: str, root: int) -> Shape:
    rows = query(store, SQL["shape_columns"], (name,))
    without = query(store, SQL["shape_without_rowid"], (name,))[0][0]
    columns = [
        Column(
            row[0], _TYPES.get(row[1], ()), bool(row[2] or (row[4] and without)), _number(row[3])
        )
        for row in rows
    ]
    if without:
        keys = sorted((row[4], at) for at, row in enumerate(rows) if row[4])
        order = [at for _, at in keys]
        order += [at for at in range(len(rows)) if at not in order]
        stored = tuple(columns[at] for at in order)
        return Shape(name, name, stored, root, by_rowid=False, key=len(keys))
    keys = [at for at, row in enumerate(rows) if row[4]]
    alias = keys[0] if len(keys) == 1 and rows[keys[0]][1] == "INTEGER" else -1
    return Shape(name, name, tuple(columns), root, by_rowid=True, rowid_at=alias)


def _index(store: apsw.Connection, name: str, table: Shape, root: int) -> Shape:
    known = {column.name: column for column in table.columns}
    rows = query(store, SQL["shape_indexed"], (name,))
    columns = tuple(_indexed(known.get(row[0]), row[1], row[0]) for row in rows)
    about = query(store, SQL["shape_index"], (table.name, name))[0]
    unique = bool(about[0]) and not about[1] and table.by_rowid
    return Shape(
        name, table.name, columns, root, by_rowid=False, key=len(columns), rows=False,
        unique=unique,
    )  # fmt: skip


def _indexed(column: Column | None, number: int, name: str | None) -> Column:
    if column is not None:
        return column
    return Column(name or "", (int,) if number == -1 else (), number == -1)


def _number(default: Value) -> Value:
    """A default of the schema; all that a later column may have are numbers."""
    return int(default) if isinstance(default, str) and default.lstrip("-").isdecimal() else None


def fitting(shapes: Sequence[Shape], kind: int, rows: Sequence[tuple[int, Record]]) -> list[Shape]:
    """The trees of which all these (rowid, record) can be."""
    return [
        shape for shape in shapes
        if kind in shape.kinds and rows
        and all(shape.fit(rowid, found) is not None for rowid, found in rows)
    ]  # fmt: skip
