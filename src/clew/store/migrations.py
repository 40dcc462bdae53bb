"""The steps from one schema to the next, as files of this code.

sql/migrations/NNNN_{pre,post}_name.<dialect>.sql, numbered without gaps, each with a twin for every
dialect (which may be a comment that says why nothing is needed). A `pre` file is harmless to code
that does not know it: it adds. A `post` file takes away what older code needs; the newest one
applied is the oldest code that may still write (min_writer_version).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple

from clew.errors import StoreMoved

SECONDS = 600.0
"""That bringing a store up to date may take at the start of a process (`startup.report`)."""

_FOLDER = os.path.join(os.path.dirname(__file__), "sql", "migrations")
_NAME = re.compile(r"(\d{4})_(pre|post)_\w+\.(\w+)\.sql")


class Migration(NamedTuple):
    """One file of the folder."""

    number: int
    breaks: bool
    """A `post` file: code that does not know it may not write any more."""
    name: str
    read: Callable[[], str]


Progress = Callable[[int, int, str], None]
"""Told before each step that is applied: which one it is, of how many, and its name."""


class Meta(NamedTuple):
    """What a store says of itself."""

    store_id: str
    stamp: str
    """Changes when the store is restored or copied into another life."""
    unfinished: bool = False
    """A copy that did not come to its end: it is opened by who copies only (engines.py)."""


def meta_from(rows: Mapping[str, str]) -> Meta:
    """The store's record from its `meta`. StoreMoved: it has gone to another place."""
    if "moved_to" in rows:
        raise StoreMoved(rows["moved_to"])
    return Meta(rows["store_id"], rows["stamp"], is_unfinished(rows))


def is_unfinished(rows: Mapping[str, str]) -> bool:
    """Whether a store is a copy that lacks some of its source (store/copy/target.py)."""
    return "copy_of" in rows and "copy_digest" not in rows


@cache
def known(dialect: str) -> Sequence[Migration]:
    """The migrations of this code for "sqlite" or "postgres", oldest first."""
    found: list[Migration] = []
    for name in os.listdir(_FOLDER):
        match = _NAME.fullmatch(name)
        if match and match[3] == dialect:
            found.append(Migration(int(match[1]), match[2] == "post", name, partial(_read, name)))
    return sorted(found)


def floor(steps: Sequence[Migration]) -> int:
    """The oldest schema whose code may still write after these steps."""
    return max([step.number for step in steps if step.breaks], default=1)


def missing(steps: Sequence[Migration], version: int) -> Sequence[Migration]:
    """The steps that a store of this schema has not seen."""
    return [step for step in steps if step.number > version]


def _read(name: str) -> str:
    with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:
        return file.read()
