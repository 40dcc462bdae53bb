"""A store with one of everything, ways to damage its file, and what has to be left of it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

import clew
from clew import Draft, Role, Text, ToolCall, ToolResult
from clew.store.copying import connection
from clew.store.salvage import Salvage
from clew.store.salvage_pages import TABLE_INNER, Image
from clew.store.salvage_records import Unreadable
from clew.store.salvage_shapes import shapes_of

PAGE = 4096
WORDS = ("disk", "full", "order", "parcel", "late", "refund", "index", "page", "sunrise", "river")


def fill(path: Path, conversations: int = 12, messages: int = 120, seed: int = 1) -> None:
    """Conversations with images, calls, turns, cuts, compactions, branches, notes."""
    chance = random.Random(seed)
    with clew.open(path) as store:
        profile = store.profile("me")
        profile.subscribe("memory")
        for number in range(conversations):
            conv = profile.conversation(f"key-{number}", source="tg")
            _talk(conv, messages, chance)
            at = conv.message(chance.randrange(10, 60)).uid
            _beside(conv, number, chance)
            if number % 3 == 0:
                branch = conv.branch(at)
                _talk(branch, 20, chance)
        doomed = profile.conversation("doomed", source="tg")
        _talk(doomed, messages, chance)
        profile.delete(doomed.id)


def _talk(conv: clew.Conversation, count: int, chance: random.Random) -> None:
    drafts: list[Draft] = []
    for number in range(count):
        text = " ".join(chance.choices(WORDS, k=chance.randrange(5, 90)))
        drafts.append(clew.user(text, key=f"{conv.id[:4]}-{number}"))
    drafts[3] = Draft(role=Role.USER, parts=(clew.Image(data=chance.randbytes(9000)), Text("see")))
    drafts[7] = clew.assistant("".join(chance.choices("abcdefghijklmnopqrstuvwxyz ", k=20_000)))
    conv.append(drafts)


def _beside(conv: clew.Conversation, number: int, chance: random.Random) -> None:
    turn: Any = conv.begin_turn([clew.user(f"do {number}")])
    turn.record([Draft(role=Role.ASSISTANT, parts=(ToolCall(f"c{number}", "run", "{}"),))])
    turn.record([Draft(role=Role.TOOL, parts=(ToolResult(f"c{number}", "ok", "run"),))])
    if number % 4:
        turn.finish([clew.assistant("done")])
    else:
        conv.append([clew.user("later")])  # waits
        return
    attempt = conv.open_attempt().number
    body = (clew.Inline(Role.USER, (Text("before"),)),)
    made = clew.Proposal(covers_to=30, body=body, tokens_before=100, tokens_after=10)
    conv.commit_attempt(attempt, made)
    conv.claim_alias("tool", f"foreign-{number}")
    conv.cut(conv.message(conv.info().head - chance.randrange(0, 3)).uid)


def columns(path: Path, table: str) -> list[str]:
    """The columns of a table in the order of `rows`."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as opened:
        return [column.name for column in shapes_of(opened)[table].columns]


def rows(path: Path, table: str) -> dict[Any, tuple[Any, ...]]:
    """All rows of a table by what names them in the file: rowid, or the key."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as opened:
        shape = shapes_of(opened)[table]
        names = ", ".join(f'"{column.name}"' for column in shape.columns)
        first = "rowid, " if shape.by_rowid else ""
        found = list(opened.execute(f"SELECT {first}{names} FROM {table}"))
    if shape.by_rowid:
        return {row[0]: tuple(row[1:]) for row in found}
    return {row[: shape.key]: tuple(row) for row in found}


Places = dict[str, dict[Any, frozenset[int]]]
"""On which pages of an undamaged file each row lies: {table: {name of the row: pages}}."""


def places(path: Path) -> Places:
    """By the decoder under test, of a file that SQLite finds in order; the tests compare that it
    sees every row."""
    found: dict[str, dict[Any, frozenset[int]]] = {}
    with closing(connection(path)) as opened:
        shapes = shapes_of(opened)
    with Image(path, PAGE) as image:
        for row in Salvage(image, shapes).rows():
            name = row.rowid if row.shape.by_rowid else row.values[: row.shape.key]
            if row.shape.rows:
                found.setdefault(row.shape.table, {})[name] = frozenset(row.pages)
    return found


def changed_pages(before: Path, after: Path) -> set[int]:
    """Pages that are not what they were, or not there any more."""
    old, new = before.read_bytes(), after.read_bytes()
    starts = range(0, len(old), PAGE)
    return {at // PAGE + 1 for at in starts if old[at : at + PAGE] != new[at : at + PAGE]}


Damage = Callable[[Path, random.Random], None]


def _write(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def _some(path: Path, chance: random.Random, share: float, first: int = 2) -> list[int]:
    count = path.stat().st_size // PAGE
    return chance.sample(range(first, count + 1), max(1, int(count * share)))


def zeros(path: Path, chance: random.Random) -> None:
    for page in _some(path, chance, 0.05):
        _write(path, (page - 1) * PAGE, bytes(PAGE))


def garbage(path: Path, chance: random.Random) -> None:
    for page in _some(path, chance, 0.05):
        _write(path, (page - 1) * PAGE, chance.randbytes(PAGE))


def torn(path: Path, chance: random.Random) -> None:
    """Sectors of pages are lost."""
    for page in _some(path, chance, 0.05):
        at = (page - 1) * PAGE + 512 * chance.randrange(8)
        _write(path, at, chance.choice((bytes(512), chance.randbytes(512))))


def swapped(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    pages = _some(path, chance, 0.05)
    for one, other in zip(pages[::2], pages[1::2], strict=False):
        for place, source in ((one, other), (other, one)):
            _write(path, (place - 1) * PAGE, data[(source - 1) * PAGE : source * PAGE])


def shifted(path: Path, chance: random.Random) -> None:
    """Pages under wrong numbers, as of a -wal of another file."""
    data = path.read_bytes()
    for page in _some(path, chance, 0.03):
        source = chance.randrange(1, len(data) // PAGE)
        _write(path, (page - 1) * PAGE, data[source * PAGE : (source + 1) * PAGE])


def truncated(path: Path, chance: random.Random) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(chance.randrange(size // 2, size))


def header(path: Path, chance: random.Random) -> None:
    _write(path, 0, chance.randbytes(PAGE))


def header_zero(path: Path, chance: random.Random) -> None:
    _write(path, 0, bytes(512))


def inner(path: Path, chance: random.Random) -> None:
    """The pages that lead to all others."""
    with Image(path, PAGE) as image:
        kinds: list[int] = []
        for number in range(2, image.count + 1):
            try:
                if image.page(number).kind in (TABLE_INNER, 2):
                    kinds.append(number)
            except Unreadable:
                pass
    for page in kinds:
        _write(path, (page - 1) * PAGE, chance.choice((bytes(PAGE), chance.randbytes(PAGE))))


DAMAGES: dict[str, Damage] = {
    each.__name__: each
    for each in (zeros, garbage, torn, swapped, shifted, truncated, header, header_zero, inner)
}


def blank(path: Path, page: int) -> None:
    """Lose one page."""
    _write(path, (page - 1) * PAGE, bytes(PAGE))


def copy(source: Path, target: Path) -> Path:
    """A closed store as another file."""
    shutil.copyfile(source, target)
    return target
