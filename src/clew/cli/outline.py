"""What a conversation consists of, a line for each turn: behind clew show --outline.

A tree: what happened in a turn (sub-agents, compactions, cuts, branches that leave) stands under
the user's message that began it, and under a branch stand its own turns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from msgspec import Struct

from clew.cli import dividers
from clew.cli.family import call_of, family_of
from clew.cli.lines import Line, line
from clew.cli.parts import Look, kinds
from clew.cli.times import moment
from clew.domain.compactions import Compaction, in_effect
from clew.domain.conversations import ConversationInfo
from clew.domain.cuts import Cut
from clew.domain.messages import Message, Role
from clew.domain.parts import call_ids
from clew.errors import NotFound
from clew.store.conversation import Conversation
from clew.store.findings import counted
from clew.store.profile import Profile

WORDS = 200
"""Characters of a message that are kept."""
DEEPEST = 8
"""Conversations inside each other that are opened."""
NESTED = 12
"""Turns of a branch that are listed; its own outline has all."""


class Turn(Struct, frozen=True, tag="turn", kw_only=True):
    """A user's message, and what happened until the next."""

    seq: int | None
    """None: there is none, this is what came before the first."""
    at: int | None
    text: str
    messages: int
    """How many others follow it."""
    inside: tuple[Event, ...]


class Child(Struct, frozen=True, tag="conversation", kw_only=True):
    """A branch with its turns, or a sub-agent's conversation with those that began in it."""

    info: ConversationInfo
    call: str | None
    inside: tuple[Turn | Child, ...] = ()
    more: bool = False
    """It has more turns than are listed."""


class Hiding(Struct, frozen=True, tag="cut"):
    """A range that was cut away here."""

    cut: Cut


class Summary(Struct, frozen=True, tag="compaction"):
    """What stands for everything above, for a model."""

    compaction: Compaction
    state: str


Event = Child | Hiding | Summary


def of(
    profile: Profile, conversation: Conversation, above: int = 0, depth: int = 0
) -> Iterator[Turn]:
    """The turns above a seq, as they are read."""
    events = _Events(profile, conversation, above, depth)
    begin: Message | None = None
    inside: list[Event] = []
    others = 0
    for message in conversation.messages(first=above + 1):
        inside += events.before(message)
        if message.role is not Role.USER:
            others += 1
            inside += events.called(message)
            continue
        if begin is not None or others or inside:
            yield _turn(begin, others, inside)
        begin, inside, others = message, [], 0
    inside += events.rest()
    if begin is not None or others or inside:
        yield _turn(begin, others, inside)


def _turn(begin: Message | None, others: int, inside: list[Event]) -> Turn:
    if begin is None:
        return Turn(seq=None, at=None, text="", messages=others, inside=tuple(inside))
    text = begin.text or kinds(begin.parts)
    return Turn(
        seq=begin.seq, at=begin.created_at, text=text[:WORDS], messages=others,
        inside=tuple(inside),
    )  # fmt: skip


class _Events:
    """What happened in a conversation besides its messages, in the order of their places."""

    def __init__(
        self, profile: Profile, conversation: Conversation, above: int, depth: int
    ) -> None:
        self._profile, self._depth = profile, depth
        cuts, records = conversation.cuts(), conversation.compactions()
        effective = in_effect(records, cuts)
        family = family_of(conversation)
        placed: list[tuple[int, Event | ConversationInfo]] = [
            (record.covers_to, Summary(record, dividers.state_of(record, effective)))
            for record in reversed(records)
        ]
        placed += [(cut.from_seq - 1, Hiding(cut)) for cut in cuts]
        placed += [(child.base, child) for child in family.branches]
        placed = [(after, event) for after, event in placed if after > above or not above]
        self._placed = deque(sorted(placed, key=lambda one: one[0]))
        self._calls, self._timed = dict(family.called), deque(family.others)

    def before(self, message: Message) -> Iterator[Event]:
        """What happened before it."""
        place = message.replaces or message.seq
        while self._placed and self._placed[0][0] < place:
            yield self._event(self._placed.popleft()[1])
        while self._timed and self._timed[0].created_at < message.created_at:
            yield self._event(self._timed.popleft())

    def called(self, message: Message) -> Iterator[Event]:
        """The sub-agents it began."""
        if self._calls and message.role is Role.ASSISTANT:
            for call in call_ids(message.parts):
                yield from map(self._event, self._calls.pop(call, ()))

    def rest(self) -> Iterator[Event]:
        """What is left when all messages are read."""
        for _, event in self._placed:
            yield self._event(event)
        yield from map(self._event, chain(self._timed, *self._calls.values()))

    def _event(self, event: Event | ConversationInfo) -> Event:
        if not isinstance(event, ConversationInfo):
            return event
        inside: list[Turn | Child] = []
        if self._depth < DEEPEST:
            try:
                inside = self._inside(event, self._profile.open(event.id))
            except NotFound:  # deleted meanwhile
                pass
        return Child(
            info=event, call=call_of(event), inside=tuple(inside[:NESTED]),
            more=len(inside) > NESTED,
        )  # fmt: skip

    def _inside(self, info: ConversationInfo, child: Conversation) -> list[Turn | Child]:
        turns = of(self._profile, child, info.base, self._depth + 1)
        if info.kind == "branch":
            return list(islice(turns, NESTED + 1))
        return [event for turn in turns for event in turn.inside if isinstance(event, Child)]


# ---------------------------------------------------------------- for people


def lines(turns: Iterable[Turn], look: Look, now: int, indent: int = 0) -> Iterator[Line]:
    """The outline as a tree."""
    for turn in turns:
        if turn.seq is not None and turn.at is not None:
            number, when = f"#{turn.seq:<5}", f"  {moment(turn.at)}  "
            more = f"  +{turn.messages:,}" if turn.messages else ""
            words = look.beside(turn.text, " " * indent, number, when, more)
            yield line(indent, (number, "bold cyan"), (when, "dim"), words, (more, "dim"), hang=4)
        elif turn.messages:
            many = counted(turn.messages, "message")
            yield line(indent, (f"({many} before the first of a user)", "dim"))
        for event in turn.inside:
            yield from _event_lines(event, look, now, indent + 2)


def _event_lines(event: Event, look: Look, now: int, indent: int) -> Iterator[Line]:
    match event:
        case Child(info=info, inside=inside, more=more):
            where = f"from #{info.base}" if info.kind == "branch" else ""
            yield dividers.child_line(info, where, look, indent)
            for one in inside:
                if isinstance(one, Turn):
                    yield from lines((one,), look, now, indent + 3)
                else:
                    yield from _event_lines(one, look, now, indent + 3)
            if more:
                yield line(indent + 3, ("and more", "dim"))
        case Hiding(cut=cut):
            yield line(indent, (look.sign("✂ ", "x "), "dim"), (dividers.cut_text(cut, now), "dim"))
        case Summary(compaction=record, state=state):
            text = f"compaction {record.generation}: {dividers.worth(record)}; {state}"
            yield line(indent, (look.sign("≡ ", "= "), "dim"), (text, "dim"))
