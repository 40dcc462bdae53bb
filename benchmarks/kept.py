"""Big stores kept between quick runs, which have no time to make them.

They last as long as the format is the same. `scripts/bench setup` makes them, a full run makes them
anew.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from benchmarks.envs import ROOT, WORK

_FOLDER = WORK / "stores"
_SOURCES = (
    "src/clew/domain/parts.py",
    "src/clew/store/codec.py",
    "src/clew/store/search/words.py",
    "src/clew/store/sql/migrations",
    "src/clew/store/sql/search.sqlite.sql",
    "benchmarks/stores.py",
    "benchmarks/workload.py",
)
"""What decides the bytes in a store."""


def path(name: str) -> Path:
    """Where the store of this name is, or would be."""
    return _FOLDER / _fingerprint() / name / "clew.db"


def has(name: str) -> bool:
    """Whether it is there, whole."""
    return path(name).exists()


def make(name: str, fill: Callable[[Path], None]) -> None:
    """Fill a store aside and put it in its place, so that a killed run leaves no half of one."""
    folder = path(name).parent
    _forget_others(folder.parent)
    scratch = folder.with_name(f"{name}.{os.getpid()}")
    scratch.mkdir(parents=True)
    fill(scratch / "clew.db")
    scratch.rename(folder)


def forget() -> None:
    """Remove them all."""
    shutil.rmtree(_FOLDER, ignore_errors=True)


def _forget_others(current: Path) -> None:
    """Stores of another format, and unfinished ones, are of no use any more."""
    unfinished = current.glob("*.*") if current.exists() else ()
    others = (found for found in _FOLDER.glob("*") if found != current)
    for folder in (*unfinished, *others):
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _fingerprint() -> str:
    digest = hashlib.sha256()
    for source in _SOURCES:
        place = ROOT / source
        for found in sorted(place.rglob("*.sql")) if place.is_dir() else [place]:
            digest.update(found.read_bytes())
    return digest.hexdigest()[:16]
