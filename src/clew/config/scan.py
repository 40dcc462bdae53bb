"""On which line of a TOML or JSON text each key stands.

Python's readers of both give values without places. This one reads the places without the values,
of a text that a reader has accepted; one that it does not understand has fewer places, no error.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right

Key = tuple[str | int, ...]
"""The way to a value: names of tables and keys, and numbers in lists, from 0."""

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})|' r"'''.*?'''(?:'{0,2})|"
    r'"(?:\\.|[^"\\\n])*"|' r"'[^'\n]*'", re.DOTALL,
)  # fmt: skip
_WORD = re.compile(r"[^\s,=:.\[\]{}#\"']+")
_SCALAR = re.compile(r"[^,\]}#\n]+")


class _Lost(Exception):
    """Something else stands here than expected."""


def lines_of(text: str) -> dict[Key, int]:
    """The line, from 1, of each key of a TOML document or of a JSON object."""
    scanner = _Scanner(text)
    try:
        scanner.document()
    except (_Lost, RecursionError):
        pass
    return scanner.found


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.found: dict[Key, int] = {}
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._counts: dict[Key, int] = {}

    def document(self) -> None:
        self._skip(_BLANK)
        if self._is("{"):  # JSON
            self._value(())
            return
        table: Key = ()
        while self.at < len(self.text):
            table = self._header() if self._is("[") else self._pair(table)
            self._skip(_BLANK)

    def _header(self) -> Key:
        """[table] or [[table]]: the way to what follows."""
        start, many = self.at, self._is("[[")
        self.at += 2 if many else 1
        name = self._names()
        self.at = self.text.find("\n", self.at) % (len(self.text) + 1)
        if many:
            self._counts[name] = number = self._counts.get(name, -1) + 1
            self._note(name, start)
            name = (*name, number)
        self._note(name, start)
        return name

    def _pair(self, table: Key) -> Key:
        """A key, = or :, and its value. Gives the table back."""
        start, name = self.at, self._names()
        for size in range(1, len(name) + 1):
            self._note((*table, *name[:size]), start)
        self._skip(_BLANK)
        if self.text[self.at : self.at + 1] not in ("=", ":"):
            raise _Lost
        self.at += 1
        self._value((*table, *name))
        return table

    def _names(self) -> Key:
        """A dotted key."""
        names: list[str] = []
        while True:
            self._skip(_SPACE)
            found = _STRING.match(self.text, self.at) or _WORD.match(self.text, self.at)
            if found is None:
                raise _Lost
            self.at = found.end()
            names.append(_unquoted(found[0]))
            self._skip(_SPACE)
            if not self._is("."):
                return tuple(names)
            self.at += 1

    def _value(self, key: Key) -> None:
        self._skip(_BLANK)
        if self._is("["):
            self._items(key, "]")
        elif self._is("{"):
            self._items(key, "}")
        elif found := _STRING.match(self.text, self.at) or _SCALAR.match(self.text, self.at):
            self.at = found.end()
        else:
            raise _Lost

    def _items(self, key: Key, end: str) -> None:
        """Of a list or an inline table."""
        self.at += 1
        number = 0
        while not self._ends(end):
            if end == "]":
                self._note((*key, number), self.at)
                self._value((*key, number))
                number += 1
            else:
                self._pair(key)
            self._skip(_BLANK)
            if self._is(","):
                self.at += 1

    def _ends(self, end: str) -> bool:
        self._skip(_BLANK)
        if self.at >= len(self.text):
            raise _Lost
        found = self._is(end)
        self.at += found
        return found

    def _is(self, sign: str) -> bool:
        return self.text.startswith(sign, self.at)

    def _skip(self, what: re.Pattern[str]) -> None:
        found = what.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def _note(self, key: Key, at: int) -> None:
        self.found.setdefault(key, bisect_right(self._breaks, at) + 1)


def _unquoted(name: str) -> str:
    if name[0] == "'":
        return name[1:-1]
    if name[0] != '"':
        return name
    try:
        return str(json.loads(re.sub(r"\\U0000(\w{4})", r"\\u\1", name)))
    except ValueError:
        return name[1:-1]
