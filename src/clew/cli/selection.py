"""Which messages of a conversation are shown: a stretch, those around one, of some roles."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from clew.cli.messages import message_of
from clew.domain.cuts import Cut
from clew.domain.messages import Message, Role
from clew.errors import InputError, NotFound
from clew.store.conversation import Conversation
from clew.store.reader import ConversationReader

PAGE = 500
FIRST_PAGE = 50
"""Messages of the first read: enough for a screen."""
BEFORE, BEHIND = 5, 15
"""Messages shown around one."""


class Selection(Struct, frozen=True, kw_only=True):
    """What is asked for."""

    first: int | None = None
    last: int | None = None
    limit: int | None = None
    """At most so many, from the first on."""
    newest: int | None = None
    """At most so many, the newest."""
    around: int | None = None
    """The place of one message, and some before and behind it."""
    roles: frozenset[Role] = frozenset()
    hidden: bool = False
    """Also what cuts hide."""

    def wants(self, message: Message) -> bool:
        """Whether it is of a role that is asked for."""
        return not self.roles or message.role in self.roles

    @property
    def whole(self) -> bool:
        """Whether nothing is left out but roles."""
        bounds = (self.first, self.last, self.limit, self.newest, self.around)
        return all(bound is None for bound in bounds)

    @property
    def to_end(self) -> bool:
        """Whether the newest message is within it."""
        return self.last is None and self.limit is None and self.around is None


def messages(conversation: ConversationReader, want: Selection) -> Iterator[Message]:
    """The messages asked for, oldest first, read as they are needed."""
    if want.around is not None:
        yield from _around(conversation, want, want.around)
    elif want.newest is not None:
        yield from newest(conversation, want, want.newest)
    else:
        found = forwards(conversation, want, want.first or 1)
        yield from islice(found, want.limit)


def forwards(conversation: ConversationReader, want: Selection, first: int) -> Iterator[Message]:
    """From a seq on, in pages: a small one for the first screen, then larger ones."""
    cursor, size = None, FIRST_PAGE
    while True:
        page = conversation.log(
            limit=size, cursor=cursor, hidden=want.hidden, first=first, last=want.last
        )
        yield from filter(want.wants, page.items)
        cursor, size = page.next, PAGE
        if cursor is None:
            return


def newest(conversation: ConversationReader, want: Selection, count: int) -> list[Message]:
    """The newest of them, oldest of these first."""
    found: list[Message] = []
    cursor: str | None = None
    while len(found) < count:
        size = PAGE if want.roles else min(PAGE, count - len(found))
        page = conversation.log(
            limit=size, cursor=cursor, order="newest", hidden=want.hidden, first=want.first or 1,
            last=want.last,
        )  # fmt: skip
        found.extend(filter(want.wants, page.items))
        cursor = page.next
        if cursor is None:
            break
    return found[:count][::-1]


def _around(conversation: ConversationReader, want: Selection, place: int) -> Iterator[Message]:
    before = Selection(last=place - 1, roles=want.roles, hidden=want.hidden)
    yield from newest(conversation, before, BEFORE)
    yield from conversation.log(limit=1, hidden=want.hidden, first=place, last=place).items
    behind = Selection(roles=want.roles, hidden=want.hidden)
    yield from islice(forwards(conversation, behind, place + 1), BEHIND)


def target_of(
    conversation: Conversation, name: str, cuts: tuple[Cut, ...], hidden: bool
) -> tuple[int, int]:
    """The message to point at, and the seq where it stands. InputError when there is none, or when
    it is hidden and hidden ones are not shown."""
    try:
        message = message_of(conversation, name)
    except NotFound:
        head = conversation.info().head
        there = f"give one of #1 to #{head}" if head else "it has no messages yet"
        raise InputError(f"no message {name!r} in this conversation; {there}") from None
    if hidden:
        return message.seq, message.seq
    for cut in cuts:
        if cut.in_force and cut.from_seq <= message.seq <= cut.to_seq:
            raise InputError(
                f"#{message.seq} is hidden by cut {cut.number}; add --log to see it there"
            )
    place = message.seq
    while message.replaces is not None:
        place = message.replaces
        message = conversation.message(place)
    shown = conversation.log(limit=1, first=place, last=place).items
    return (shown[0].seq if shown else place), place
