"""A file that grows while it is read: its lines, and a pause at its end for as long as it is there.

A reader of a format that `follows` holds its state between two lines. So it is enough to let it
wait: `lines` gives `Paused`, which every reader passes on, and goes on when it is asked again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from clew.importers.decode import decode
from clew.importers.records import Damaged, Paused
from clew.importers.source import BOM, LINE, TOO_LONG, Piece, Source, bounded

_TAIL = 256
"""Bytes before the place to read on that have to be what they were."""
_WAITING = Paused("", "")


class FollowedSource(Source):
    """A file of lines. A last line without line end that is no JSON value yet is left for later.

    `stays`: to pause at the end instead of ending. `is_lost`: the file is another one by now, or
    shorter, or gone, and nothing more comes; it has to be read as a new one.
    """

    def __init__(self, path: Path, stays: bool) -> None:
        super().__init__(path)
        self._stays = stays
        self.is_lost = False

    def lines(self) -> Iterator[Piece | Damaged]:
        """As of any source; see the class."""
        reading = _Reading()
        while True:
            yield from self._new(reading)
            if not self._stays:
                return
            yield _WAITING

    def _new(self, reading: _Reading) -> Iterator[Piece | Damaged]:
        """The lines that are there, from where the reading is."""
        try:
            with self.path.open("rb") as stream:
                self.is_lost = not reading.goes_on(stream)
                while not self.is_lost and (row := stream.readline(LINE + 1)):
                    piece = reading.take(row)
                    if piece is None:
                        return
                    self.done = reading.at
                    if piece.data if isinstance(piece, Piece) else piece.reason:
                        yield piece
        except OSError:
            if not self._stays:
                raise
            self.is_lost = True


class _Reading:
    """How far a file was read."""

    def __init__(self) -> None:
        self.at = 0
        """Offset of the first byte that was not taken."""
        self._number = 0
        self._is_inside = False
        """Whether the line that was taken last has not ended yet."""
        self._passing = False
        """Whether that line is too long and is passed over."""
        self._file: tuple[int, int] | None = None
        self._tail = b""

    def goes_on(self, stream: BinaryIO) -> bool:
        """Whether this is the file that was read so far; then the stream is where to read on."""
        found = os.fstat(stream.fileno())
        file = (found.st_dev, found.st_ino)
        if self._file is None:
            self._file = file
        if file != self._file or found.st_size < self.at:
            return False
        stream.seek(self.at - len(self._tail))
        return stream.read(len(self._tail)) == self._tail

    def take(self, row: bytes) -> Piece | Damaged | None:
        """What a row of the file is: empty where there is nothing to say, None when it is left for
        later."""
        has_ended = row.endswith(b"\n")
        is_long = self._passing or (len(row) > LINE and not has_ended)
        if not (has_ended or is_long or _is_whole(row)):
            return None
        is_rest, told = self._is_inside, self._passing
        self.at += len(row)
        self._tail = (self._tail + row[-_TAIL:])[-_TAIL:]
        self._is_inside, self._passing = not has_ended, is_long and not has_ended
        if not is_rest:
            self._number += 1
        if is_long:
            reason = "" if told else TOO_LONG
            return Damaged(f"line {self._number}", reason)
        first = self._number == 1 and not is_rest
        data = (row.removeprefix(BOM) if first else row).rstrip(b"\r\n")
        return bounded("line", self._number, data)


def _is_whole(row: bytes) -> bool:
    """Whether a row without line end is a JSON object, which more text cannot make another one."""
    text = row.removeprefix(BOM).strip(b" \t\r\0")
    if text[:1] != b"{" or text[-1:] != b"}":
        return False
    try:
        return isinstance(decode(text), dict)
    except ValueError:
        return False
