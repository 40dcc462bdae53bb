"""Counting the tokens of texts, offline.

Exact for the encodings that quicktok has; the count that is stored with a message is always that
of o200k, the UNIT. Special tokens are no such here: a text that holds `<|endoftext|>` is counted as
the letters that it is. What is no text (images, files) is not counted here: it costs what the
model makes of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, cast

import quicktok  # pyright: ignore[reportMissingTypeStubs]

from clew.context.shown import seen_parts
from clew.context.unknowns import opened
from clew.domain.parts import Parts, ToolResult, Unknown, searchable

UNIT = "o200k_base"

WHOLE = 1 << 20
"""Characters of text that are counted exactly; a longer one is sampled."""
SAMPLES = 16
_SAMPLE = WHOLE // SAMPLES


class _Encoding(Protocol):
    """What is used of quicktok, which has no types."""

    def count(self, text: str, /) -> int: ...


class _Weights(NamedTuple):
    """Tokens per character of a class, the last five by what they take in UTF-8: two bytes (Latin
    letters with accents; Greek, Cyrillic, Hebrew, Arabic), three (Indian scripts and Thai; Chinese,
    Japanese, Korean), four."""

    lower: float
    upper: float
    digit: float
    mark: float
    line: float
    accent: float
    greek: float
    indic: float
    wide: float
    rare: float = 2.0


_WEIGHTS = {
    UNIT: _Weights(0.21, 0.96, 0.74, 0.43, 1.43, 1.17, 0.31, 0.39, 0.78),
    "cl100k_base": _Weights(0.23, 1.00, 0.74, 0.38, 1.00, 2.09, 0.58, 1.08, 1.15),
    "llama3": _Weights(0.24, 0.99, 0.73, 0.38, 1.09, 1.38, 0.35, 0.57, 0.80),
    "qwen3": _Weights(0.22, 0.90, 1.23, 0.42, 1.32, 1.70, 0.40, 0.68, 0.69),
}
"""Fitted by least squares of the relative error over English, code, JSON, logs, hexadecimal,
base64, and prose in thirteen languages. White space within a line is part of the word behind it."""

_CLASSES = b"aA0.\nlgice"
"""One byte for each class, in the order of the weights."""
_FOLLOWING = bytes(range(0x80, 0xC0))


def _class_of(byte: int) -> bytes:
    for least, name in ((0xF0, b"e"), (0xE2, b"c"), (0xE0, b"i"), (0xCC, b"g"), (0x80, b"l")):
        if byte >= least:
            return name
    char = chr(byte)
    if char.isalpha():
        return b"a" if char.islower() else b"A"
    return b"0" if char.isdigit() else b"\n" if char == "\n" else b" " if char.isspace() else b"."


_TABLE = b"".join(map(_class_of, range(256)))
_encodings: dict[str, _Encoding] = {}


def loaded() -> bool:
    """Whether counting in the unit is free of its start: reading the tables takes 0.6 s."""
    return UNIT in _encodings


def _encoding(name: str) -> _Encoding:
    if name not in _encodings:
        _encodings[name] = cast(_Encoding, quicktok.get_encoding(name))  # pyright: ignore[reportUnknownMemberType]
    return _encodings[name]


def count_text(text: str, encoding: str = UNIT) -> int:
    """Tokens of a text: exact up to WHOLE characters.

    A longer one is sampled in evenly spread pieces, and what the pieces say about the estimate is
    taken to hold for the whole of it. A text that changes its kind on the way (prose, then a dump)
    is met by both: its beginning alone would say nothing about its end.
    """
    if len(text) <= WHOLE:
        return _exact(text, encoding)
    step = (len(text) - _SAMPLE) / (SAMPLES - 1)
    starts = [int(step * at) for at in range(SAMPLES)]
    sample = [text[start : start + _SAMPLE] for start in starts]
    counted = sum(_exact(piece, encoding) for piece in sample)
    estimated = sum(estimate_text(piece, encoding) for piece in sample)
    return max(counted, counted * estimate_text(text, encoding) // max(1, estimated))


def _exact(text: str, encoding: str) -> int:
    try:
        return _encoding(encoding).count(text)
    except TypeError:  # lone surrogates
        return _encoding(encoding).count(text.encode("utf-8", "replace").decode())


def estimate_text(text: str, encoding: str = UNIT) -> int:
    """About the tokens of a text, from how many characters of which class it has.

    Needs no tables, and 10 ms per megabyte. Characters divided by four would be a third too low for
    JSON, half for hexadecimal and two thirds for Chinese.
    """
    classes = text.encode("utf-8", "surrogatepass").translate(_TABLE, _FOLLOWING)
    weighted = zip(_WEIGHTS[encoding], _CLASSES, strict=True)
    return round(sum(weight * classes.count(kind) for weight, kind in weighted))


def count_parts(parts: Parts, encoding: str = UNIT) -> int:
    """Tokens of what a message says: text, thinking, calls and results, and pieces of kinds that
    clew does not know as JSON, without the images and files in them. Of a result what is shown."""
    parts = seen_parts(parts)
    total = 0
    for text in searchable(parts):
        total += count_text(text, encoding)
    for text in _unknown(parts):
        total += count_text(text, encoding)
    return total


def _unknown(parts: Parts) -> Iterator[str]:
    for part in parts:
        match part:
            case Unknown(value=value):
                yield opened(value).text
            case ToolResult(content=tuple(content)):
                yield from _unknown(content)
            case _:
                pass
