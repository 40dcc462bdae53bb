"""Short names for what contract tests say over and over."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import clew
from clew import Draft, Message, Role, Text, ToolCall, ToolResult
from clew.domain.parts import plain_text

HOLDER, OTHER = "holder-1", "holder-2"
"""Holders that are no processes: only time frees their right."""


def memory_dir() -> Path:
    """A new directory, in memory if possible: a sync costs nothing there."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="clew-", dir=memory if memory.is_dir() else None))


def talk(conv: clew.Conversation, *texts: str) -> list[Message]:
    """Append texts, user and assistant by turns; gives the messages."""
    roles = (clew.user, clew.assistant)
    done = conv.append([roles[at % 2](text) for at, text in enumerate(texts)])
    return [conv.message(seq) for seq in done.seqs]


def calls(*ids: str) -> Draft:
    """An assistant's message with tool calls."""
    return Draft(role=Role.ASSISTANT, parts=tuple(ToolCall(id, "run", "{}") for id in ids))


def result(id: str, text: str = "ok") -> Draft:
    """What a tool answers."""
    return Draft(role=Role.TOOL, parts=(ToolResult(id, text, "run"),))


def texts(messages: Iterable[Message] | clew.ConversationReader) -> list[str]:
    """What is visible, as texts; results and calls by their ids."""
    if isinstance(messages, Iterable):
        return [_said(message) for message in messages]
    return [_said(message) for message in messages.messages()]


def _said(message: Message) -> str:
    part = message.parts[0]
    match part:
        case Text(text=text):
            return text
        case ToolCall(id=id):
            return f"call {id}"
        case ToolResult(call_id=id):
            return f"result {id}"
        case _:
            return type(part).__name__


def context_texts(conv: clew.ConversationReader) -> list[str]:
    """What a model would be given: the compaction's items, then every message above it."""
    inputs = conv.context_inputs()
    found: list[str] = []
    for item, messages in inputs.covered:
        match item:
            case clew.Inline(parts=parts):
                found.append(f"<{plain_text(parts)}>")
            case clew.Stub(text=text):
                found.append(f"[{text}]")
            case _:
                found += texts(messages)
    return found + texts(inputs.messages)


def summary(text: str) -> clew.Inline:
    return clew.Inline(Role.USER, (Text(text),))


def compact(
    conv: clew.Conversation, covers_to: int, *body: clew.Ref | clew.Stub | clew.Inline,
) -> clew.Compaction:  # fmt: skip
    """Open an attempt and commit it."""
    number = conv.open_attempt().number
    return conv.commit_attempt(number, proposal(covers_to, *body))


def proposal(covers_to: int, *body: clew.Ref | clew.Stub | clew.Inline) -> clew.Proposal:
    items = body or (summary(f"1-{covers_to}"),)
    return clew.Proposal(covers_to=covers_to, body=items, tokens_before=100, tokens_after=10)


def begun(outcome: object) -> clew.TurnHandle:
    """The turn that was really opened."""
    assert hasattr(outcome, "record"), outcome
    return outcome  # pyright: ignore[reportReturnType]


def seqs(messages: Sequence[Message]) -> list[int]:
    return [message.seq for message in messages]
