"""The documents, as tests look at them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"


@cache
def text(path: Path) -> str:
    return path.read_text("utf-8")


def documents() -> list[Path]:
    """All that people read."""
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def prose(path: Path) -> str:
    """A document without its code."""
    return re.sub(r"^```.*?^```", "", text(path), flags=re.DOTALL | re.MULTILINE)


def sections(path: Path, level: str = "##") -> dict[str, str]:
    """Text by heading of one level."""
    pieces = re.split(rf"^{level} (.+)\n", text(path), flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def rows(body: str) -> Iterator[list[str]]:
    """The cells of each row of the tables in a text, without the heads."""
    for line in body.splitlines():
        if line.startswith("| ") and not set(line) <= set("|-: "):
            yield [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]


def names(cell: str) -> list[str]:
    """What stands in backticks, without the arguments of calls."""
    return [re.split(r"[(\[=]", name)[0] for name in re.findall(r"`([^`]+)`", cell)]


@cache
def known_tests() -> frozenset[str]:
    """Names of all test functions."""
    return frozenset(
        node.name
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(text(path)))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    )
