"""Names of messages as an agent writes them: "12", "[@12]", "12-40", "12,15,20-22", "12+18000".

A place in a long message is its seq, "+" and the number of characters before it: what follows the
end of one answer is asked for with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from clew.errors import InputError

HOW = 'give a seq like 12, a range like "12-40", or several like "12,15,20-22"'
MOST = 500
"""Characters of a ref."""
_LARGEST = 10**12

_DRESS = re.compile(r"recall|messages?|seqs?|[@#\[\](){}\"'`]", re.IGNORECASE)
_TO = re.compile(r"\s*(?:\bto\b|[-–—:…]|\.{2,3})\s*", re.IGNORECASE)
_ITEM = re.compile(r"(\d{1,12})(?:\+(\d{1,12})|-(\d{1,12}|head|end)?)?")


class Span(NamedTuple):
    """The messages first..last; of the first one what follows its first `start` characters."""

    first: int
    last: int
    start: int = 0

    @property
    def open(self) -> bool:
        """Whether it goes to the end, wherever that is."""
        return self.last == _LARGEST


def parse(ref: int | str) -> list[Span]:
    """The spans that a ref names: in ascending order, without overlaps. Raises InputError."""
    if isinstance(ref, bool) or not isinstance(ref, int | str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"ref is {ref!r}; {HOW}")
    if isinstance(ref, int) and not 1 <= ref < _LARGEST:
        raise InputError(f"ref is a number that no message has; {HOW}")
    text = str(ref)
    if len(text) > MOST:
        raise InputError(f"ref has {len(text):,} characters, the limit is {MOST:,}; {HOW}")
    bare = _TO.sub("-", _DRESS.sub(" ", text))
    items = [item for item in re.split(r"[,;\s]+", bare) if item]
    if not items:
        raise InputError(f"ref is {text!r}; {HOW}")
    return _joined(_span(item, text) for item in items)


def written(spans: Iterable[Span]) -> str:
    """The ref that names these spans."""
    return ",".join(_written(span) for span in spans)


def _span(item: str, ref: str) -> Span:
    match = _ITEM.fullmatch(item)
    if match is None:
        raise InputError(f"ref is {ref!r}, of which {item!r} names no message; {HOW}")
    first = int(match[1])
    if match[2] is not None:
        return Span(first, first, int(match[2]))
    if match[0] == match[1]:
        return Span(first, first)
    last = int(match[3]) if match[3] and match[3].isdecimal() else _LARGEST
    return Span(min(first, last), max(first, last))


def _joined(spans: Iterable[Span]) -> list[Span]:
    found: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.first, span.start)):
        before = found[-1] if found else None
        if before is not None and span.first <= before.last + (span.start == 0):
            found[-1] = before._replace(last=max(before.last, span.last))
        else:
            found.append(span)
    return found


def _written(span: Span) -> str:
    if not span.start:
        return _range(span.first, span.last)
    rest = f",{_range(span.first + 1, span.last)}" if span.last > span.first else ""
    return f"{span.first}+{span.start}{rest}"


def _range(first: int, last: int) -> str:
    if last == _LARGEST:
        return f"{first}-"
    return str(first) if first == last else f"{first}-{last}"
