"""Files that no tool would write: bytes of real ones changed, and values put where others stood.

What is damaged and how, a `Random` decides: Hypothesis gives one that it can replay and shrink, the
fuzzer one with a seed.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any, cast

from hypothesis import strategies as st

from clew.errors import ClewError
from clew.importers.format import Format
from clew.importers.records import Event
from clew.importers.source import Source

_PIECES = (
    b"", b"\0" * 50, b'"', b"{", b"}", b"[", b"]", b"\\", b"\xff", b"null", b"1e999", b",", b"\r",
    b"\n", b"-", b":", b"\xed\xa0\x80", b"\\ud800",
)  # fmt: skip
_ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**63, 2**70, 1e300, -1.5, "", "x", "../../x", "\ud800", "\0",
    "9" * 20, "x" * 3000, "2026-01-01T00:00:00+99:99", "data:image/png;base64,!!", [], {}, [[]],
    [None], {"": {}}, {"type": "text"}, [{"type": "image"}], {"id": "x", "parentId": "x"},
)  # fmt: skip
_TABLES = """
    SELECT name FROM pragma_table_list
    WHERE schema = 'main' AND type = 'table' AND NOT wr AND name NOT LIKE 'sqlite_%'
"""
MOST = 4
"""Places that are damaged at once."""


# ---------------------------------------------------------------------- one thing


def break_bytes(random: Random, data: bytes) -> bytes:
    """The bytes with one to four places cut out or written over; now and then cut off."""
    for _ in range(random.randint(1, MOST)):
        at = random.randint(0, len(data))
        data = data[:at] + random.choice(_PIECES) + data[at + random.randint(0, 30) :]
    return data[: random.randint(0, len(data))] if random.randint(0, 9) == 0 else data


def alter(random: Random, document: Any) -> Any:
    """The JSON value with one to four values replaced by any others, by values that stand elsewhere
    in it, or taken away."""
    document = deepcopy(document)
    for _ in range(random.randint(1, MOST)):
        places = _places(document)
        if not places:
            break
        holder, key = random.choice(places)
        match random.randint(0, 4):
            case 0 if isinstance(key, str):
                holder.pop(key, None)
            case 1:
                other, there = random.choice(places)
                holder[key] = deepcopy(other[there])
            case _:
                holder[key] = deepcopy(random.choice(_ODD))
    return document


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, dict):
            held = cast(dict[str, Any], item)
            found += [(held, key) for key in held]
            rest += held.values()
        elif isinstance(item, list):
            pieces = cast(list[Any], item)
            found += [(pieces, at) for at in range(len(pieces))]
            rest += pieces
    return found


def dumped(document: Any) -> bytes:
    """As a tool would write it; what UTF-8 cannot hold is escaped."""
    return json.dumps(document).encode()


def put(target: Any, path: list[str], value: Any) -> None:
    """A value in the place that a path of keys leads to, by the first element of each list; where
    it leads to none, nothing is changed."""
    for step in path[:-1]:
        target = target.get(step) if isinstance(target, dict) else target
        if isinstance(target, list) and target:
            target = target[0]
    if isinstance(target, dict):
        target[path[-1]] = value
    elif isinstance(target, list) and target:
        target[0] = value


# ---------------------------------------------------------------------- files


def break_file(random: Random, path: Path) -> None:
    """Damage a file in its place; of a folder, some of its files."""
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.is_file())
        for each in random.sample(files, min(len(files), random.randint(1, MOST))):
            break_file(random, each)
        return
    data = path.read_bytes()
    if random.randint(0, 2) == 0:
        path.write_bytes(break_bytes(random, data))
    elif data.startswith(b"SQLite format 3\0"):
        _break_rows(random, path)
    else:
        path.write_bytes(_break_text(random, data))


def _break_text(random: Random, data: bytes) -> bytes:
    """Values in a document or in lines changed; lines lost, doubled or moved."""
    try:
        return dumped(alter(random, json.loads(data)))
    except ValueError:
        pass
    rows = data.splitlines()
    for _ in range(random.randint(1, MOST) if rows else 0):
        at = random.randrange(len(rows))
        match random.randint(0, 7):
            case 0:
                rows.insert(random.randrange(len(rows)), rows[at])
            case 1:
                rows.append(rows.pop(at))
            case 2 if len(rows) > 1:
                del rows[at]
            case _:
                rows[at] = _altered_row(random, rows[at])
    return b"\n".join(rows)


def _altered_row(random: Random, row: bytes) -> bytes:
    try:
        return dumped(alter(random, json.loads(row)))
    except ValueError:
        return break_bytes(random, row)


def _break_rows(random: Random, path: Path) -> None:
    """Values in some rows of a database changed: of columns that hold JSON also values in that."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.text_factory = bytes
        database.execute("PRAGMA ignore_check_constraints = 1")
        names = sorted(row[0].decode() for row in database.execute(_TABLES))
        for _ in range(random.randint(1, 2 * MOST)):
            _break_cell(random, database, random.choice(names))


def _break_cell(random: Random, database: sqlite3.Connection, table: str) -> None:
    columns = [row[1].decode() for row in database.execute(f'PRAGMA table_info("{table}")')]
    column = random.choice(columns)
    found = database.execute(f'SELECT rowid, "{column}" FROM "{table}"').fetchall()
    if not found:
        return
    row, value = random.choice(found)
    try:
        database.execute(
            f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (_cell(random, value), row)
        )
    except sqlite3.IntegrityError:
        pass  # a key that is there already, or NULL where none may be


def _cell(random: Random, value: Any) -> Any:
    if isinstance(value, bytes) and random.randint(0, 2):
        try:
            return dumped(alter(random, json.loads(value))).decode()
        except ValueError:
            return break_bytes(random, value)
    odd = random.choice(_ODD)
    if isinstance(odd, int) and abs(odd) >= 2**63:
        return float(odd)
    return odd if isinstance(odd, int | float | None) else dumped(odd)


# ---------------------------------------------------------------------- strategies

randoms = st.randoms(use_true_random=False)


def altered(document: Any) -> st.SearchStrategy[Any]:
    """As `alter`."""
    return randoms.map(lambda random: alter(random, document))


def survived(format: Format, source: Source) -> list[Event]:
    """What a reader gives of any source: all it says, up to an error of ours."""
    found: list[Event] = []
    try:
        found.extend(format.read(source))
    except ClewError:
        pass
    return found
