"""Every value of a file, however deep and whatever it is wrapped in, and others in its place.

A file becomes a tree: JSON, lines of it, or tables; in it what stands as JSON in a text (arguments
of calls, bodies of a recording, events of a stream) or as MessagePack in bytes is taken apart too.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, cast

import msgspec

_ENDLESS, _DEEP, _DEEP_CONTENT = "@1e400@", "@deep@", "@deep content@"
_RAW = {
    f'"{_ENDLESS}"': "1e400",
    f'"{_DEEP}"': "[" * 450 + "]" * 450,
    f'"{_DEEP_CONTENT}"': '{"content":[' * 220 + "1" + "]}" * 220,
}
"""What is written for them: a number that no float holds, and values as deep as may be read."""
TWICE = "@twice@"
"""At the begin of a key: written without it, so that the key is there twice."""
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 1e308, _ENDLESS, 2**53 + 1, 2**62 - 1, 2**70, 10**4299,
    "", "x", "\0", "\ud800", "9" * 20, "x" * 3000, "\u4f60" * 2000, "2026-01-01T00:00:00Z",
    [], {}, [[]], ["x"], [None], [{}], {"": {}}, {"a": 1}, {"type": "text", "text": [{"text": {}}]},
    _DEEP, _DEEP_CONTENT,
)  # fmt: skip
"""One of each type of JSON, and those at the edges."""
_KINDS = ("type", "role", "kind", "source", "action", "observation", "sender", "content_type")
_TABLES = """
    SELECT name FROM pragma_table_list
    WHERE schema = 'main' AND type = 'table' AND NOT wr AND name NOT LIKE 'sqlite_%'
"""
_ROW = "@rowid"


class Wrapped:
    """What a text or bytes hold, as a value."""

    def __init__(self, value: Any, kind: str, code: int = 0) -> None:
        self.value, self.kind, self.code = value, kind, code


class Place(NamedTuple):
    """Where a value stands. `shape`: the path to it, the same for all elements of a list that are
    of one kind, as far as objects tell theirs."""

    shape: str
    holder: Any
    key: Any

    def get(self) -> Any:
        return self.holder.value if isinstance(self.holder, Wrapped) else self.holder[self.key]

    def put(self, value: Any) -> None:
        if isinstance(self.holder, Wrapped):
            self.holder.value = value
        else:
            self.holder[self.key] = value


# ---------------------------------------------------------------------- in and out


def _opened(value: Any) -> Any:
    match value:
        case dict():
            found = cast(dict[Any, Any], value)
            return {key: _opened(each) for key, each in found.items()}
        case list() | tuple():
            return [_opened(each) for each in cast(list[Any], value)]
        case str() if value.lstrip()[:1] in ("{", "["):
            return _read(value, "json")
        case str() if "data: {" in value:
            return Wrapped([_event(line) for line in value.split("\n")], "lines")
        case bytes():
            return _unpacked(value)
        case msgspec.msgpack.Ext():
            inner = _unpacked(bytes(value.data))
            return Wrapped(inner, "ext", value.code) if isinstance(inner, Wrapped) else value
        case _:
            return value


def _read(text: str, kind: str) -> Any:
    try:
        return Wrapped(_opened(json.loads(text)), kind)
    except ValueError:
        return text


def _event(line: str) -> Any:
    found = _read(line[6:], "event") if line.startswith("data: {") else line
    return found if isinstance(found, Wrapped) else line


def _unpacked(data: bytes) -> Any:
    try:
        found = msgspec.msgpack.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return data
    return Wrapped(_opened(found), "packed") if isinstance(found, dict | list) else data


def _closed(value: Any) -> Any:
    match value:
        case dict():
            found = cast(dict[Any, Any], value)
            return {key: _closed(each) for key, each in found.items()}
        case list():
            return [_closed(each) for each in cast(list[Any], value)]
        case Wrapped():
            return _wrapped(value, _closed(value.value))
        case _:
            return value


def _wrapped(about: Wrapped, value: Any) -> Any:
    match about.kind:
        case "event":
            return f"data: {_written(value)}"
        case "lines" if isinstance(value, list):
            return "\n".join(map(_as_text, cast(list[Any], value)))
        case "ext":
            return msgspec.msgpack.Ext(about.code, value if isinstance(value, bytes) else b"")
        case "packed":
            try:
                return msgspec.msgpack.encode(value)
            except (OverflowError, UnicodeEncodeError, RecursionError):
                return b""
        case _:
            return _written(value)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else _written(value)


def _written(value: Any) -> str:
    text = json.dumps(value, default=repr)
    for mark, raw in _RAW.items():
        text = text.replace(mark, raw)
    return text.replace(f'"{TWICE}', '"')


# ---------------------------------------------------------------------- places


def _places(value: Any, shape: str) -> Iterator[Place]:
    match value:
        case Wrapped():
            yield Place(f"{shape}!", value, None)
            yield from _places(value.value, f"{shape}!")
        case dict():
            fields = cast(dict[Any, Any], value)
            kinds = [kind[:20] for name in _KINDS if isinstance(kind := fields.get(name), str)]
            for key, each in fields.items():
                at = f"{shape}({','.join(kinds)}).{_name(key)}"
                yield Place(at, fields, key)
                yield from _places(each, at)
        case list():
            pieces = cast(list[Any], value)
            for at, each in enumerate(pieces):
                yield Place(f"{shape}[]", pieces, at)
                yield from _places(each, f"{shape}[]")
        case _:
            pass


def _name(key: Any) -> str:
    """A key that is no word is an id: all of them are alike."""
    return key if isinstance(key, str) and key.replace("_", "a").isalpha() else "#"


class Tree:
    """A file as values, which can be put and written."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        self._rows: dict[str, Any] = {}
        self._value: Any
        if data.startswith(b"SQLite format 3\0"):
            self._kind, self._value = "tables", _tables(path)
            self._rows = _closed(self._value)
            return
        try:
            self._kind, self._value = "json", _opened(json.loads(data))
        except ValueError:
            rows = data.decode("utf-8", "replace").split("\n")
            self._kind, self._value = "lines", [_opened(row) for row in rows]

    def places(self) -> list[Place]:
        """All of them; of tables those in their rows."""
        if self._kind != "tables":
            return list(_places(self._value, ""))
        rows = ((table, row) for table, rows in self._value.items() for row in rows)
        found = (place for table, row in rows for place in _places(row, table))
        return [place for place in found if place.key != _ROW]

    def write(self, path: Path) -> None:
        """Write what is there now; `path` is a copy of the file."""
        now = _closed(self._value)
        match self._kind:
            case "json":
                path.write_text(_written(now))
            case "lines":
                text = "\n".join(map(_as_text, now))
                path.write_bytes(text.encode("utf-8", "surrogatepass"))
            case _:
                self._write_rows(path, now)

    def _write_rows(self, path: Path, now: dict[str, Any]) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("PRAGMA ignore_check_constraints = 1")
            for table, rows in self._rows.items():
                for was, row in zip(rows, now[table], strict=True):
                    _update(database, table, was, row)


def _tables(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with closing(sqlite3.connect(path)) as database:
        for (name,) in database.execute(_TABLES).fetchall():
            rows = database.execute(f'SELECT rowid AS "{_ROW}", * FROM "{name}"')
            columns = [each[0] for each in rows.description]
            found[name] = [dict(zip(columns, map(_opened, row), strict=True)) for row in rows]
    return found


def _update(
    database: sqlite3.Connection, table: str, was: dict[str, Any], now: dict[str, Any]
) -> None:
    for column, before in was.items():
        value = _cell(now.get(column))
        if column == _ROW or (type(value) is type(before) and value == before):
            continue
        try:
            database.execute(
                f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (value, was[_ROW])
            )
        except sqlite3.IntegrityError:
            pass  # a key that is there already, or NULL where none may be


def _cell(value: Any) -> Any:
    match value:
        case None | bool() | float() | bytes():
            return value
        case int():
            return value if abs(value) < 2**63 else float(min(value, 2**70))
        case str() if value == _ENDLESS:
            return float("inf")
        case str():
            return value.encode("utf-8", "replace").decode()
        case _:
            return _written(value)


# ---------------------------------------------------------------------- damage


@contextmanager
def replaced(place: Place, value: Any) -> Iterator[None]:
    """Another value in a place, for as long as this lasts."""
    was = place.get()
    place.put(value)
    try:
        yield
    finally:
        place.put(was)


@contextmanager
def dropped(place: Place) -> Iterator[None]:
    """A place that is gone: a key with its value, an element."""
    if isinstance(place.holder, Wrapped):
        with replaced(place, {}):
            yield
        return
    was = place.holder.copy()
    del place.holder[place.key]
    try:
        yield
    finally:
        _restore(place.holder, was)


@contextmanager
def doubled(place: Place, value: Any) -> Iterator[None]:
    """A key that is there twice, an element that another follows."""
    if isinstance(place.holder, Wrapped):
        with replaced(place, [place.get(), value]):
            yield
        return
    was = place.holder.copy()
    if isinstance(place.holder, dict):
        place.holder[f"{TWICE}{place.key}"] = value
    else:
        place.holder.insert(place.key + 1, value)
    try:
        yield
    finally:
        _restore(place.holder, was)


def _restore(holder: Any, was: Any) -> None:
    if isinstance(holder, dict):
        holder.clear()
        holder.update(was)
    else:
        holder[:] = was


def alter_file(random: Random, path: Path) -> None:
    """Change one to four values of a file in its place; of a folder, of one of its files. What
    stands elsewhere in it may come in the place of a value, two may change their places."""
    if path.is_dir():
        path = random.choice(sorted(each for each in path.rglob("*") if each.is_file()))
    tree = Tree(path)
    for _ in range(random.randint(1, 4)):
        places = tree.places()
        if not places:
            break
        place, other = random.choice(places), random.choice(places)
        match random.randint(0, 5):
            case 0:
                place.put(deepcopy(other.get()))
            case 1:
                one, two = deepcopy(place.get()), deepcopy(other.get())
                place.put(two)
                other.put(one)
            case _:
                place.put(deepcopy(random.choice(VALUES)))
    tree.write(path)
