"""Where things are: the store, the profile, the configuration file.

`clew list` asks this module each time it runs, so that the file is parsed only when one of its
lines may name a store or a profile, and what parses it is loaded only then.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

LARGEST = 1024 * 1024
"""Bytes of a configuration file."""
_WORDS = (b"store", b"profile")


def home(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of all that clew keeps: CLEW_HOME, or ~/.clew."""
    given = environ.get("CLEW_HOME")
    return Path(given).expanduser() if given else Path.home() / ".clew"


def config_path(environ: Mapping[str, str] = os.environ) -> Path:
    """The configuration file, whether it is there or not: CLEW_CONFIG, or config.toml in `home`."""
    given = environ.get("CLEW_CONFIG")
    return Path(given).expanduser() if given else home(environ) / "config.toml"


def default_store() -> str:
    """CLEW_STORE (a path or a URL), or `store` of the configuration file, or clew.db in CLEW_HOME,
    or ~/.clew/clew.db. ConfigError for a file that cannot be read."""
    if store := os.environ.get("CLEW_STORE"):
        return store
    return _named()[0] or str(home() / "clew.db")


def default_profile() -> str:
    """The profile that the command line uses: CLEW_PROFILE, or `profile` of the configuration file,
    or "default". ConfigError for a file that cannot be read."""
    return os.environ.get("CLEW_PROFILE") or _named()[1] or "default"


def _named() -> tuple[str | None, str | None]:
    """Store and profile as the file names them."""
    path = config_path()
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None, None
    return _read(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=8)
def _read(path: Path, _mtime: int, size: int) -> tuple[str | None, str | None]:
    """Of a file as it was at that time: a command asks more than once."""
    data = path.read_bytes() if path.is_file() and size <= LARGEST else b"\xff"
    if not _may_name(data):
        return None, None
    plain = plainly_named(data)
    if plain is not None:
        store, profile = plain
    else:
        quick: Any = import_module("clew.config.quick")
        store, profile = quick.named(path)
    return placed(store, path.parent) if store else None, profile or None


def placed(store: str, folder: Path) -> str:
    """A store as a file in this folder names it: a relative path is one beside the file."""
    if "://" in store or "=" in store or store.startswith("~"):
        return store
    return str(folder / store)


def _may_name(data: bytes) -> bool:
    """Whether a line, comments apart, has one of the words, or what may be one."""
    lines = (line for line in data.splitlines() if not line.lstrip().startswith(b"#"))
    return any(b"\\u" in line.lower() or any(w in line for w in _WORDS) for line in lines) or (
        b"\xff" in data
    )


def plainly_named(data: bytes) -> tuple[str | None, str | None] | None:
    """Store and profile of a file whose top has only keys with values on one line, which is what
    people write; None of any other, which is parsed: that takes ten times as long as this."""
    found: dict[str, str] = {}
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        return None
    for line in map(str.strip, lines):
        if line.startswith("["):
            break
        if not line or line.startswith("#"):
            continue
        name, _, value = (part.strip() for part in line.partition("="))
        text = _quoted(value)
        if name in found or not (name.replace("_", "").isalnum() and (text or _is_bare(value))):
            return None
        if name in ("store", "profile"):
            if text is None or "@" in text:  # a URL, maybe with a password
                return None
            found[name] = text
    return found.get("store"), found.get("profile")


def _quoted(value: str) -> str | None:
    """The text of a value that is one in quotes, without escapes; None of any other."""
    quote = value[:1]
    end = value.find(quote, 1) if quote in ('"', "'") else -1
    rest = value[end + 1 :].strip()
    text = value[1:end]
    plain = end > 1 and "\\" not in text and text.isprintable()
    return text if plain and (not rest or rest[0] == "#") else None


def _is_bare(value: str) -> bool:
    return value.replace(".", "").replace("-", "").isalnum()
