"""The store and the profile that a configuration file names, and nothing else of it: commands that
only read the store do not care for the rest, nor for what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clew.config.keylike import has_key
from clew.config.problems import ConfigError, Fault
from clew.config.reading import Document, toml

PASSWORD = (
    "has a password in it; leave it out, and put it into ~/.pgpass or PGPASSWORD, or the whole URL "
    "into CLEW_STORE"
)


def named(path: Path) -> tuple[str | None, str | None]:
    """Store and profile. ConfigError for a file that is no TOML, and for what is no text."""
    document = toml(path)
    if document is None:
        return None, None
    return _text(document, "store"), _text(document, "profile")


def _text(document: Document, name: str) -> str | None:
    value: Any = document.data.get(name)
    if value is None or (isinstance(value, str) and not has_key(value)):
        return value or None
    text = PASSWORD if isinstance(value, str) else "is no text; put it in quotes"
    raise ConfigError([Fault(document.origin((name,)), name, text)])
