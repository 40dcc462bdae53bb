"""What Hermes did to a conversation's rows: which are messages, which a compaction put there again.

A compaction writes the context anew, as rows behind the old ones (in place) or into a child
session (rotation): copies of the first messages, a summary, copies of the last ones. Copies have
new ids, and nothing says whose copies they are; they are told by what they say and where they
stand. Rows are seen as marks of a few bytes, so that a long conversation costs little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

State = Literal["active", "compacted", "rewound"]
LATE = 5_000_000
"""Microseconds behind the row before it from which a row is no copy, unless its time is the copied
one's: a compaction writes its rows in one go."""


class Mark(Struct, frozen=True):
    """A row of `messages`."""

    id: str
    key: bytes
    """The same for rows that say the same (of tool calls and results: that are of the same
    calls)."""
    exact: bytes
    """The same only for rows that say the same to the letter: a compaction shortens results."""
    at: int | None
    state: State
    is_summary: bool


class Fate(Struct, frozen=True):
    """What becomes of a row: a message of its own, or a piece of the compaction `block` (the id of
    its first row), there a copy of the message `of` to the letter or content of its own."""

    block: str | None = None
    of: str | None = None
    is_gone: bool = False
    """Taken back afterwards, so no longer a piece."""


MESSAGE = Fate()
SHARED = Fate(is_gone=True)
"""Of a branch's row: the same message as in the conversation it comes from."""


class Entry(Struct, frozen=True):
    """One message of the context: `id` of the row that was it first; None for a summary."""

    key: bytes
    exact: bytes
    id: str | None
    at: int | None


class Layout(Struct, frozen=True):
    """A session's rows and what becomes of each; `opens`: rows before which the context was
    replaced though nothing was put there."""

    fates: list[Fate]
    opens: frozenset[int]


class Reconstruction:
    """Follows the context of a conversation from session to session."""

    def __init__(self) -> None:
        self.context: list[Entry] = []
        self.earlier: list[list[Entry]] = []
        """The contexts that compactions ended."""

    def session(self, marks: Sequence[Mark], *, is_rotated: bool, first: int = 0) -> Layout:
        """Take in a session's rows from `first` on; `is_rotated`: it continues another one."""
        fates: list[Fate] = []
        opens: set[int] = set()
        owed = is_rotated and bool(self.context)
        was_compacted = False
        at = first
        while at < len(marks):
            mark = marks[at]
            owed = owed or (was_compacted and mark.state == "active")
            is_possible = owed or was_compacted or mark.state == "compacted"
            size = self._block(marks, at, fates) if is_possible else 0
            if size or (owed and mark.state != "rewound"):
                if not size:
                    opens.add(at)
                    self._replace([])
                owed = was_compacted = False
            if not size:
                fates.append(MESSAGE)
                if mark.state != "rewound":
                    self.context.append(Entry(mark.key, mark.exact, mark.id, mark.at))
            size = size or 1
            was_compacted = was_compacted or any(
                each.state == "compacted" for each in marks[at : at + size]
            )
            at += size
        return Layout(fates, frozenset(opens))

    def shared(self, marks: Sequence[Mark], contexts: Sequence[Sequence[Entry]]) -> str | None:
        """Begin with what a branch has in common with one of its origin's contexts; the last
        message of it. `context` is as long as the rows that are shared."""
        best: Sequence[Entry] = ()
        for context in contexts:
            size = 0
            while size < min(len(marks), len(context)) and marks[size].key == context[size].key:
                size += 1
            if size and size >= len(best):
                best = context[:size]
        last = next((entry.id for entry in reversed(best) if entry.id is not None), None)
        self.context = list(best) if last is not None else []
        return last

    def _replace(self, context: list[Entry]) -> None:
        self.earlier.append(self.context)
        self.context = context

    def _block(self, marks: Sequence[Mark], at: int, fates: list[Fate]) -> int:
        """The rows from `at` on that a compaction put there: none without a summary that stands
        first, or behind copies of the first messages."""
        if not self.context:
            return 0
        head = 0
        while (
            at + head < len(marks)
            and head < len(self.context)
            and not marks[at + head].is_summary
            and marks[at + head].key == self.context[head].key
        ):
            head += 1
        end = at + head
        while end < len(marks) and marks[end].is_summary:
            end += 1
        if end == at + head:
            return 0
        tail = self._tail(marks, end, head)
        copied = [*self.context[:head], *[None] * (end - at - head), *tail]
        context: list[Entry] = []
        for mark, entry in zip(marks[at:], copied, strict=False):
            is_gone = mark.state == "rewound"
            id = None if entry is None else entry.id
            exact = mark.exact if entry is None else entry.exact
            of = id if mark.exact == exact else None
            fates.append(Fate(block=marks[at].id, of=of, is_gone=is_gone))
            if not is_gone:
                context.append(Entry(mark.key, exact, id, mark.at))
        self._replace(context)
        return len(copied)

    def _tail(self, marks: Sequence[Mark], at: int, head: int) -> list[Entry]:
        """The last messages of the context that stand again from `at` on."""
        old = self.context[head:]
        new = marks[at : at + len(old)]
        for size in _overlaps([mark.key for mark in new], [entry.key for entry in old]):
            tail = old[len(old) - size :]
            if not any(_is_late(new[i], tail[i], marks[at + i - 1].at) for i in range(size)):
                return tail
        return []


def _is_late(mark: Mark, entry: Entry, before: int | None) -> bool:
    if mark.at is None or before is None or mark.at == entry.at:
        return False
    return mark.at - before > LATE


def _overlaps(new: Sequence[bytes], old: Sequence[bytes]) -> list[int]:
    """How many of the first of `new` may be the last of `old`, the most first. Linear (it is the
    failure function of Knuth, Morris and Pratt), however often the same is said."""
    joined = [*new, None, *old]
    border = [0] * len(joined)
    for at in range(1, len(joined)):
        size = border[at - 1]
        while size and joined[at] != joined[size]:
            size = border[size - 1]
        border[at] = size + (joined[at] is not None and joined[at] == joined[size])
    sizes: list[int] = []
    size = border[-1]
    while size:
        sizes.append(size)
        size = border[size - 1]
    return sizes
