"""Short conversations for tests of the ledger, and what the ledger makes of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from clew.compaction.ledger import Epoch, Row, write_epoch
from clew.compaction.ledger.gather import gather
from clew.domain.messages import Message, Role
from clew.domain.parts import Text, ToolCall, ToolResult

DAY = 1_764_374_400_000_000
"""2025-11-29, in microseconds."""


def message(seq: int, role: Role, *parts: Text | ToolCall | ToolResult, at: int = DAY) -> Message:
    return Message.of(seq=seq, uid=f"{seq:032x}", role=role, parts=parts, created_at=at)


def user(seq: int, text: str) -> Message:
    return message(seq, Role.USER, Text(text))


def agent(seq: int, text: str) -> Message:
    return message(seq, Role.ASSISTANT, Text(text))


def call(seq: int, name: str, **arguments: Any) -> Message:
    parts = ToolCall(f"call-{seq}", name, json.dumps(arguments))
    return message(seq, Role.ASSISTANT, parts)


def result(seq: int, text: str, *, of: int | None = None, is_error: bool = False) -> Message:
    """The answer to the call of the message before, or of the message `of`."""
    return message(seq, Role.TOOL, ToolResult(f"call-{of or seq - 1}", text, None, is_error))


def said(*texts: str, first: int = 1) -> list[Message]:
    """These texts of a user, each acknowledged by the agent."""
    out: list[Message] = []
    for at, text in enumerate(texts):
        out += [user(first + 2 * at, text), agent(first + 2 * at + 1, "Noted.")]
    return out


def rows(messages: Sequence[Message], *kinds: str) -> list[Row]:
    """All rows of these messages, of these kinds if any are given."""
    return [row for row in gather((), messages).rows if not kinds or row.kind in kinds]


def epoch(
    messages: Sequence[Message], *earlier: Epoch, room: int = 20_000, number: int = 1
) -> Epoch:
    return write_epoch(earlier, messages, number=number, room=room, count=len)
