"""Named SQL: `-- name: x`, comment lines that say why, one statement with `:name` parameters.

sql/queries.sql is shared by all engines; sql/<dialect>.sql holds what really differs. A dialect
may not redefine a shared name. `-- macro: x` defines a piece of text for `{{x}}`, so that one
list of columns is written once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

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


def load(dialect: str) -> Mapping[str, str]:
    """All statements for a dialect ("sqlite")."""
    folder = files("clew.store") / "sql"
    macros: dict[str, str] = {}
    shared = parse((folder / "queries.sql").read_text("utf-8"), macros)
    own = parse((folder / f"{dialect}.sql").read_text("utf-8"), macros)
    if both := shared.keys() & own.keys():
        raise ValueError(f"{dialect}.sql redefines {sorted(both)}")
    return MappingProxyType({**shared, **own})
