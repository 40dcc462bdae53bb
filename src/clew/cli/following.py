"""What comes into a conversation, as it comes: behind clew show --follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clew.cli.dividers import divider
from clew.cli.lines import BLANK, Line
from clew.cli.parts import Look
from clew.cli.selection import PAGE, Selection, newest
from clew.cli.transcript import message_lines
from clew.domain.changes import Change
from clew.domain.messages import Message
from clew.errors import NotFound
from clew.store.conversation import Conversation
from clew.store.profile import Profile

EVERY = Selection()
TAIL = 10
"""Messages shown before what is new."""

_SAID = {
    "cut": "messages were cut away",
    "undone": "a cut or compaction was undone",
    "compacted": "the context was compacted",
    "titled": "the title changed",
    "ended": "the conversation ended",
    "reopened": "the conversation was reopened",
    "deleted": "the conversation was deleted",
}


def events(
    profile: Profile, conversation: Conversation, last: int, want: Selection = EVERY
) -> Iterator[Message | Change]:
    """The newest messages, then everything that happens, until the conversation is deleted. Of the
    messages those of the roles that are wanted."""
    try:
        yield from _events(profile, conversation, last, want)
    except NotFound:  # what was to be shown is gone already
        yield Change(conversation=conversation.id, kind="deleted")


def _events(
    profile: Profile, conversation: Conversation, last: int, want: Selection
) -> Iterator[Message | Change]:
    mark = profile.mark()
    shown = 0
    for message in newest(conversation, want, last):
        shown = max(shown, message.seq)
        yield message
    for change in profile.follow(conversation.id, since=mark):
        if change.kind == "appended":
            first, last_seq = change.first_seq or 0, change.last_seq or 0
            for message in _above(conversation, max(first - 1, shown), last_seq):
                shown = message.seq
                if want.wants(message):
                    yield message
        else:
            yield change
        if change.kind == "deleted":
            return


def _above(conversation: Conversation, seq: int, upto: int) -> Sequence[Message]:
    """What came after a message, oldest first, hidden ones too: all of it, by one look if there is
    nothing above `upto` yet."""
    found: list[Message] = []
    wanted, cursor = upto - seq, None
    while wanted > 0:
        page = conversation.log(limit=min(wanted, PAGE), cursor=cursor, order="newest", hidden=True)
        found += [message for message in page.items if message.seq > seq]
        wanted, cursor = page.items[-1].seq - seq - 1, page.next
    return found[::-1]


def lines(event: Message | Change, look: Look) -> Iterator[Line]:
    """An event for people; what only concerns programs is left out."""
    if isinstance(event, Message):
        yield from message_lines(event, look)
    elif event.kind in _SAID:
        yield divider(_SAID[event.kind], look)
        yield BLANK
