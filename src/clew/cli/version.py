"""Which version of what this is."""

from __future__ import annotations

import apsw

import clew
from clew.store import migrate


def text() -> str:
    schema = migrate.known()[-1].number
    return f"clew {clew.__version__} (SQLite {apsw.sqlite_lib_version()}, schema {schema})"
