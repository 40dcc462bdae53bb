"""What comes into a conversation, as it comes: behind clew show --follow."""

from __future__ import annotations

from collections.abc import Iterator

from clew.cli import timeline
from clew.cli.lines import Line
from clew.cli.transcript import Look, message_lines
from clew.domain.changes import Change
from clew.domain.messages import Message
from clew.store.conversation import Conversation
from clew.store.profile import Profile

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


def events(profile: Profile, conversation: Conversation, last: int) -> Iterator[Message | Change]:
    """The newest messages, then everything that happens, until the conversation is deleted."""
    mark = profile.mark()
    shown = 0
    for message in timeline.newest(conversation, last, hidden=False):
        shown = max(shown, message.seq)
        yield message
    for change in profile.follow(conversation.id, since=mark):
        if change.kind == "appended":
            first, last_seq = change.first_seq or 0, change.last_seq or 0
            for seq in range(max(first, shown + 1), last_seq + 1):
                yield conversation.message(seq)
            shown = max(shown, last_seq)
        else:
            yield change
        if change.kind == "deleted":
            return


def lines(event: Message | Change, look: Look) -> Iterator[Line]:
    """An event for people; what only concerns programs is left out."""
    if isinstance(event, Message):
        yield from message_lines(event, look)
    elif event.kind in _SAID:
        yield from timeline.divider(_SAID[event.kind], look)
