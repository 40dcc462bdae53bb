"""Naming one message of a conversation on the command line."""

from __future__ import annotations

from clew.domain.messages import Message
from clew.errors import NotFound
from clew.store.conversation import Conversation


def message_of(conversation: Conversation, name: str) -> Message:
    """By seq (12, #12), uid or key. NotFound."""
    number = name.removeprefix("#")
    if number.isascii() and number.isdecimal() and len(number) < 19:
        try:
            return conversation.message(int(number))
        except NotFound:
            if name != number:
                raise
    return conversation.message(name)
