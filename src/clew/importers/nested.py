"""Messages that hold their answers: a document taken apart without going down into it.

Such a tree is as deep as its conversation is long, deeper than a JSON reader would go.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_LIST = re.compile(rb"\s*:\s*(?=\[)")
_OBJECT, _MESSAGE, _MESSAGES = b"{", b"message", b"messages"


class Nested(NamedTuple):
    """A message's JSON without its children. `above` is the position of the one that holds it in
    the list that `split` gives; 0 is the document itself."""

    above: int
    data: bytes


def split(data: bytes) -> list[Nested]:
    """The document, then its `messages` and their `children`, each after the one that holds it. In
    place of those lists stands 0. What is no JSON gives pieces that are none."""
    return _Splitter(data).run()


class _Splitter:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._found: list[tuple[int, list[bytes]]] = [(0, [])]
        self._into = [0]
        """Positions of the messages that are open."""
        self._above: list[bytes] = []
        """What is open: brackets, and messages and lists of messages by their names."""
        self._start = 0
        """From here on nothing is taken yet."""

    def run(self) -> list[Nested]:
        listed = False
        for match in _TOKEN.finditer(self._data):
            token = match[0]
            if token in (b"{", b"["):
                self._open(token, match.start(), listed)
                listed = False
            elif token in (b"}", b"]"):
                self._close(token, match.end())
            elif listed := self._is_list(token, match.end()):
                self._take(match.end())
                self._take_text(b":0")
        self._take(len(self._data))
        return [Nested(above, b"".join(pieces)) for above, pieces in self._found]

    def _is_list(self, key: bytes, end: int) -> bool:
        """Whether the text is the key of a list of messages."""
        top = self._above[-1] if self._above else b""
        known = (top == _MESSAGE and key == b'"children"') or (
            self._above == [_OBJECT] and key == b'"messages"'
        )
        return known and _LIST.match(self._data, end) is not None

    def _open(self, bracket: bytes, at: int, listed: bool) -> None:
        if listed:
            bracket = _MESSAGES
        elif bracket == _OBJECT and self._above and self._above[-1] == _MESSAGES:
            self._found.append((self._into[-1], []))
            self._into.append(len(self._found) - 1)
            self._start = at
            bracket = _MESSAGE
        self._above.append(bracket)

    def _close(self, bracket: bytes, end: int) -> None:
        top = self._above.pop() if self._above else b""
        if top == _MESSAGE and bracket == b"}":
            self._take(end)
            self._into.pop()
        if top in (_MESSAGE, _MESSAGES):
            self._start = end

    def _take(self, end: int) -> None:
        self._take_text(self._data[self._start : end])
        self._start = end

    def _take_text(self, piece: bytes) -> None:
        self._found[self._into[-1]][1].append(piece)
