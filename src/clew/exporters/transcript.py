"""What an export of one conversation is made of: values, and the messages one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, cast

from msgspec import structs

from clew.context.entries import Entry, entry_of, joined
from clew.domain.chat import BlobReader
from clew.domain.compactions import Compaction
from clew.domain.conversations import ConversationInfo
from clew.domain.cuts import Cut
from clew.domain.messages import Message
from clew.domain.parts import Part, ToolCall, ToolResult
from clew.domain.turns import ModelCall
from clew.store.reader import ConversationReader

CHILDREN = 100_000
"""Branches and sub-agents that are looked at."""


class Transcript(NamedTuple):
    """One conversation. What cuts hide is not in it."""

    info: ConversationInfo
    prompt: str | None
    toolset: tuple[dict[str, Any], ...] | None
    entries: Callable[[], Iterator[Entry]]
    """The messages from the oldest on, what was one for an API as one; each call reads them anew,
    page by page."""
    blob: BlobReader
    compactions: tuple[Compaction, ...] = ()
    cuts: tuple[Cut, ...] = ()
    calls: tuple[ModelCall, ...] = ()
    children: tuple[ConversationInfo, ...] = ()

    @property
    def title(self) -> str:
        """For people."""
        return self.info.title or self.info.preview or "(untitled)"


def transcript(conversation: ConversationReader) -> Transcript:
    """Of a conversation as it is now."""
    info = conversation.info()
    # The first message is enough to be told the prompt, and costs little.
    inputs = conversation.snapshot(min(info.head, 1)).context_inputs()
    return Transcript(
        info=info,
        prompt=inputs.prompt,
        toolset=inputs.toolset,
        entries=lambda: joined(map(entry_of, conversation.messages())),
        blob=conversation.blob,
        compactions=tuple(reversed(conversation.compactions())),
        cuts=conversation.cuts(),
        calls=conversation.calls(),
        children=tuple(reversed(conversation.children(CHILDREN))),
    )


def named(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries, each result with the name of the tool, which most tools leave out."""
    names: dict[str, str] = {}
    for entry in entries:
        names.update((part.id, part.name) for part in entry.parts if isinstance(part, ToolCall))
        if any(isinstance(part, ToolResult) and part.name is None for part in entry.parts):
            entry = entry._replace(parts=tuple(_named(part, names) for part in entry.parts))
        yield entry


def _named(part: Part, names: dict[str, str]) -> Part:
    if isinstance(part, ToolResult) and part.name is None:
        return structs.replace(part, name=names.pop(part.call_id, None))
    return part


def numbers(messages: Iterable[Message]) -> str:
    """The seqs of messages: #7, #12-14, #12,14."""
    runs: list[tuple[int, int]] = []
    for message in messages:
        if runs and message.seq == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], message.seq
        else:
            runs.append((message.seq, message.seq))
    return "#" + ",".join(f"{a}-{z}" if z > a else f"{a}" for a, z in runs)


def kind_of(info: ConversationInfo) -> str:
    """What people call it."""
    return "sub-agent" if info.kind == "delegate" else info.kind


def call_of(info: ConversationInfo) -> str:
    """Id of the tool call that began a sub-agent, where an import told it; else empty."""
    told = (info.meta or {}).get("import")
    call = cast(dict[str, Any], told).get("call") if isinstance(told, dict) else None
    return call if isinstance(call, str) else ""
