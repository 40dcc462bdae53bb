"""The rules of this project that no type checker or linter knows, each with its reason.

They read the source, not the behaviour. A rule that is in the way is changed here, in the open;
a number that can go down should.
"""

from __future__ import annotations

import ast
import os
import re
import runpy
from collections import defaultdict
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any

import apsw
import apsw.ext
import psycopg

from clew.store import migrate, postgres_migrate, postgres_transaction, queries
from clew.store.erasure_columns import FATES
from servers import empty_database

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src" / "clew"
NOT_OURS = re.compile(r"\.(?!ci$)|__pycache__|.+\.egg-info|(venv|build|dist)$")

LAYERS = (
    {"errors", "ids", "clock", "config", "service", "startup"}, {"domain"}, {"context"}, {"store"},
    {"compaction", "importers"}, {"providers", "exporters"}, {"tools"}, {"host"},
    {"__init__", "aio", "testing"}, {"cli"},
)  # fmt: skip
"""Imports point upwards in this list; only those of the first line know each other."""
LEVEL = {package: level for level, layer in enumerate(LAYERS) for package in layer}
BELOW = (
    r"(sqlite\w*|postgres\w*|migrate|doctor\w*|copying|restore|repair\w*|salvage\w*|witness"
    r"|search/connection)"
)
FOREIGN = r"importers/(foreign|formats/\w+)\.py"
"""What reads the SQLite files of other tools: statements about their tables, none of ours."""
KNOWS_AN_ENGINE = re.compile(rf"store/{BELOW}\.py|cli/version\.py|testing/postgres\.py|{FOREIGN}")
"""Below the waist, and tools for broken files. All other modules run named statements."""
ENGINES = ("apsw", "psycopg")
DIALECTS = ("sqlite", "postgres")
SQL = re.compile(r"\b(SELECT .+ FROM|INSERT INTO|UPDATE \w+ SET|DELETE FROM|CREATE TABLE|PRAGMA) ")
LATE_IMPORTS: set[str] = set()
"""Modules that may be imported inside a function: optional extras."""
CHANCE = re.compile(
    r"time\.time(_ns)?|(datetime\.)+(now|utcnow|today)|(secrets|random|uuid)(\.\w*)?"
)
MAY_ASK_THE_SYSTEM = re.compile(
    r"clock\.py|ids\.py|store/(holders|guard|postgres)\.py|testing/\w+\.py"
)
MOST_LINES = {"README.md": 150, "CONTRIBUTING.md": 150, "docs/ARCHITECTURE.md": 400}
INVARIANT = re.compile(r"\bI-\d\d\b")
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Source:
    """A Python file, parsed once."""

    def __init__(self, path: Path) -> None:
        self.path, self.text = path, path.read_text("utf-8")
        self.tree = ast.parse(self.text)
        self.nodes = list(ast.walk(self.tree))
        constants = [node.value for node in self.of(ast.Constant)]
        self.strings = {value for value in constants if isinstance(value, str)}
        self.imports = list(self.imported())

    def of(self, kind: Any) -> list[Any]:
        return [node for node in self.nodes if isinstance(node, kind)]

    def imported(self) -> Iterator[tuple[str, str, str]]:
        """(module, name, where) of each import; where is "", "late" or "types"."""
        where = {id(n): "late" for f in self.of(Function) for n in ast.walk(f)}
        for branch in self.of(ast.If):
            if isinstance(branch.test, ast.Name) and branch.test.id == "TYPE_CHECKING":
                where |= {id(node): "types" for node in branch.body}
        for node in self.of(ast.Import):
            yield from ((alias.name, "", where.get(id(node), "")) for alias in node.names)
        for node in self.of(ast.ImportFrom):
            module = node.module or ""
            yield from ((module, alias.name, where.get(id(node), "")) for alias in node.names)


@cache
def files() -> list[Path]:
    found: list[Path] = []
    for folder, inner, names in os.walk(ROOT):
        inner[:] = [name for name in inner if not NOT_OURS.match(name)]
        found += [Path(folder, name) for name in names]
    return found


@cache
def python() -> list[Source]:
    return [Source(path) for path in files() if path.suffix == ".py"]


@cache
def package() -> dict[str, Source]:
    """The modules of clew, by their path in it."""
    inside = (source for source in python() if source.path.is_relative_to(SRC))
    return {source.path.relative_to(SRC).as_posix(): source for source in inside}


@cache
def statements() -> dict[str, str]:
    """Those of the store, and of files like search.sqlite.sql."""
    found = dict(queries.load("sqlite"))
    for path in [*(SRC / "store" / "sql").glob("*.sqlite.sql"), SRC / "store/sql/upkeep.sql"]:
        found |= queries.parse(path.read_text("utf-8"))
    return found


def test_imports_point_one_way() -> None:
    """A layer that knew the one above could not be understood, or replaced, without it."""
    for name, source in package().items():
        here = name.removesuffix(".py").split("/")[0]
        for module, what, where in source.imports:
            of_clew = module == "clew" and what in LEVEL  # from clew import startup
            root, there, *_ = [*module.split("."), what if of_clew else "__init__"]
            if root == "clew" and there != here and LEVEL[there] >= LEVEL[here]:
                types_only = (here, there, where) == ("context", "store", "types")
                assert types_only or LEVEL[there] == LEVEL[here] == 0, (name, module)


def test_imports_stand_at_the_top_and_take_no_private_names() -> None:
    """What a module needs is seen before it runs; what is private stays in its package."""
    for name, source in package().items():
        for module, what, where in source.imports:
            assert where != "late" or module in LATE_IMPORTS, (name, module)
            own = (SRC.parent / module.replace(".", "/")).parent == source.path.parent
            assert own or not what.startswith("_") or what.startswith("__"), (name, module, what)


def test_only_the_engine_speaks_sql() -> None:
    """Above the waist a module would have to be written again for another engine."""
    for name, source in package().items():
        knows = any(module.startswith(ENGINES) for module, _, _ in source.imports)
        speaks = knows or any(map(SQL.search, source.strings))
        assert not speaks or KNOWS_AN_ENGINE.fullmatch(name), name


def test_the_dialects_say_the_same() -> None:
    """A statement or macro that one engine lacks would fail where nobody looks. Parameters too."""

    def said(dialect: str, kind: str) -> dict[str, set[str]]:
        blocks = re.split(r"(?m)^-- (name|macro): (\w+)\n", queries.read(f"{dialect}.sql"))[1:]
        found = zip(blocks[::3], blocks[1::3], blocks[2::3], strict=True)
        return {name: set(re.findall(r":(\w+)", body)) for k, name, body in found if k == kind}

    assert said("sqlite", "name") == said("postgres", "name")
    assert said("sqlite", "macro").keys() == said("postgres", "macro").keys()
    assert queries.load("sqlite").keys() == queries.load("postgres").keys()
    folder = SRC / "store" / "sql" / "migrations"
    twins = {(path.name.split(".")[0], path.name.split(".")[1]) for path in folder.glob("*.sql")}
    assert twins == {(name, dialect) for name, _ in twins for dialect in DIALECTS}


EDGES = ("cli/main.py", "compaction/summarize.py")
"""Where a program ends, and where another's code is called that may raise what it likes."""


def test_broad_excepts_only_at_the_edge() -> None:
    """They hide faults of ours. Any may be caught to clean up, if it goes on."""
    for name, source in package().items():
        for handler in source.of(ast.ExceptHandler) if name not in EDGES else ():
            kind = ast.unparse(handler.type) if handler.type else ""
            goes_on = kind and isinstance(handler.body[-1], ast.Raise)
            assert kind not in ("", "Exception", "BaseException") or goes_on, (name, kind)


def test_time_and_chance_are_passed_in() -> None:
    """Use clock.Clock and ids.Ids, which a test can replace."""
    for name, source in package().items():
        used = {ast.unparse(node) for node in source.of(ast.Attribute)}
        used |= {f"{module}.{name}" for module, name, _ in source.imports}
        asked = {what for what in used if CHANCE.fullmatch(what)}
        assert not asked or MAY_ASK_THE_SYSTEM.fullmatch(name), (name, asked)


def test_sizes_only_go_down() -> None:
    """Long is not wrong, but it is where two things have become one."""
    lines = {name: source.text.count("\n") for name, source in package().items()}
    sizes = {
        f"{name}:{node.name}:{node.lineno}": (node.end_lineno or 0) - node.lineno + 1
        for name, source in package().items()
        for node in source.of(Function)
    }
    assert not {name: size for name, size in lines.items() if size > 500}
    assert not {name: size for name, size in sizes.items() if size > 60}
    assert median(lines.values()) <= 130
    assert median(sizes.values()) <= 9


def test_every_module_says_what_it_is_for() -> None:
    assert not [s.path for s in python() if s.text.strip() and not ast.get_docstring(s.tree)]


def test_the_asyncio_handles_are_those_of_their_source() -> None:
    """After a change of a synchronous handle: `python scripts/aio.py`."""

    def meaning(text: str) -> tuple[set[str], list[str]]:
        body = ast.parse(text).body
        imports = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {f"{getattr(i, 'module', '')} {n.name}" for i in imports for n in i.names}
        return names, [ast.dump(node) for node in body if node not in imports]

    for path, wanted in runpy.run_path(str(ROOT / "scripts" / "aio.py"))["generate"]().items():
        assert meaning(path.read_text("utf-8")) == meaning(wanted), path


def test_a_table_is_written_by_one_module() -> None:
    """So that its rules stand in one place. A statement is named after the table it writes. Those
    of store/copy/, which brings the rows of all tables as they are, begin with `copy`."""
    writers: dict[str, set[str]] = defaultdict(set)
    for statement, sql in queries.load("sqlite").items():
        if match := re.match(r"(?:INSERT INTO|UPDATE|DELETE FROM) (\w+)", sql):
            users = {name for name, source in package().items() if statement in source.strings}
            if statement.startswith("copy_"):
                assert all(name.startswith("store/copy/") for name in users), statement
                continue
            assert statement.startswith(f"{match[1]}_"), statement
            writers[match[1]] |= users
    assert not {table: names for table, names in writers.items() if len(names) > 1}


def test_every_statement_is_used_with_the_parameters_it_takes() -> None:
    """Engines differ in what they do with one too many or too few."""
    for name, source in package().items():
        for call in source.of(ast.Call):
            given = {keyword.arg for keyword in call.keywords}
            first = call.args[0].value if [*map(type, call.args)] == [ast.Constant] else None
            if first in statements() and None not in given:
                wanted = set(re.findall(r":(\w+)", statements()[first]))
                assert given == wanted, (name, call.lineno, first)
    used = set[str]().union(*(source.strings for source in package().values()))
    assert sorted(statements().keys() - used) == []


def test_every_statement_prepares_on_postgres() -> None:
    """With the types that the server finds for the parameters by itself, as clew has it."""
    with psycopg.connect(empty_database(), autocommit=True) as connection:
        postgres_migrate.prepare(connection)
        for name, command in postgres_transaction.statements().items():
            result = connection.pgconn.prepare(command.name, command.text)
            assert result.status == psycopg.pq.ExecStatus.COMMAND_OK, (name, result.error_message)


def test_every_statement_prepares(tmp_path: Path) -> None:
    """On the tables of a store and of a search file, as this version makes them."""
    connection = apsw.Connection(str(tmp_path / "store.db"))
    migrate.migrate(connection, migrate.known())
    made = {name for name in statements() if name.endswith("_create")}
    for name in [*made, *(statements().keys() - made)]:
        run = connection.execute if name in made else partial(apsw.ext.query_info, connection)
        run(statements()[name])


def test_erasure_knows_every_column_that_holds_something(tmp_path: Path) -> None:
    """A column in no list would keep what a person wanted gone. Read from both schemas."""
    connection = apsw.Connection(str(tmp_path / "store.db"))
    migrate.migrate(connection, migrate.known())
    there: set[str] = set()
    tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' "
    for (table,) in connection.execute(tables + "ESCAPE '!'").fetchall():
        for row in connection.execute(f'PRAGMA table_info("{table}")').fetchall():
            there |= {f"{table}.{row[1]}"} if row[2] in ("TEXT", "BLOB") else set()
    connection.close()
    with psycopg.connect(empty_database(), autocommit=True) as server:
        postgres_migrate.prepare(server)
        rows = server.execute(
            "SELECT table_name || '.' || column_name FROM information_schema.columns "
            "WHERE table_schema = 'public' AND data_type IN ('text', 'bytea', 'tsvector')"
        ).fetchall()
        partitions = server.execute("SELECT relname FROM pg_class WHERE relispartition").fetchall()
    inner = {name for (name,) in partitions}
    there |= {name for (name,) in rows if name.split(".")[0] not in inner}
    listed = [column for fate in FATES.values() for column in fate.columns]
    assert sorted(listed) == sorted(set(listed)), "a column has one fate"
    assert set(listed) == there
    page = (ROOT / "docs" / "operating" / "erasure.md").read_text("utf-8")
    assert [column for column in listed if f"`{column}`" not in page] == []


def test_every_invariant_is_enforced_and_tested() -> None:
    """Each I-NN that the document states is named in the source, and in a test's name or text."""
    stated = set(INVARIANT.findall((ROOT / "docs" / "invariants.md").read_text("utf-8")))
    schema = "".join(path.read_text("utf-8") for path in SRC.rglob("*.sql"))
    enforced = set(INVARIANT.findall(schema + "".join(s.text for s in package().values())))
    tests = [source for source in python() if source.path.is_relative_to(ROOT / "tests")]
    nodes = [node for source in tests for node in (source.tree, *source.of(Function))]
    said = " ".join(f"{getattr(n, 'name', '')} {ast.get_docstring(n)}" for n in nodes)
    tried = set(INVARIANT.findall(re.sub(r"i_(\d\d)", r" I-\1 ", said)))
    assert stated
    assert (sorted(stated - enforced), sorted(stated - tried)) == ([], [])


def test_documents_have_one_title_and_links_that_lead_somewhere() -> None:
    for path in (path for path in files() if path.suffix == ".md"):
        prose = re.sub(r"(?ms)^```.*?^```", "", path.read_text("utf-8"))
        assert len(re.findall(r"(?m)^# ", prose)) == 1, path
        for link in re.findall(r"\]\(([^)#\s]+)", prose):
            assert ":" in link or (path.parent / link).exists(), (path, link)


def test_documents_stay_short() -> None:
    for name, most in (MOST_LINES | {"docs/decisions/*.md": 80}).items():
        for path in ROOT.glob(name):
            assert path.read_text("utf-8").count("\n") <= most, path


def test_the_project_stands_alone() -> None:
    """Nothing is too large for a repository, and nothing points out of it."""
    outside = re.compile("/wor" + "k/|\\.\\./sha" + "red")
    for path in files():
        assert path.stat().st_size < 1_000_000, path
        assert path.resolve().is_relative_to(ROOT), path
        assert not outside.search(path.read_bytes().decode("utf-8", "replace")), path
