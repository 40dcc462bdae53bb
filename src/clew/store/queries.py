"""Named SQL: `-- name: x`, comment lines that say why, one statement with `:name` parameters.

sql/queries.sql and sql/copy.sql are shared by all engines; sql/<dialect>.sql holds what really
differs, under names that all dialects have. A dialect may not redefine a shared name. `-- macro: x`
defines a piece of text for `{{x}}`, so that one list of columns is written once, and so that a
shared statement has one place that a dialect fills.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

_FOLDER = os.path.join(os.path.dirname(__file__), "sql")
_BLOCK = re.compile(r"^-- (name|macro): (\w+)\n", re.MULTILINE)
_COMMENT = re.compile(r"^ *--.*\n", re.MULTILINE)
_MACRO = re.compile(r"\{\{(\w+)\}\}")


class Pieces(NamedTuple):
    """A file, cut at its marks; comments dropped."""

    names: dict[str, str]
    macros: dict[str, str]


def pieces(text: str) -> Pieces:
    """The statements and macros of a text, as they stand there."""
    found = Pieces({}, {})
    cut = _BLOCK.split(text)[1:]
    for kind, name, body in zip(cut[::3], cut[1::3], cut[2::3], strict=True):
        place = found.names if kind == "name" else found.macros
        if name in place:
            raise ValueError(f"{kind} {name!r} is defined twice")
        place[name] = _COMMENT.sub("", body).strip().removesuffix(";")
    return found


def parse(text: str) -> dict[str, str]:
    """The statements of a text that needs no other, macros expanded."""
    return _expanded(pieces(text))


def _expanded(*parts: Pieces) -> dict[str, str]:
    macros = {name: body for part in parts for name, body in part.macros.items()}
    while any("{{" in body for body in macros.values()):
        macros = {name: _expand(body, macros) for name, body in macros.items()}
    names = (item for part in parts for item in part.names.items())
    return {name: _expand(body, macros) if "{{" in body else body for name, body in names}


def _expand(body: str, macros: Mapping[str, str]) -> str:
    return _MACRO.sub(lambda match: macros[match[1]], body)


def read(name: str) -> str:
    """The text of a file in sql/. Not by importlib.resources, whose import takes longer than all
    that `clew list` does with the store."""
    with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:
        return file.read()


def load(dialect: str) -> Mapping[str, str]:
    """All statements for a dialect ("sqlite", "postgres")."""
    shared, own = pieces(read("queries.sql") + read("copy.sql")), pieces(read(f"{dialect}.sql"))
    both = shared.names.keys() & own.names.keys() | shared.macros.keys() & own.macros.keys()
    if both:
        raise ValueError(f"{dialect}.sql redefines {sorted(both)}")
    return MappingProxyType(_expanded(shared, own))
