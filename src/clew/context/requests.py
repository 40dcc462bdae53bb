"""Which requests of a person still want an answer: what no compaction may put out of sight."""

from __future__ import annotations

from collections.abc import Sequence

from clew.domain.messages import Message, Role
from clew.domain.parts import call_ids

LIVE, LIVE_TEXT = 16, 4_000
"""So many of the newest at most, and so many characters beside the newest: in a room where people
talk among themselves, or where an agent answers through a tool, nothing looks like an answer."""


def live_requests(messages: Sequence[Message]) -> list[Message]:
    """The newest messages of a user that nothing has answered yet, oldest first; when all are
    answered, the last one. Empty only when no user speaks.

    An answer is a message of the assistant that calls no tool. `messages` are visible ones, in
    their order; they may begin anywhere.
    """
    found: list[Message] = []
    for message in reversed(messages):
        if message.role is Role.USER and message.parts:
            found.append(message)
        elif is_answer(message) and found:
            break
    found = found[:1] if _answered(messages) else _newest(found)
    found.reverse()
    return found


def _newest(found: list[Message]) -> list[Message]:
    """Of messages, the newest first, those within the bounds."""
    left = LIVE_TEXT
    for at, message in enumerate(found[:LIVE]):
        left -= len(message.text) if at else 0
        if left < 0:
            return found[:at]
    return found[:LIVE]


def is_answer(message: Message) -> bool:
    """Whether a message ends an exchange: the assistant speaks and calls no tool."""
    return message.role is Role.ASSISTANT and bool(message.parts) and not call_ids(message.parts)


def _answered(messages: Sequence[Message]) -> bool:
    """Whether an answer stands behind the last message of a user."""
    for message in reversed(messages):
        if message.role is Role.USER and message.parts:
            return False
        if is_answer(message):
            return True
    return False
