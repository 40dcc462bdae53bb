"""A conversation in order: its messages, and between them what else happened."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from clew.cli.dividers import Divider
from clew.cli.lines import BLANK, Line, line
from clew.cli.parts import NAME, Look
from clew.cli.screen import Piece
from clew.cli.transcript import entry_lines, is_result, points_at, result_lines
from clew.context.entries import Entry
from clew.domain.cuts import Cut
from clew.domain.messages import Message, Role
from clew.domain.parts import ToolCall, ToolResult

END = 1 << 62
"""Above every seq, and later than all times."""
CALLS = 1000
"""Calls whose names are remembered for their results."""


class Facts(Struct, frozen=True):
    """Where a message was made, as its import says."""

    model: str | None = None
    cwd: str | None = None
    git_branch: str | None = None


NOWHERE = Facts()


class Timeline:
    """Turns messages into lines, one after the other."""

    def __init__(
        self, look: Look, dividers: Iterable[Divider] = (),
        mark: Callable[[Message], str] | None = None, facts: Facts = NOWHERE,
        calls: Collection[str] = (),
    ) -> None:  # fmt: skip
        self._look, self._mark, self._facts, self._own = look, mark, facts, calls
        self._left = deque(sorted((d for d in dividers if not d.at), key=lambda d: d.after))
        self._timed = deque(sorted((d for d in dividers if d.at), key=lambda d: d.at or 0))
        self._names: dict[str, str] = {}
        self._met: set[str] = set()
        self.shown = 0
        """The highest seq so far."""
        self._before: Literal["nothing", "divider", "message", "call"] = "nothing"
        """What stands above; behind a call results need no head of their own."""

    def lines(
        self, entries: Iterable[Entry], start: int | None = 0, end: int | None = END
    ) -> Iterator[Line]:
        """Messages and what stands between them, as they come.

        Of the dividers those behind the seq `start` (the first message when None) up to `end` (the
        last message when None)."""
        first = True
        for entry in entries:
            place, at = _place(entry)
            if first:
                self._skip(place - 1 if start is None else start, 0 if start == 0 else at)
                first = False
            yield from self._dividers(place - 1, at)
            yield from self._entry(entry)
            self.shown = max((self.shown, place, *(m.seq for m in entry.messages)))
        if first and start is not None:
            self._skip(start, 0)
        yield from self._dividers(self.shown if end is None else end, END if end == END else 0)
        if start == 0 and end == END:
            yield from self._rest()

    def _skip(self, start: int, at: int) -> None:
        while self._left and self._left[0].after < start:
            self._left.popleft()
        while self._timed and (self._timed[0].at or 0) < at:
            self._timed.popleft()

    def _dividers(self, upto: int, before: int) -> Iterator[Line]:
        while self._left and self._left[0].after <= upto:
            yield from self._divider(self._left.popleft().lines)
        while self._timed and (self._timed[0].at or 0) < before:
            yield from self._divider(self._timed.popleft().lines)

    def _divider(self, lines: Iterable[Line]) -> Iterator[Line]:
        rows = [*lines]
        if self._before in ("message", "call"):
            yield BLANK
        self._before = "divider" if len(rows) == 1 else "message"
        yield from rows

    def _rest(self) -> Iterator[Line]:
        """Sub-agents whose call is not in the log."""
        for call in self._own:
            if call not in self._met:
                lines = self._look.under.get(call, ())
                yield from self._divider(row._replace(indent=0) for row in lines)

    def _entry(self, entry: Entry) -> Iterator[Line]:
        mark = (
            "" if self._mark is None else ", ".join(filter(None, map(self._mark, entry.messages)))
        )
        entry = self._named(entry)
        result = is_result(entry)
        if result and self._before == "call" and not mark and not points_at(entry, self._look):
            yield from result_lines(entry, self._look)
            return
        if self._before != "nothing":
            yield BLANK
        yield from self._moved(entry)
        yield from entry_lines(entry, self._look, mark)
        calls = self._mark is None and entry.role in (Role.ASSISTANT, Role.TOOL)
        self._before = "call" if calls else "message"

    def _moved(self, entry: Entry) -> Iterator[Line]:
        """What is different from here on: the model, the folder, the branch of git."""
        facts = _facts_of(entry)
        pieces: list[Piece] = [(self._look.sign("· ", "* "), "dim")]
        for name, word in (("model", "model "), ("cwd", "in "), ("git_branch", "on branch ")):
            value: str | None = getattr(facts, name)
            if value and value != getattr(self._facts, name):
                comma = ", " if len(pieces) > 1 else ""
                shown = self._look.glance(value, NAME + NAME)
                pieces += [(comma + word, "dim"), (shown, "dim")]
                self._facts = replace(self._facts, **{name: value})
        if len(pieces) > 1:
            yield line(0, *pieces)

    def _named(self, entry: Entry) -> Entry:
        """Results with the names of their calls, where they have none of their own."""
        for part in entry.parts:
            if isinstance(part, ToolCall):
                self._names[part.id] = part.name
                if part.id in self._look.under:
                    self._met.add(part.id)
        while len(self._names) > CALLS:
            del self._names[next(iter(self._names))]
        if not any(isinstance(part, ToolResult) and part.name is None for part in entry.parts):
            return entry
        return entry._replace(
            parts=tuple(
                replace(part, name=part.name or self._names.get(part.call_id))
                if isinstance(part, ToolResult) else part
                for part in entry.parts
            )
        )  # fmt: skip


def log_mark(cuts: Sequence[Cut]) -> Callable[[Message], str]:
    """What is special about a message of the whole log."""
    group: tuple[str, int] | None = None

    def mark(message: Message) -> str:
        nonlocal group
        hiding = [c.number for c in cuts if c.in_force and c.from_seq <= message.seq <= c.to_seq]
        marks = [f"hidden by cut {hiding[0]}"] if hiding else []
        if message.replaces is not None:
            marks.append(f"stands for #{message.replaces}")
        if message.api_group is not None:
            if group is not None and group[0] == message.api_group:
                marks.append(f"one message with #{group[1]}")
            else:
                group = message.api_group, message.seq
        if message.turn is not None:
            marks.append(f"turn {message.turn}")
        return ", ".join(marks)

    return mark


def _place(entry: Entry) -> tuple[int, int]:
    """The seq where it stands, and its time; 0 of what is in no log."""
    if not entry.messages:
        return 0, 0
    first = entry.messages[0]
    return first.replaces or first.seq, first.created_at


def _facts_of(entry: Entry) -> Facts:
    meta = cast(Mapping[str, Any], entry.meta or {})
    given: object = meta.get("import")
    if not isinstance(given, dict):
        return Facts()
    fields = cast(dict[str, Any], given)
    values = (fields.get(name) for name in Facts.__struct_fields__)
    return Facts(*(value if isinstance(value, str) else None for value in values))
