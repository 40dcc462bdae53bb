"""Named SQL: `-- name: x`, comment lines that say why, one statement with `:name` parameters.

sql/queries.sql is shared by all engines; sql/<dialect>.sql holds what really differs. A dialect
may not redefine a shared name. `-- macro: x` defines a piece of text for `{{x}}`, so that one
list of columns is written once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from types import MappingProxyType

_FOLDER = os.path.join(os.path.dirname(__file__), "sql")
_BLOCK = re.compile(r"^-- (name|macro): (\w+)\n", re.MULTILINE)
_MACRO = re.compile(r"\{\{(\w+)\}\}")


def parse(text: str, macros: dict[str, str] | None = None) -> dict[str, str]:
    """Statements by name, macros expanded, comments dropped.

    `macros` holds those of a file read before, and gets this one's.
    """
    statements: dict[str, str] = {}
    macros = {} if macros is None else macros
    pieces = _BLOCK.split(text)[1:]
    for kind, name, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        lines = (line for line in body.splitlines() if not line.lstrip().startswith("--"))
        statement = "\n".join(lines).strip().removesuffix(";")
        target = macros if kind == "macro" else statements
        if name in target:
            raise ValueError(f"{kind} {name!r} is defined twice")
        target[name] = _MACRO.sub(lambda match: macros[match[1]], statement)
    return statements


def read(name: str) -> str:
    """The text of a file in sql/. Not by importlib.resources, whose import takes longer than all
    that `clew list` does with the store."""
    with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:
        return file.read()


def load(dialect: str) -> Mapping[str, str]:
    """All statements for a dialect ("sqlite")."""
    macros: dict[str, str] = {}
    shared = parse(read("queries.sql"), macros)
    own = parse(read(f"{dialect}.sql"), macros)
    if both := shared.keys() & own.keys():
        raise ValueError(f"{dialect}.sql redefines {sorted(both)}")
    return MappingProxyType({**shared, **own})
