"""Writes the asyncio handles, src/clew/store/aio/, from the synchronous ones.

The source of both is store/{store,profile,reader,conversation,turn}.py. After a change there, run
`python scripts/aio.py`; a test fails until that is done. A method that waits for the store becomes
a coroutine, or an asynchronous iterator, and what it waits for is awaited: `self._db.write` and
`self._db.read` are one hop each; what is blocking as a whole (BLOCKING) runs in a thread.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STORE = Path(__file__).resolve().parent.parent / "src" / "clew" / "store"
MODULES = ("turn", "reader", "conversation", "profile", "store")
"""In the order of their imports."""

NAMES = {
    "Store": "AsyncStore",
    "Profile": "AsyncProfile",
    "ConversationReader": "AsyncConversationReader",
    "Conversation": "AsyncConversation",
    "TurnHandle": "AsyncTurn",
    "Database": "AsyncDatabase",
    "Iterator": "AsyncIterator",
    "BoundaryHandler": "AsyncBoundaryHandler",
    "__enter__": "__aenter__",
    "__exit__": "__aexit__",
}
BLOCKING = frozenset({
    "backup.backup",
    "deletion.finish",
    "dictionary.train_if_due",
    "erasure_run.erase",
    "erasure_run.plan",
    "erasure_run.resume",
    "retention.daily",
    "retention.delete",
    "retention.empty",
    "retention.prune",
    "bring_in_all",
    "health_of",
    "self._backend.close",
    "self._db.close",
    "self._db.backend.change_token",
    "self._search.catch_up",
    "self._search.close",
    "self._search.query",
    "verify",
})  # fmt: skip
CALLBACKS = frozenset({"handler"})
"""Parameters that are called, and are coroutine functions in an asyncio handle."""
IMPORTS = {
    "AsyncBoundaryHandler": "clew.domain.boundaries",
    "AsyncDatabase": "clew.store.aio.database",
    "AsyncIterator": "collections.abc",
    "hop": "clew.store.aio.database",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def here(method: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a method that run when it does: not those of the functions inside it."""
    for node in ast.iter_child_nodes(method):
        if not isinstance(node, ast.Lambda | ast.FunctionDef):
            yield node
            yield from here(node)


def iterates(method: ast.AST) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in here(method))


class ToAsync(ast.NodeTransformer):
    """Changes one class. `coroutines`: its methods, inherited ones too, that are to be awaited."""

    def __init__(self, coroutines: set[str]) -> None:
        self.coroutines = coroutines
        self.inside = False

    def waits(self, node: ast.AST) -> bool:
        """Whether this is a call that takes its time."""
        if not isinstance(node, ast.Call):
            return False
        name = ast.unparse(node.func)
        return (
            name in ("self._db.write", "self._db.accept", "self._db.read", "self._db.wait")
            or name in BLOCKING
            or name in CALLBACKS
            or (name.startswith("self.") and name[5:] in self.coroutines)
        )

    def learn(self, cls: ast.ClassDef) -> None:
        """Find the coroutines, until no method adds another."""
        methods = [n for n in cls.body if isinstance(n, ast.FunctionDef) and not iterates(n)]
        before = -1
        while before != len(self.coroutines):
            before = len(self.coroutines)
            for method in methods:
                if method.name in NAMES or any(map(self.waits, here(method))):
                    self.coroutines.add(method.name)

    def method(self, node: ast.FunctionDef) -> Function:
        """A method of the class."""
        awaited = node.name in self.coroutines or iterates(node)
        self.generic_visit(node)
        node.name = NAMES.get(node.name, node.name)
        return ast.AsyncFunctionDef(**vars(node)) if awaited else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Function:
        if not self.inside:
            self.inside = True
            changed = self.method(node)
            self.inside = False
            return changed
        return self.closed(node)

    def closed(self, node: Any) -> Any:
        """A function inside a method runs in a transaction and cannot await."""
        for call in filter(self.waits, ast.walk(node)):
            raise SystemExit(f"a function inside a method waits: {ast.unparse(call)}")
        self.generic_visit(node)
        return node

    visit_Lambda = closed

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(NAMES.get(node.id, node.id), node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        waits, name = self.waits(node), ast.unparse(node.func)
        self.generic_visit(node)
        if not waits:
            return node
        if name in BLOCKING:
            node.args = [node.func, *map(_blocking, node.args)]
            node.func = ast.Name("hop", ast.Load())
        return ast.Await(node)

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        self.generic_visit(node)
        if isinstance(node.value, ast.YieldFrom):
            item = ast.Name("item", ast.Load())
            return ast.For(
                ast.Name("item", ast.Store()), node.value.value, [ast.Expr(ast.Yield(item))], []
            )
        return node


def _blocking(argument: ast.expr) -> ast.expr:
    if ast.unparse(argument) == "self._db":
        return ast.parse("self._db.blocking", mode="eval").body
    return argument


def imports(tree: ast.Module, module: str, classes: list[ast.ClassDef]) -> list[ast.stmt]:
    """What the changed classes use: from the source's own imports, the source, or elsewhere."""
    used = {n.id for cls in classes for n in ast.walk(cls) if isinstance(n, ast.Name)}
    found: list[ast.stmt] = [ast.Import([ast.alias("asyncio")])] if "asyncio" in used else []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [ast.Import([name]) for name in node.names if name.name in used]
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            names = [alias for alias in node.names if (alias.asname or alias.name) in used]
            found += [ast.ImportFrom(node.module, names, 0)] if names else []
    own = {cls.name for cls in classes}
    for other in MODULES:
        theirs = {NAMES.get(name, "") for name in _defined(STORE / f"{other}.py")} & used - own
        found += [_from(f"clew.store.aio.{other}", name) for name in sorted(theirs)]
    local = _defined(STORE / f"{module}.py") & used - own
    found += [_from(f"clew.store.{module}", name) for name in sorted(local)]
    found += [_from(source, name) for name, source in IMPORTS.items() if name in used]
    return found


def _from(module: str, name: str) -> ast.ImportFrom:
    return ast.ImportFrom(module, [ast.alias(name)], 0)


def _defined(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        match node:
            case ast.ClassDef() | ast.FunctionDef():
                names.add(node.name)
            case ast.Assign(targets=[ast.Name(id=name)]):
                names.add(name)
            case _:
                pass
    return names


def generate() -> dict[Path, str]:
    """The text of every file, not yet formatted."""
    coroutines: dict[str, set[str]] = {}
    made: dict[Path, str] = {}
    for module in MODULES:
        tree = ast.parse((STORE / f"{module}.py").read_text("utf-8"))
        classes = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name in NAMES]
        for cls in classes:
            inherited = [coroutines.get(ast.unparse(base), set()) for base in cls.bases]
            change = ToAsync(set().union(*inherited))
            change.learn(cls)
            coroutines[cls.name] = change.coroutines
            change.generic_visit(cls)
            cls.name = NAMES[cls.name]
        docstring = (
            f"What store/{module}.py is, for asyncio.\n\n"
            "Generated from that by scripts/aio.py; a change belongs there.\n"
        )
        body = [
            ast.Expr(ast.Constant(docstring)),
            ast.ImportFrom("__future__", [ast.alias("annotations")], 0),
            *imports(tree, module, classes),
            *classes,
        ]
        text = ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))
        made[STORE / "aio" / f"{module}.py"] = text
    return made


def main() -> None:
    made = generate()
    for path, text in made.items():
        path.write_text(text + "\n", "utf-8")
    paths = [str(path) for path in made]
    ruff = [sys.executable, "-m", "ruff"]
    subprocess.run([*ruff, "check", "-q", "--select", "I,UP034", "--fix", *paths], check=True)
    subprocess.run([*ruff, "format", "-q", *paths], check=True)


if __name__ == "__main__":
    main()
