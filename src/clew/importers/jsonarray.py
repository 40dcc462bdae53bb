"""The elements of a JSON array, one at a time, whatever the size of the array.

Only brackets and strings are looked at; each element is decoded by whoever asked for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_MARK = re.compile(rb'["\\{}\[\],]')
_QUOTE = re.compile(rb'["\\]')
_INSIDE = re.compile(rb'(?:[^"\\{}\[\]]++|"[^"\\]*+"|\[\]|\{\})*+')
"""What says nothing within an element: passed over at once, without going back."""


def items(chunks: Iterable[bytes], limit: int) -> Iterator[bytes | str]:
    """The bytes of each element; a text that says why instead of one that is over the limit. At
    the end of a file that was cut off, a text too."""
    return _Splitter(limit).run(chunks)


class _Splitter:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._depth = 0
        self._quoted = False
        self._escaped = False
        self._held = bytearray()
        self._over = False

    def run(self, chunks: Iterable[bytes]) -> Iterator[bytes | str]:
        for chunk in chunks:
            yield from self._feed(chunk)
        if self._depth:
            yield "the file ends in the middle of an element or array"

    def _feed(self, chunk: bytes) -> Iterator[bytes | str]:
        at = start = 0
        while at < len(chunk):
            if self._escaped:  # the character behind a backslash says nothing
                self._escaped, at = False, at + 1
                continue
            found = self._next(chunk, at)
            if found is None:
                break
            at = found.end()
            sign = found[0]
            if sign == b"\\":
                self._escaped = self._quoted
            elif sign == b'"':
                self._quoted = not self._quoted
            elif sign in (b"[", b"{"):
                self._depth += 1
                if self._depth == 1:
                    start = at
            elif sign == b",":
                if self._depth == 1:
                    yield from self._end(chunk[start : at - 1])
                    start = at
            else:
                self._depth -= 1
                if self._depth == 0:
                    yield from self._end(chunk[start : at - 1])
                    return
        if self._depth:
            self._hold(chunk[start:])

    def _next(self, chunk: bytes, at: int) -> re.Match[bytes] | None:
        """The next sign that says anything."""
        if self._quoted:
            return _QUOTE.search(chunk, at)
        inside = _INSIDE.match(chunk, at) if self._depth > 1 else None
        return _MARK.search(chunk, at if inside is None else inside.end())

    def _hold(self, data: bytes) -> None:
        if self._over or len(self._held) + len(data) > self._limit:
            self._over = True
            self._held.clear()
        else:
            self._held += data

    def _end(self, data: bytes) -> Iterator[bytes | str]:
        self._hold(data)
        element, over = bytes(self._held).strip(), self._over
        self._held.clear()
        self._over = False
        if over:
            yield f"larger than {self._limit >> 20} MiB"
        elif element:
            yield element
