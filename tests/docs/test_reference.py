"""The reference names everything that is there, and nothing that is not."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec
from pages import DOCS, ROOT, names, rows, sections, text

import clew
from clew.store import migrate

REFERENCE = DOCS / "reference"
HANDLES = {
    "Store": clew.Store, "Profile": clew.Profile, "TurnHandle": clew.TurnHandle,
    "Conversation": clew.Conversation,
}  # fmt: skip


def errors() -> dict[str, type[clew.ClewError]]:
    """Every error class that a caller can meet by name."""
    for module in pkgutil.walk_packages(clew.__path__, "clew."):
        if module.name.split(".")[-1] != "__main__":
            importlib.import_module(module.name)

    def below(kind: type[clew.ClewError]) -> Iterator[type[clew.ClewError]]:
        yield kind
        for child in kind.__subclasses__():
            yield from below(child)

    found = {kind.__name__: kind for kind in below(clew.ClewError)}
    return {name: kind for name, kind in found.items() if hasattr(clew, name)}


def test_every_error_of_the_tree_is_public_and_told() -> None:
    module = importlib.import_module("clew.errors")
    defined = {
        name for name, kind in vars(module).items()
        if inspect.isclass(kind) and issubclass(kind, clew.ClewError)
    }  # fmt: skip
    told = {name for row in rows(text(REFERENCE / "errors.md")) for name in names(row[0])}
    drawn = set(re.findall(r"^ +[│├└─ ]*(\w+)", text(REFERENCE / "errors.md"), re.MULTILINE))
    bases = {"ClewError", "Refused"}  # told by the sentences around their tables
    assert defined == set(errors())
    assert defined == told | bases
    assert told <= defined
    assert drawn == defined


def test_every_error_has_a_remedy() -> None:
    told = {
        name for row in rows(text(DOCS / "operating" / "troubleshooting.md"))
        for name in names(row[0])
    }  # fmt: skip
    assert told == set(errors())


def test_what_is_retryable_is_told_right() -> None:
    for row in rows(text(REFERENCE / "errors.md")):
        for name in names(row[0]):
            if len(row) >= 3 and (row[-1] == "yes" or row[-1].startswith("no")):
                assert errors()[name].retryable == (row[-1] == "yes"), name
            elif name in errors():
                assert not errors()[name].retryable, name


def schema(path: Path) -> dict[str, set[str]]:
    """Columns by table, as this version makes them."""
    connection = apsw.Connection(str(path))
    migrate.migrate(connection, migrate.known())
    tables = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    return {
        table: {row[1] for row in connection.execute(f"PRAGMA table_info({table})").fetchall()}
        for (table,) in tables
    }


def test_every_table_and_column_is_told(tmp_path: Path) -> None:
    told = sections(REFERENCE / "schema.md")
    search = text(ROOT / "src" / "clew" / "store" / "sql" / "search.sqlite.sql")
    made = re.findall(r"^CREATE (?:VIRTUAL )?TABLE (\w+)", search, re.MULTILINE)
    assert [name for row in rows(told.pop("The search file")) for name in names(row[0])] == made
    there = schema(tmp_path / "store.db")
    assert told.keys() == there.keys()
    for table, body in told.items():
        assert {name for row in rows(body) for name in names(row[0])} == there[table], table


def test_every_limit_is_told_with_its_default() -> None:
    units = {"KiB": 1024, "MiB": 1024 * 1024}
    told: dict[str, int] = {}
    for row in rows(text(REFERENCE / "limits.md").split("## Fixed")[0]):
        for name in names(row[0]):
            number, _, unit = row[1].partition(" ")
            told[name] = int(number) * units.get(unit, 1)
    assert told == msgspec.structs.asdict(clew.Limits())


def test_every_environment_variable_is_told() -> None:
    used = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"\bCLEW_[A-Z_]+\b", text(path))
    }
    told = set(re.findall(r"\bCLEW_[A-Z_]+\b", text(REFERENCE / "settings.md")))
    assert used == told


def public(kind: type) -> set[str]:
    """Methods, properties and documented attributes of a handle."""
    slots = {name for base in kind.__mro__[:-1] for name in vars(base)}
    return {name for name in slots if not name.startswith("_")}


def test_every_public_method_is_told() -> None:
    """Under the headings of its handle, and nothing that is not there."""
    for handle, kind in HANDLES.items():
        told = {
            name
            for head, body in sections(REFERENCE / "api.md").items()
            if head.split(":")[0] == handle
            for row in rows(body)
            for name in names(row[0])
        }
        attributes = {"id", "profile", "path", "name", "turn", "right", "appended", "call"}
        assert public(kind) - told == set(), handle
        assert told - public(kind) <= attributes, handle


def test_every_exported_name_is_told() -> None:
    page = text(REFERENCE / "api.md") + text(REFERENCE / "errors.md")
    assert not [name for name in clew.__all__ if not re.search(rf"\b{name}\b", page)]
