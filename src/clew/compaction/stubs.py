"""What stays of a tool's output: a few lines that say what it was and how to read all of it.

    bash: pytest -q tests/unit
    exit code 1
    E   AssertionError: 3 != 4
    FAILED tests/unit/test_a.py::test_sum
    [412 lines, 18,240 characters: recall(12)]

Pure and deterministic. Only results of tools are ever shortened: words of people are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from clew.compaction.outputs import attached, counted, described, notes, shortened
from clew.domain.messages import Message
from clew.domain.parts import File, Image, Text, ToolCall, ToolResult, result_text
from clew.errors import InputError

ROOM = 600
"""Characters of a stub, by default."""
LEAST_ROOM = 80
"""Fewer could not hold the handle."""
SAVES = 400
"""Characters that a stub has to save; it has to save half of what was there, too."""
SAME_FROM = 200
"""Shorter outputs are alike too often for a reader to be sent to another of them."""
_IMAGE = 3_000
"""Characters of text that cost about as much as an image."""
_LEAST_LINE = 20
"""A line is cut to no fewer characters: it is left out."""
_NO_CALLS: Mapping[str, ToolCall] = {}


class _Line(NamedTuple):
    """A line of a stub; those of a lower rank are placed first when room is short."""

    rank: int
    text: str


def stub_text(
    message: Message, calls: Mapping[str, ToolCall] = _NO_CALLS, *, room: int = ROOM
) -> str:
    """What stays of a message of tool results: at most `room` characters, never longer than it.

    `calls`: the calls that it answers, by id; of one that is not there the result tells. A message
    that is no longer than its stub would be comes back as it is. Raises InputError for a message
    without results and for a room under 80.
    """
    if room < LEAST_ROOM:
        raise InputError(f"room is {room}; a stub needs at least {LEAST_ROOM} characters")
    results = _results(message)
    if not results:
        raise InputError(
            f"message {message.seq} holds no tool result; nothing else may be shortened"
        )
    lines = [line for each in results for line in _lines(each, calls.get(each.call_id))]
    stub = _fitted(lines, _handle(message.seq, results), room)
    whole = "\n".join(map(result_text, results))
    if any(attached(each) or _size(each) < len(result_text(each)) for each in results):
        return stub
    return whole if len(whole) <= len(stub) else stub


def same_text(message: Message, newest: int, calls: Mapping[str, ToolCall] = _NO_CALLS) -> str:
    """What stays of an output that the message `newest` repeats word for word."""
    names = [described(calls.get(each.call_id), each.name) for each in _results(message)]
    named = shortened("; ".join(name for name in names if name), ROOM)
    again = f"same as [@{newest}]; recall({message.seq})"
    return f"{named}: {again}" if named else again


def worth(message: Message, calls: Mapping[str, ToolCall] = _NO_CALLS, *, room: int = ROOM) -> bool:
    """Whether a stub saves enough: over 400 characters, and at least half.

    A rendering gives every result of the message the whole stub; that is counted.
    """
    results = _results(message)
    before = sum(map(_size, results))
    if before <= SAVES:
        return False
    saved = before - len(results) * len(stub_text(message, calls, room=room))
    return saved > SAVES and saved * 2 >= before


def superseded(messages: Iterable[Message]) -> dict[int, int]:
    """Seqs of outputs that a later message repeats word for word, each with the newest such seq."""
    keyed = [(message.seq, key) for message in messages if (key := _key(message)) is not None]
    newest: dict[tuple[object, ...], int] = {}
    for seq, key in keyed:
        newest[key] = max(seq, newest.get(key, seq))
    return {seq: newest[key] for seq, key in keyed if newest[key] > seq}


def _results(message: Message) -> list[ToolResult]:
    return [part for part in message.parts if isinstance(part, ToolResult)]


def _key(message: Message) -> tuple[object, ...] | None:
    """Equal for outputs that say the same; None where too little is said."""
    results = _results(message)
    if sum(map(_size, results)) < SAME_FROM:
        return None
    return tuple(
        (each.is_error, each.content if isinstance(each.content, str) else repr(each.content))
        for each in results
    )


def _size(result: ToolResult) -> int:
    """What a result costs, in characters of text: of a long one, of what is shown of it."""
    pieces = (Text(result.content),) if isinstance(result.content, str) else result.content
    text = sum(len(part.text) for part in pieces if isinstance(part, Text))
    beside = sum(
        _IMAGE if isinstance(part, Image | File) else len(repr(part.value))
        for part in pieces
        if not isinstance(part, Text)
    )
    return beside + (text if result.shown is None else min(text, result.shown))


def _lines(result: ToolResult, call: ToolCall | None) -> Iterator[_Line]:
    """Everything worth saying of one result, in the order in which it is read."""
    if name := described(call, result.name):
        yield _Line(0, name)
    for line in attached(result):
        yield _Line(1, line)
    for rank, line in enumerate(notes(call, result), start=2):
        yield _Line(rank, line)


def _handle(seq: int, results: Sequence[ToolResult]) -> str:
    """How much there was, and how to read it."""
    sizes = [counted(each) for each in results]
    lines, characters = (sum(column) for column in zip(*sizes, strict=True))
    said = [f"{len(results)} results"] if len(results) > 1 else []
    if characters:
        said += [f"{lines:,} lines" if lines != 1 else "1 line", f"{characters:,} characters"]
    return f"[{', '.join(said)}: recall({seq})]" if said else f"[recall({seq})]"


def _fitted(lines: Sequence[_Line], handle: str, room: int) -> str:
    """The lines that fit, in their order, and the handle. A line of which a part fits is cut."""
    left = room - len(handle)
    kept: dict[int, str] = {}
    for at in sorted(range(len(lines)), key=lambda at: (lines[at].rank, at)):
        line = lines[at].text
        if len(line) >= left:
            if left <= _LEAST_LINE:
                continue
            line = shortened(line, left - 1)
        kept[at] = line
        left -= len(line) + 1
    return "\n".join([*(kept[at] for at in sorted(kept)), handle])
