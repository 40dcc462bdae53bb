"""A conversation in order: its messages, with cuts and compactions as dividers between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from clew.cli.lines import BLANK, Line, line
from clew.cli.text import one_line
from clew.cli.times import ago
from clew.cli.transcript import Look, message_lines
from clew.domain.compactions import Compaction, in_effect
from clew.domain.cuts import Cut
from clew.domain.messages import Message
from clew.store.findings import counted
from clew.store.reader import ConversationReader

PAGE = 500

Divider = tuple[int, str]
"""Comes before the first message above this seq."""


def newest(conversation: ConversationReader, count: int, hidden: bool) -> list[Message]:
    """The newest messages, oldest of them first."""
    found: list[Message] = []
    cursor: str | None = None
    while len(found) < count:
        page = conversation.log(
            limit=min(PAGE, count - len(found)), cursor=cursor, order="newest", hidden=hidden
        )
        found.extend(page.items)
        cursor = page.next
        if cursor is None:
            break
    return found[::-1]


def lines(
    messages: Iterable[Message], dividers: Sequence[Divider], mark: Callable[[Message], str],
    look: Look,
) -> Iterator[Line]:  # fmt: skip
    """Messages and the dividers between them, as they come."""
    left = sorted(dividers, reverse=True)
    begun = False
    for message in messages:
        place = message.replaces or message.seq
        while left and left[-1][0] < place:
            _, text = left.pop()
            if begun or place == 1:
                yield from divider(text, look)
        begun = True
        yield from message_lines(message, look, mark(message))
    for _, text in reversed(left):
        yield from divider(text, look)


def divider(text: str, look: Look) -> Iterator[Line]:
    rule = look.sign("─", "-") * 3
    yield line(0, (f"{rule} {text} {rule}", "dim"))
    yield BLANK


def compaction_dividers(
    records: Sequence[Compaction], cuts: Sequence[Cut], every: bool
) -> Iterator[Divider]:
    """What stands for everything above it. Without `every`, only what was not undone."""
    effective = in_effect(records, cuts)
    for record in records:
        if record.undone_at is None or every:
            state = "in effect" if record is effective else "not in effect"
            if record.undone_at is not None:
                state = "undone"
            yield record.covers_to, f"compaction {record.generation}: {_worth(record)}; {state}"


def _worth(record: Compaction) -> str:
    stands = f"stands for #1 to #{record.covers_to}"
    if record.tokens_before is None or record.tokens_after is None:
        return stands
    return f"{stands}, {record.tokens_after:,} tokens instead of {record.tokens_before:,}"


def cut_dividers(cuts: Sequence[Cut], now: int) -> Iterator[Divider]:
    """Where each cut begins to hide."""
    for cut in cuts:
        by = f" by {one_line(cut.by)}" if cut.by else ""
        many = counted(cut.to_seq - cut.from_seq + 1, "message")
        text = f"cut {cut.number}{by}, {ago(cut.at, now)}: hides {many}, to #{cut.to_seq}"
        if cut.undone_at is not None:
            text += f"; undone {ago(cut.undone_at, now)}"
        yield cut.from_seq - 1, text


def log_mark(cuts: Sequence[Cut]) -> Callable[[Message], str]:
    """What is special about a message of the whole log."""

    def mark(message: Message) -> str:
        hiding = [c.number for c in cuts if c.in_force and c.from_seq <= message.seq <= c.to_seq]
        marks = [f"hidden by cut {hiding[0]}"] if hiding else []
        if message.replaces is not None:
            marks.append(f"stands for #{message.replaces}")
        if message.turn is not None:
            marks.append(f"turn {message.turn}")
        return ", ".join(marks)

    return mark


def no_mark(_: Message) -> str:
    return ""
