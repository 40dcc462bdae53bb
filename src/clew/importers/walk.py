"""What a path holds: files, folders of a format, members of an archive."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

from clew.errors import ClewError, InputError
from clew.importers import clew_jsonl
from clew.importers.format import Format
from clew.importers.probe import Probe, probe, probe_lines
from clew.importers.registry import format_of
from clew.importers.report import NAMED
from clew.importers.source import MEMBERS, UNREADABLE, Source, open_archive, why
from clew.importers.unread import unread_name

Found = tuple[Source, Format | None]
"""A source and its format; None for clew's own, which is no other tool's."""
DEEPEST = 40
"""Levels of folders that are gone down into."""


class Walk:
    """Finds what can be imported below some paths. Counts what it passes over."""

    def __init__(self) -> None:
        self.unknown = 0
        """Files that are of no format."""
        self.passed_over: list[str] = []
        """The first of them."""
        self.named: dict[str, int] = {}
        """Files of formats that are known and not read, by what the tool is called."""
        self.failed: list[tuple[str, str]] = []
        """Files that could not be opened, and why."""

    def below(self, path: Path) -> Iterator[Found]:
        """All sources at a path: itself, or what is in it. In an order in which what others come
        from is first: a folder's files before its folders, by name."""
        if path.is_dir():
            yield from self._folder(path, 0)
        else:
            yield from self._file(path)

    def _folder(self, path: Path, depth: int) -> Iterator[Found]:
        source = Source(path)
        look = self._look(source)
        found = None if look is None else self._format(source, look)
        if found is not None:
            yield source, found
            return
        if depth == DEEPEST:
            return
        try:
            entries = sorted(os.scandir(path), key=lambda entry: entry.name)
        except OSError as error:
            self.failed.append((str(path), why(error)))
            return
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                yield from self._file(Path(entry.path))
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from self._folder(Path(entry.path), depth + 1)

    def _file(self, path: Path) -> Iterator[Found]:
        try:
            if not path.is_file():  # a pipe would be waited for, a device has no end
                self.failed.append((str(path), "this is no file that can be read to its end"))
                return
            if _is_archive(path):
                yield from self._archive(path)
                return
            source = Source(path)
        except OSError as error:
            self.failed.append((str(path), why(error)))
            return
        yield from self._source(source)

    def _archive(self, path: Path) -> Iterator[Found]:
        try:
            with open_archive(path) as archive:
                names = [info.filename for info in archive.infolist() if not info.is_dir()]
        except UNREADABLE as error:
            self.failed.append((str(path), why(error)))
            return
        found = False
        before = self.unknown, len(self.passed_over)
        for name in sorted(names)[:MEMBERS]:
            if name.endswith((".json", ".jsonl", ".traj", ".har")):
                for each in self._source(Source(path, name)):
                    found = True
                    yield each
        if found:  # what an export has beside its conversations is no riddle
            self.unknown = before[0]
            del self.passed_over[before[1] :]
        elif self.unknown == before[0]:
            self._pass_over(str(path))

    def _source(self, source: Source) -> Iterator[Found]:
        look = self._look(source)
        if look is None:
            return
        if clew_jsonl.sniff(look.head):
            yield source, None
            return
        found = self._format(source, look)
        if found is not None:
            yield source, found

    def _look(self, source: Source) -> Probe | None:
        try:
            return probe(source)
        except (ClewError, *UNREADABLE) as error:
            self.failed.append((source.id, why(error)))
            return None

    def _format(self, source: Source, look: Probe) -> Format | None:
        name = unread_name(look)  # first: it may look like a format that is read
        if name is not None:
            self.named[name] = self.named.get(name, 0) + 1
            return None
        found = format_of(look) or self._later(source, look)
        if found is None and not source.is_folder:
            self._pass_over(source.id)
        return found

    def _later(self, source: Source, look: Probe) -> Format | None:
        """By what stands behind a first line that is longer than the first look, or damaged."""
        if look.records or not 0 < len(look.head) <= source.size or b"\n" in look.head[:-1]:
            return None
        try:
            return format_of(probe_lines(source, look.name))
        except UNREADABLE:
            return None

    def _pass_over(self, name: str) -> None:
        self.unknown += 1
        if len(self.passed_over) < NAMED:
            self.passed_over.append(name)


def _is_archive(path: Path) -> bool:
    """By the first two bytes first: the whole answer takes a look at the last 64 KiB."""
    with path.open("rb") as stream:
        begins = stream.read(2) == b"PK"
    return begins and zipfile.is_zipfile(path)


def check_path(path: Path) -> None:
    """Refuse a path that is not there."""
    if not path.exists():
        raise InputError(f"{path} does not exist; give a file, a folder or a ZIP archive")
