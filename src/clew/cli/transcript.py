"""A message as lines: who and when, then what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from clew.cli.lines import BLANK, Line, line
from clew.cli.parts import INDENT, NAME, Look, parts_lines
from clew.cli.screen import Piece
from clew.cli.times import moment
from clew.context.entries import Entry, entry_of
from clew.domain.messages import Message, Role
from clew.domain.parts import ToolResult

STYLES = {
    Role.USER: "bold cyan", Role.ASSISTANT: "bold green", Role.TOOL: "bold blue",
    Role.SYSTEM: "bold magenta", Role.DEVELOPER: "bold magenta",
}  # fmt: skip
_FOLDED = (Role.SYSTEM, Role.DEVELOPER)
"""Long, and not what a person said: their texts are folded too."""
_REASONS = ("errorMessage", "error", "stopReason", "finish", "finish_reason", "status")
"""Where imports say why there is nothing, the clearest first."""


def message_lines(message: Message, look: Look, mark: str = "") -> Iterator[Line]:
    """A message from the log, and a blank line."""
    yield from entry_lines(entry_of(message), look, mark)
    yield BLANK


def entry_lines(entry: Entry, look: Look, mark: str = "") -> Iterator[Line]:
    """A message, under its head. `mark` says what is special about it."""
    yield _head(entry, look, mark)
    if not entry.parts:
        why = _why_empty(entry)
        said = f"nothing; {look.glance(why, NAME + NAME)}" if why else "nothing"
        yield line(INDENT, (f"({said})", "dim"))
    yield from parts_lines(entry.parts, look, folded=entry.role in _FOLDED)


def _why_empty(entry: Entry) -> str | None:
    """What its import says of a message in which nothing was said: an answer that was aborted."""
    given: object = cast(Mapping[str, Any], entry.meta or {}).get("import")
    if not isinstance(given, dict):
        return None
    facts = cast(dict[str, Any], given)
    found = (facts.get(name) for name in _REASONS)
    return next((why for why in found if isinstance(why, str) and why), None)


def result_lines(entry: Entry, look: Look) -> Iterator[Line]:
    """A message of tool results (see `is_result`) as it stands under its calls: without a head."""
    yield from parts_lines(entry.parts, look, numbers(entry.messages))


def is_result(entry: Entry) -> bool:
    """Whether a message is nothing but what tools answered."""
    results = all(isinstance(part, ToolResult) for part in entry.parts)
    return entry.role is Role.TOOL and results and entry.author is None and bool(entry.parts)


def points_at(entry: Entry, look: Look) -> bool:
    """Whether this is the message that was asked for."""
    return any(look.target == message.seq for message in entry.messages)


def numbers(messages: Sequence[Message]) -> str:
    """The seqs of messages: #7, #12-14, #12,14."""
    return "#" + ",".join(_runs(message.seq for message in messages)) if messages else ""


def _runs(seqs: Iterable[int]) -> Iterator[str]:
    runs: list[tuple[int, int]] = []
    for seq in seqs:
        if runs and seq == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], seq
        else:
            runs.append((seq, seq))
    return (f"{first}-{last}" if last > first else f"{first}" for first, last in runs)


def _head(entry: Entry, look: Look, mark: str) -> Line:
    pieces: list[Piece] = []
    if points_at(entry, look):
        pieces.append((look.sign("▶ ", "> "), "bold yellow"))
    pieces.append((str(entry.role), f"{STYLES[entry.role]} dim" if mark else STYLES[entry.role]))
    if entry.author:
        pieces.append((f" {look.glance(entry.author, NAME)}", "dim"))
    if entry.messages:
        when = moment(entry.messages[0].created_at)
        pieces.append((f"  {numbers(entry.messages)}  {when}", "dim"))
    if mark:
        pieces.append((f"  {mark}", "yellow"))
    return line(0, *pieces)
