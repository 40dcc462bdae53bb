"""What the files below some paths looked like when they were last looked at."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from clew.errors import ClewError
from clew.importers.probe import probe
from clew.importers.registry import format_of
from clew.importers.source import Source
from clew.importers.walk import DEEPEST

_WAL = "-wal"
_ASIDE = ("-shm", "-journal")
"""Files beside a database that say nothing of their own."""


class Sight(NamedTuple):
    """What tells a file from what it was before."""

    file: int
    size: int
    at: int


class Sightings:
    """Tells which sources have to be read for a change: a file itself, the database that a -wal
    belongs to, or the folder that is one source."""

    def __init__(self, roots: Sequence[Path], wanted: Callable[[Path], bool] | None = None) -> None:
        beside = [root.with_name(root.name + _WAL) for root in roots]  # of those that are databases
        self._roots, self._wanted = (*roots, *beside), wanted
        self._seen: dict[Path, Sight] = {}
        self._folders: set[Path] = set()
        """Folders that are one source."""
        self._others: dict[Path, int] = {}
        """Folders that are none, and when they last changed."""

    def is_below(self, path: Path) -> bool:
        """Whether this path is one of those watched, or in one."""
        return any(path == root or path.is_relative_to(root) for root in self._roots)

    def sweep(self) -> set[Path]:
        """Look at all files; gives the sources to be read for what has changed."""
        there: set[Path] = set()
        changed: set[Path] = set()
        for root in self._roots:
            for path in _files(root, 0):
                there.add(path)
                changed |= self._look(path)
        for path in self._seen.keys() - there:
            changed |= self._look(path)
        return changed

    def look(self, path: Path) -> set[Path]:
        """As `sweep`, of one path and what is below it."""
        if not path.is_dir() or path.is_symlink():
            return self._look(path)
        return {source for each in _files(path, 0) for source in self._look(each)}

    def _look(self, path: Path) -> set[Path]:
        if path.name.endswith(_ASIDE) or not (self._wanted is None or self._wanted(path)):
            return set()
        sight, before = self._sight(path), self._seen.get(path)
        if sight == before:
            return set()
        if sight is None:
            self._seen.pop(path, None)
        else:
            self._seen[path] = sight
        return {self._source_of(path, is_new=before is None)}

    def _sight(self, path: Path) -> Sight | None:
        """None for what is not there. That is also an empty -wal, which reading alone may make,
        what is no file (a pipe would be waited for), and a link that nobody named."""
        try:
            found = path.stat() if path in self._roots else path.lstat()
        except OSError:
            return None
        if not stat.S_ISREG(found.st_mode) or (not found.st_size and path.name.endswith(_WAL)):
            return None
        return Sight(found.st_ino, found.st_size, found.st_mtime_ns)

    def _source_of(self, path: Path, is_new: bool) -> Path:
        inside = [path.parent, *path.parent.parents]
        for folder in inside:
            if folder in self._folders:
                return folder
        if is_new:
            for folder in reversed([folder for folder in inside if self.is_below(folder)]):
                if self._is_source(folder):
                    self._folders.add(folder)
                    return folder
        return path.with_name(path.name.removesuffix(_WAL))

    def _is_source(self, folder: Path) -> bool:
        try:
            at = folder.stat().st_mtime_ns
            if self._others.get(folder) == at:
                return False
            found = format_of(probe(Source(folder)))
        except (OSError, ClewError):
            return False
        if found is None:
            self._others[folder] = at
        return found is not None


def _files(path: Path, depth: int) -> Iterator[Path]:
    """All files at a path, symbolic links left out."""
    try:
        if not path.is_dir():
            yield path
            return
        entries = list(os.scandir(path))
    except OSError:
        return
    for entry in entries:
        if entry.is_file(follow_symlinks=False):
            yield Path(entry.path)
        elif entry.is_dir(follow_symlinks=False) and depth < DEEPEST:
            yield from _files(Path(entry.path), depth + 1)
