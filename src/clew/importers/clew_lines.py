"""Lines of a stream, split at line feeds only, none of them longer than memory allows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

LONGEST = 96 << 20
"""Bytes of a line. The longest that an export writes holds the largest image, in base64."""
_STEP = 1 << 20


class Numbered(NamedTuple):
    """A line without its line end; None when it is longer than LONGEST. `size`: bytes of the
    stream; `whole`: it had a line end."""

    number: int
    data: bytes | None
    size: int
    whole: bool


def numbered(stream: BinaryIO, longest: int = LONGEST) -> Iterator[Numbered]:
    """The lines of a stream, from number 1 on; empty ones too."""
    number = 0
    step = min(_STEP, longest + 1)
    while line := stream.readline(step):
        number += 1
        if line.endswith(b"\n") or len(line) < step:
            yield _line(number, line)
        else:
            yield _long(number, line, stream, step, longest)


def _line(number: int, line: bytes) -> Numbered:
    whole = line.endswith(b"\n")
    return Numbered(number, line[:-1] if whole else line, len(line), whole)


def _long(number: int, begun: bytes, stream: BinaryIO, step: int, longest: int) -> Numbered:
    """A line of several pieces. What is too long is read and not kept."""
    kept, size, piece = bytearray(begun), len(begun), begun
    while not piece.endswith(b"\n") and (piece := stream.readline(step)):
        size += len(piece)
        if size > longest + 1:
            kept.clear()
        else:
            kept += piece
    whole = piece.endswith(b"\n")
    if size - whole > longest:
        return Numbered(number, None, size, whole)
    return Numbered(number, bytes(kept[:-1] if whole else kept), size, whole)
