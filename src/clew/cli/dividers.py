"""What stands between the messages of a conversation: compactions, cuts, branches, sub-agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from clew.cli.family import Calls
from clew.cli.heading import title_of
from clew.cli.lines import Line, line
from clew.cli.parts import INDENT, Look, folded_text, kinds, parts_lines
from clew.cli.text import fit, one_line, short_id
from clew.cli.times import ago
from clew.domain.compactions import BodyItem, Compaction, Inline, Ref, Stub, in_effect
from clew.domain.conversations import ConversationInfo
from clew.domain.cuts import Cut
from clew.domain.parts import plain_text
from clew.store.findings import counted

FIRST_ITEMS, LAST_ITEMS = 2, 3
"""Items of a compaction that are shown, from either end."""
TITLE = 48
"""Columns of another conversation's title."""


class Divider(NamedTuple):
    """Comes before the first message above `after`; with a time, before the first that is later."""

    after: int
    lines: tuple[Line, ...]
    at: int | None = None


def divider(text: str, look: Look) -> Line:
    """A line across."""
    rule = look.sign("─", "-") * 3
    return line(0, (f"{rule} {text} {rule}", "dim"))


def of_compactions(
    records: Sequence[Compaction], cuts: Sequence[Cut], every: bool, look: Look
) -> Iterator[Divider]:
    """What stands for everything above it. Without `every`, only what was not undone."""
    effective = in_effect(records, cuts)
    for record in reversed(records):
        if record.undone_at is None or every:
            state = state_of(record, effective)
            text = f"compaction {record.generation}: {worth(record)}; {state}"
            lines = (divider(text, look), *_body_lines(record.body, look))
            yield Divider(record.covers_to, lines)


def state_of(record: Compaction, effective: Compaction | None) -> str:
    """What has become of a compaction."""
    if record.undone_at is not None:
        return "undone"
    return "in effect" if record is effective else "not in effect"


def worth(record: Compaction) -> str:
    """What a compaction stands for, and what it saves."""
    stands = f"stands for #1 to #{record.covers_to}"
    if record.tokens_before is None or record.tokens_after is None:
        return stands
    return f"{stands}, {record.tokens_after:,} tokens instead of {record.tokens_before:,}"


def _body_lines(body: Sequence[BodyItem], look: Look) -> Iterator[Line]:
    """What a model reads in the place of the messages; of many items the first and the last."""
    left_out = 0 if look.full else len(body) - FIRST_ITEMS - LAST_ITEMS
    for at, item in enumerate(body):
        if left_out > 1 and FIRST_ITEMS <= at < FIRST_ITEMS + left_out:
            if at == FIRST_ITEMS:
                yield line(INDENT, (f"({left_out:,} more)", "dim"))
        else:
            yield from _item_lines(item, look)


def _item_lines(item: BodyItem, look: Look) -> Iterator[Line]:
    match item:
        case Ref(first=first, last=last):
            what = f"#{first}" if first == last else f"#{first} to #{last}"
            yield line(INDENT, (f"{what} as written", "dim"))
        case Stub(seq=seq, text=text):
            sign = f"#{seq} shortened: "
            yield line(INDENT, (sign, "dim"), look.beside(text, sign))
        case Inline(role=role, parts=parts) if look.full:
            yield line(INDENT, (f"{role}:", "dim"))
            yield from parts_lines(parts, look)
        case Inline(role=role, parts=parts):
            first, more = folded_text(plain_text(parts), look, f"{role}: ")
            yield line(INDENT, (f"{role}: ", "dim"), first or kinds(parts), (more, "dim"))


def of_cuts(cuts: Sequence[Cut], now: int, look: Look) -> Iterator[Divider]:
    """Where each cut begins to hide."""
    for cut in cuts:
        yield Divider(cut.from_seq - 1, (divider(cut_text(cut, now), look),))


def of_hidden(cuts: Sequence[Cut]) -> Iterator[Divider]:
    """Where messages are hidden that a reader of the numbers would miss; what several cuts hide
    together is one gap."""
    gaps: list[list[Cut]] = []
    end = 0
    for cut in sorted(cuts, key=lambda cut: cut.from_seq):
        if not cut.in_force:
            continue
        if gaps and cut.from_seq <= end + 1:
            gaps[-1].append(cut)
        else:
            gaps.append([cut])
        end = max(end, cut.to_seq)
    for gap in gaps:
        first, last = gap[0].from_seq, max(cut.to_seq for cut in gap)
        many = counted(last - first + 1, "message")
        whose = " and ".join(map(str, sorted(cut.number for cut in gap)))
        text = f"{many} hidden by {'cut' if len(gap) == 1 else 'cuts'} {whose}; --log shows"
        yield Divider(first - 1, (line(0, (f"{text} {'it' if last == first else 'them'}", "dim")),))


def cut_text(cut: Cut, now: int) -> str:
    """Who hid what, and when."""
    by = f" by {fit(one_line(cut.by), TITLE)}" if cut.by else ""
    many = counted(cut.to_seq - cut.from_seq + 1, "message")
    text = f"cut {cut.number}{by}, {ago(cut.at, now)}: hides {many}, to #{cut.to_seq}"
    return text if cut.undone_at is None else f"{text}; undone {ago(cut.undone_at, now)}"


def of_branches(branches: Sequence[ConversationInfo], look: Look) -> Iterator[Divider]:
    """Where branches leave."""
    for child in branches:
        yield Divider(child.base, (child_line(child, "from here", look, 0),))


def of_origin(info: ConversationInfo, look: Look) -> Iterator[Divider]:
    """Where a branch's own messages begin."""
    if info.kind == "branch" and info.base:
        origin = short_id(info.origin) if info.origin else "a conversation that was deleted"
        yield Divider(info.base, (divider(f"a branch of {origin}: what follows is its own", look),))


def of_agents(agents: Sequence[ConversationInfo], look: Look) -> Iterator[Divider]:
    """Sub-agents of which nobody said which call began them: by their times."""
    for child in agents:
        yield Divider(0, (child_line(child, "", look, 0),), child.created_at)


def under_calls(calls: Calls, look: Look) -> dict[str, tuple[Line, ...]]:
    """The lines of the other sub-agents, by the calls that began them."""
    return {
        call: tuple(child_line(child, "", look, 2 * INDENT) for child in children)
        for call, children in calls.items()
    }


def child_line(child: ConversationInfo, where: str, look: Look, indent: int) -> Line:
    """Another conversation that began in this one: its id opens it."""
    branch = child.kind == "branch"
    what = f"branch {short_id(child.id)}" if branch else f"sub-agent {short_id(child.id)}"
    sign = look.sign("├─ ", "|- ") if branch else look.sign("↳ ", "\\- ")
    many = counted(child.head - child.base, "message")
    how = f"  {look.opening} {short_id(child.id)}" if look.opening else ""
    return line(
        indent, (sign, "dim"), (what, "yellow"), (f" {where}: " if where else ": ", "dim"),
        look.glance(title_of(child), TITLE),
        (f", {many}{how}", "dim"), hang=3,
    )  # fmt: skip
