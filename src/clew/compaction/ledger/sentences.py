"""Prose into sentences, and sentences into clauses that can hold or fall by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

MOST_TEXT = 12_000
"""Characters of one message that are read as prose: this many from its start, and a third of it
from its end. What is longer is pasted, and stays in the log."""
MOST_SENTENCE = 320
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.M)
_END = re.compile(r"(?<=[.!?。！？])[\"')\]]?\s+(?=[^\sa-z])")
_INFORMAL_END = re.compile(r"(?<=[a-z\d)]{2}[.!?])\s+(?=[^\s])")
_BULLET = re.compile(r"^(?:[-*+•>]+|#{1,6}|\d{1,3}[.)])\s+(?:\[[ xX]?\]\s+)?")
_LABEL = re.compile(r"^(?=[A-Z][A-Z _/-]{2,30}:\s)(?!TODO|FIXME)[A-Z][A-Z _/-]*:\s+(?=\S)")
_SHORT = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|mr|mrs|ms|dr|st)\.)$", re.I)
_CLAUSE = re.compile(
    r"(?:[;,]?\s+and\s+(?=(?:the|our|my|your|use|keep|make|stick|never|always|do not|don't)\b)|"
    r";\s+|,\s+but\s+|\s+(?=with no\s))",
    re.I,
)
_WORD = re.compile(r"[^\W_]")
_PIECE = re.compile(
    r"(?<=[,;:.!?)])\s+|"
    r"\s+(?=(?:and|but|or|unless|except|because|so that|then|instead of|rather than|with|for)\s)"
)
_BINDS = re.compile(
    r"\b(?:not?|never|none|nor|without|except|unless|only|must|always|avoid|cannot|forbid\w*|"
    r"instead)\b|n[\'’]t\b",
    re.I,
)
_EXACT = re.compile(r"\d|[`\"]|\w/\w|\w\.[a-z]\w{0,6}\b|\w_\w")


class Sentence(NamedTuple):
    text: str
    label: str
    """A heading in capitals that stood before it ("NOTE", "IMPORTANT"), taken off; or ""."""
    paragraph: int


def prose(text: str) -> str:
    """The part of a text that is read: without code blocks, and not without end."""
    if len(text) > MOST_TEXT + MOST_TEXT // 3:
        text = text[:MOST_TEXT] + "\n" + text[-MOST_TEXT // 3 :]
    if "```" not in text and "~~~" not in text:
        return text
    pieces = _FENCE.split(text)
    return "\n".join(piece.partition("\n")[2] if i else piece for i, piece in enumerate(pieces)
                     if i % 2 == 0)  # fmt: skip


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences of a text. Lines end sentences; so does a full stop before a capital."""
    for number, raw in enumerate(prose(text).splitlines()):
        line = _BULLET.sub("", raw.strip(), count=1)
        if not _WORD.search(line):
            continue
        label = ""
        if match := _LABEL.match(line):
            label, line = match[0].rstrip(": "), line[match.end() :]
        for piece in _split(line):
            yield Sentence(clip(piece, MOST_SENTENCE), label, number)


def _split(line: str) -> list[str]:
    if len(line) > 4 * MOST_SENTENCE and ". " not in line[: 4 * MOST_SENTENCE]:
        return [line]
    out: list[str] = []
    ends = _INFORMAL_END if line[0].islower() else _END
    for piece in ends.split(line):
        if out and out[-1][-1] == "." and _SHORT.search(out[-1][-8:]):
            out[-1] = f"{out[-1]} {piece}"
        elif _WORD.search(piece):
            out.append(piece.strip())
    return out


def clip(text: str, most: int) -> str:
    """A text of at most `most` characters, each cut marked with "…": its beginning, and of the
    rest first what denies, obliges, or names files and exact values."""
    if len(text) <= most:
        return text
    pieces = _PIECE.split(text)
    order = sorted(range(1, len(pieces)), key=lambda i: (-_worth(pieces[i]), i))
    chosen: dict[int, str] = {}
    left = most - 2  # for the mark at the end
    for i in (0, *order):
        piece = pieces[i]
        room = left if i else max(left // 3, left - sum(map(len, pieces[1:])))
        if len(piece) > room and (i == 0 or (room >= 40 and _worth(piece))):
            piece = ends(piece, room)
        if len(piece) <= room:
            chosen[i] = piece
            left -= len(piece) + 3
        if left < 8:
            break
    out = ""
    for i in sorted(chosen):
        gap = "" if not out else " " if i - 1 in chosen else " … "
        out += gap + chosen[i]
    return out if len(pieces) - 1 in chosen else f"{out} …"


def _worth(piece: str) -> int:
    return 2 * (_BINDS.search(piece) is not None) + (_EXACT.search(piece) is not None)


def ends(text: str, most: int) -> str:
    """A text of at most `most` characters: its start and its end."""
    if len(text) <= most:
        return text
    tail = most // 4
    return text[: most - tail - 3].rstrip() + " … " + text[-tail:].lstrip()


def clauses(text: str) -> list[str]:
    """A sentence in clauses, each with the connecting word it begins with: joined by spaces they
    are the sentence again."""
    starts = [0]
    for match in _CLAUSE.finditer(text):
        cut = match.start() + (1 if text[match.start()] in ";," else 0)
        if cut - starts[-1] >= 10 and len(text) - cut >= 8:
            starts.append(cut)
    if len(starts) == 1:
        return [text]
    ends = [*starts[1:], len(text)]
    return [text[a:b].strip() for a, b in zip(starts, ends, strict=True)]
