"""Takes Markdown apart as it comes: a block that is finished is given once, and never again.

Only lines that are whole decide, so that it does not matter in which pieces the text comes. What
is not finished is the `tail`, the only thing that a screen draws again. Code, lists and whatever
else may be long is given in parts, so that no part is read more than a few times.

Pure; the Markdown itself is read by what paints a block (painting.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Kind = Literal["text", "code", "item", "table", "quote", "rule"]

LINES = 60
"""Of code that are given together."""
LONGEST = 400
"""Lines of any other block; a longer one is given in parts."""
TAIL = 2000
"""Characters of the tail that are shown, at most."""

_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})\s*(.*)")
_ITEM = re.compile(r" {0,1}(?:[-*+]|(\d{1,9})[.)])(?:\s|$)")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_DELIMITERS = re.compile(r" {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")


class Block(NamedTuple):
    """A piece of Markdown that can be painted by itself."""

    kind: Kind
    text: str
    """As written; of code what stands between the fences."""
    lang: str = ""
    apart: bool = True
    """A blank line stands before it."""
    first: bool = True
    """Of code: the opening fence belongs to it."""
    last: bool = True
    """Of code: the closing fence belongs to it."""


class Splitter:
    """One text."""

    def __init__(self) -> None:
        self._partial: list[str] = []
        self._kind: Kind | None = None
        self._lines: list[str] = []
        self._blanks = 0
        self._fence = ""
        self._inner = ""
        self._lang = ""
        self._first = True
        self._before: Kind | None = None
        self._gap = False

    def feed(self, text: str) -> Iterator[Block]:
        """Take in a piece; gives the blocks that it finishes. Use up what it gives."""
        if "\n" not in text:
            self._partial.append(text)
            return
        head, *lines, rest = text.split("\n")
        yield from self._line("".join((*self._partial, head)))
        for line in lines:
            yield from self._line(line)
        self._partial = [rest] if rest else []

    def finish(self) -> Iterator[Block]:
        """The text is whole: gives what is left."""
        if line := "".join(self._partial):
            self._partial = []
            yield from self._line(line)
        yield from self._end()

    @property
    def tail(self) -> Block | None:
        """What is not finished; only the end of it when it is long."""
        rest = "".join(self._partial[-TAIL:])[-TAIL:]
        if self._kind is None:
            return Block("text", rest, apart=self._is_apart("text")) if rest.strip() else None
        kept: list[str] = []
        room = TAIL - len(rest)
        for line in reversed(self._lines):
            room -= len(line) + 1
            if room < 0:
                break
            kept.append(line)
        lines = [*reversed(kept), *[""] * self._blanks, *([rest] if rest else [])]
        return self._block(self._kind, "\n".join(lines), last=False)

    def _line(self, line: str) -> Iterator[Block]:
        line = line.removesuffix("\r")
        if self._kind == "code":
            yield from self._code(line)
        elif not line.strip():
            yield from self._blank()
        elif self._goes_on(line):
            yield from self._more(line)
        else:
            yield from self._begin(line)

    def _code(self, line: str) -> Iterator[Block]:
        closing = line.strip()
        if closing.startswith(self._fence) and not closing.strip(self._fence[0]):
            yield from self._end()
            return
        self._lines.append(line)
        if len(self._lines) >= LINES:
            yield self._block("code", "\n".join(self._lines), last=False)
            self._lines, self._first = [], False

    def _blank(self) -> Iterator[Block]:
        if self._kind == "item":
            self._blanks += 1
            return
        if self._kind is not None:
            yield from self._end()
        self._gap = True

    def _goes_on(self, line: str) -> bool:
        """Whether a line that is not blank belongs to the block that is open."""
        if self._kind == "item":
            return bool(self._inner) or self._in_item(line)
        if self._kind is None or _FENCE.match(line) or _HEADING.match(line):
            return False
        if self._kind == "text" and _SETEXT.match(line):
            return True
        if _RULE.match(line) or (line.lstrip().startswith(">") and self._kind != "quote"):
            return False
        item = _ITEM.match(line)
        return item is None or item[1] not in (None, "1")

    def _in_item(self, line: str) -> bool:
        indented = line.startswith(("  ", "\t"))
        if self._blanks or indented:
            return indented
        return not any(rule.match(line) for rule in (_ITEM, _FENCE, _HEADING, _RULE))

    def _more(self, line: str) -> Iterator[Block]:
        if self._kind == "item":
            self._lines += [""] * self._blanks
            self._blanks = 0
            self._watch_fence(line.strip())
        elif self._kind == "text" and self._heads_a_table(line):
            self._kind = "table"
        self._lines.append(line)
        if len(self._lines) >= LONGEST:
            yield from self._end()

    def _heads_a_table(self, line: str) -> bool:
        return len(self._lines) == 1 and "|" in self._lines[0] and bool(_DELIMITERS.match(line))

    def _watch_fence(self, line: str) -> None:
        """Code in an item of a list: what looks like the next item in it is none."""
        if self._inner:
            if line.startswith(self._inner) and not line.strip(self._inner[0]):
                self._inner = ""
        elif found := _FENCE.match(line):
            self._inner = found[1]

    def _begin(self, line: str) -> Iterator[Block]:
        yield from self._end()
        if found := _FENCE.match(line):
            self._kind, self._fence = "code", found[1]
            self._lang, self._first = (found[2].split() or [""])[0], True
            return
        self._lines = [line]
        if _RULE.match(line):
            self._kind = "rule"
        elif found := _ITEM.match(line):
            self._kind = "item"
            self._watch_fence(line[found.end() :].strip())
        else:
            self._kind = "quote" if line.lstrip().startswith(">") else "text"
        if self._kind == "rule" or _HEADING.match(line):
            yield from self._end()

    def _end(self) -> Iterator[Block]:
        if self._kind is not None:
            kind, blanks = self._kind, self._blanks
            block = self._block(kind, "\n".join(self._lines))
            self._kind, self._lines, self._inner = None, [], ""
            self._before, self._gap, self._blanks = kind, blanks > 0, 0
            yield block

    def _block(self, kind: Kind, text: str, last: bool = True) -> Block:
        first = kind != "code" or self._first
        lang = self._lang if kind == "code" else ""
        return Block(kind, text, lang, first and self._is_apart(kind), first, last)

    def _is_apart(self, kind: Kind) -> bool:
        """Blocks stand apart; items of a list only where they were written so."""
        if self._before is None:
            return False
        return self._gap or not self._before == kind == "item"
