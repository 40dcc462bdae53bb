"""A source: a file, a member of a ZIP archive or a folder, read in bounded memory.

Nothing here trusts what it reads: sizes are limited, a line over the limit is passed over without
being held, an archive's member is never written anywhere.
"""

from __future__ import annotations

import io
import lzma
import re
import zipfile
import zlib
from bisect import bisect_left
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple

from clew.errors import InputError, TooLarge
from clew.importers import jsonarray
from clew.importers.foreign import Foreign, foreign_tables, open_foreign
from clew.importers.records import Damaged

LINE = 64 << 20
"""Bytes of one line, or of one element of an array. A longer one is passed over and named."""
DOCUMENT = 128 << 20
"""Bytes of a file that has to be read whole."""
VALUES = 500_000
"""Of one line or element, and four times as many of a document: each costs hundreds of bytes once
decoded."""
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
CHUNK = 1 << 20
MEMBERS = 100_000
"""Files of one archive or folder."""
BOM = b"\xef\xbb\xbf"
UNREADABLE = (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
"""What reading a file or a damaged, locked or oddly packed archive raises beside ClewError (a
RecursionError and a NotImplementedError are RuntimeErrors)."""


def why(error: BaseException) -> str:
    """What an error says; some say nothing."""
    return str(error) or type(error).__name__


@contextmanager
def _names() -> Generator[None, None, None]:
    """A ZIP archive may say that a name is UTF-8 which is none."""
    try:
        yield
    except UnicodeDecodeError:
        raise zipfile.BadZipFile("a name in the archive is not the UTF-8 it should be") from None


def open_archive(path: Path) -> zipfile.ZipFile:
    """A ZIP archive. UNREADABLE."""
    with _names():
        return zipfile.ZipFile(path)


def open_member(archive: zipfile.ZipFile, member: str | zipfile.ZipInfo) -> IO[bytes]:
    """A file in an archive. UNREADABLE."""
    with _names():
        return archive.open(member)


class Piece(NamedTuple):
    """A line of a file, or an element of a JSON array."""

    number: int
    """From 1."""
    data: bytes


TOO_LONG = f"longer than {LINE >> 20} MiB"


def bounded(what: str, number: int, data: bytes) -> Piece | Damaged:
    """A piece, unless decoding it would take more memory than any conversation does."""
    if len(data) > CHUNK and _values(data, VALUES) > VALUES:
        return Damaged(f"{what} {number}", f"more than {VALUES:,} values")
    return Piece(number, data)


class Source:
    """One thing to import. `done` tells how many of its `size` bytes were read."""

    def __init__(self, path: Path, member: str | None = None) -> None:
        self.path, self.member = path, member
        self.is_folder = path.is_dir()
        self.done = 0
        if member is not None:
            with open_archive(path) as archive:
                self.size = archive.getinfo(member).file_size
        else:
            self.size = 0 if self.is_folder else path.stat().st_size

    def __repr__(self) -> str:
        return f"Source({self.id!r})"

    @property
    def id(self) -> str:
        """What names a source that has no id of its own: its absolute path."""
        return str(self.path) if self.member is None else f"{self.path}!{self.member}"

    @property
    def stem(self) -> str:
        """The file's or folder's name without its suffix."""
        return Path(self.member or self.path.name).stem

    @property
    def modified(self) -> int:
        """When the file was last written, microseconds: of messages that bear no time."""
        return self.path.stat().st_mtime_ns // 1000

    # ------------------------------------------------------------------ bytes

    @contextmanager
    def opened(self) -> Generator[BinaryIO, None, None]:
        """The bytes, as a stream."""
        if self.member is None:
            with self.path.open("rb") as stream:
                yield stream
        else:
            with open_archive(self.path) as archive, open_member(archive, self.member) as member:
                yield io.BufferedReader(member)  # pyright: ignore[reportArgumentType]

    def head(self, size: int) -> bytes:
        """The first bytes, without a byte order mark."""
        with self.opened() as stream:
            return stream.read(size).removeprefix(BOM)

    def lines(self) -> Iterator[Piece | Damaged]:
        """The lines, split at \\n only, without line ends and byte order mark; empty ones are left
        out. `done` is then the end of the line."""
        number = 0
        with self.opened() as stream:
            self.done = 0
            while row := stream.readline(LINE + 1):
                number += 1
                self.done += len(row)
                if len(row) > LINE and not row.endswith(b"\n"):
                    self._pass_over(stream)
                    yield Damaged(f"line {number}", TOO_LONG)
                    continue
                data = row.removeprefix(BOM) if number == 1 else row
                if data := data.rstrip(b"\r\n"):
                    yield bounded("line", number, data)

    def _pass_over(self, stream: BinaryIO) -> None:
        while row := stream.readline(CHUNK):
            self.done += len(row)
            if row.endswith(b"\n"):
                return

    def items(self) -> Iterator[Piece | Damaged]:
        """The elements of the JSON array that the file is, one at a time."""
        with self.opened() as stream:
            for number, data in enumerate(jsonarray.items(self._counted(stream), LINE), 1):
                if isinstance(data, str):
                    yield Damaged(f"element {number}", data)
                else:
                    yield bounded("element", number, data)

    def _counted(self, stream: BinaryIO) -> Iterator[bytes]:
        self.done = 0
        while chunk := stream.read(CHUNK):
            if not self.done:
                chunk = chunk.removeprefix(BOM)
            self.done += len(chunk)
            yield chunk

    def document(self) -> bytes:
        """The whole file. TooLarge."""
        if self.size > DOCUMENT:
            raise TooLarge(f"{self.id} (bytes)", self.size, DOCUMENT)
        with self.opened() as stream:
            data = stream.read(DOCUMENT + 1)
        if len(data) > DOCUMENT:  # a ZIP's directory may say less than there is
            raise TooLarge(f"{self.id} (bytes)", len(data), DOCUMENT)
        self.done = len(data)
        if (values := _values(data, 4 * VALUES)) > 4 * VALUES:
            raise TooLarge(f"{self.id} (values)", values, 4 * VALUES)
        return data.removeprefix(BOM)

    # ------------------------------------------------------------------ beside it

    def entries(self) -> frozenset[str]:
        """Of a folder: the names in it."""
        return frozenset(
            entry.name for _, entry in zip(range(MEMBERS), self.path.iterdir(), strict=False)
        )

    def files(self, pattern: str) -> list[Source]:
        """Of a folder: the files that match, symbolic links left out, by name."""
        found = (p for p in self.path.glob(pattern) if p.is_file() and not p.is_symlink())
        return [Source(path) for path in sorted(found)[:MEMBERS]]

    def asset(self, prefix: str, limit: int) -> bytes | None:
        """The bytes of a file that came with this one (in the same archive or folder, or below)
        and whose name begins so; None when there is none, or it is over the limit."""
        if not prefix or "/" in prefix or "\\" in prefix or prefix.startswith("."):
            return None
        try:
            return self._read_beside(prefix, limit)
        except UNREADABLE:
            return None

    def _read_beside(self, prefix: str, limit: int) -> bytes | None:
        names, places = self._beside
        at = bisect_left(names, prefix)
        if at == len(names) or not names[at].startswith(prefix):
            return None
        place = places[at]
        if isinstance(place, Path):
            return place.read_bytes() if place.stat().st_size <= limit else None
        if place.file_size > limit:
            return None
        with open_member(self._archive, place) as member:
            data = member.read(limit + 1)
        return data if len(data) <= limit else None

    @cached_property
    def _archive(self) -> zipfile.ZipFile:
        """The archive, for as long as this source is in use: reading its directory takes longer
        than reading a file."""
        return open_archive(self.path)

    @cached_property
    def _beside(self) -> tuple[list[str], list[Path | zipfile.ZipInfo]]:
        """Names of the files that came with this one, sorted, and where they are."""
        found: list[tuple[str, Path | zipfile.ZipInfo]] = []
        if self.member is not None:
            infos = (info for info in self._archive.infolist() if not info.is_dir())
            found = [(info.filename.rsplit("/", 1)[-1], info) for info in infos]
        else:
            folder = self.path if self.is_folder else self.path.parent
            for _, path in zip(range(MEMBERS), folder.rglob("*"), strict=False):
                if path.is_file() and not path.is_symlink():
                    found.append((path.name, path))
        found.sort(key=lambda each: each[0])
        return [name for name, _ in found], [place for _, place in found]

    # ------------------------------------------------------------------ databases

    def tables(self) -> dict[str, frozenset[str]]:
        """The tables of an SQLite file and their columns."""
        return foreign_tables(self._file())

    @contextmanager
    def database(self) -> Generator[Foreign, None, None]:
        """The SQLite file, read only, as one snapshot."""
        with open_foreign(self._file()) as database:
            yield database
        self.done = self.size

    def _file(self) -> Path:
        if self.member is not None:
            raise InputError(f"{self.id} is a database inside an archive; unpack it first")
        return self.path


def _values(data: bytes, limit: int) -> int:
    """About how many values a JSON text has; commas in texts are none, and are only told apart
    where it matters."""
    commas = data.count(b",")
    return commas if commas <= limit else _STRING.sub(b"", data).count(b",")
