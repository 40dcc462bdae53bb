"""Writes INDEX.tsv: which test shows which behaviour of docs/behaviours.md.

    python tests/contract/index.py

Status and reason stand in docs/behaviours.md. A test is listed where that page names it, and where
its own name (`test_s01_5_...`) or docstring ("S01.5") carries the id.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INDEX = ROOT / "tests/contract/INDEX.tsv"
ROW = re.compile(r"\| (S\d\d\.\d+) \| .*? \| (.*?) \| (.*) \| ?(.*?) ?\|")


def tests() -> Iterator[tuple[str, str, str]]:
    """(name, node id, name and docstring) of every test of the repository."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
            if isinstance(node, kinds) and node.name.startswith("test_"):
                where = f"{path.relative_to(ROOT)}::{node.name}"
                yield node.name, where, f"{node.name} {ast.get_docstring(node) or ''}"


def text() -> str:
    """What INDEX.tsv has to say."""
    nodes: dict[str, str] = {}
    carried: dict[str, list[str]] = defaultdict(list)
    for name, where, said in tests():
        nodes.setdefault(name, where)
        found = re.findall(r"S(\d\d)\.(\d+)", said)
        found += re.findall(r"_s(\d\d)_(\d+)(?=_)", f"_{name}")
        for system, number in found:
            carried[f"S{system}.{number}"].append(where)
    lines = ["behaviour\ttests\tstatus\thow"]
    for line in (ROOT / "docs/behaviours.md").read_text("utf-8").splitlines():
        if match := ROW.fullmatch(line):
            behaviour, status, how, shown = match.groups()
            named = [nodes[name] for name in re.findall(r"`(test_\w+)`", shown)]
            where = " ".join(dict.fromkeys(carried[behaviour] + named))
            lines.append("\t".join((behaviour, where, status, how.replace("`", ""))))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    INDEX.write_text(text(), "utf-8")
