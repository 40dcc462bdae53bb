"""What a reader of another tool's format yields, in the order of the source.

A reader says what is there and decides nothing about the log: which record goes where, what is
there already, what becomes a cut or a branch, is decided in one place for all formats (`landing`).
All times are microseconds since 1970-01-01 UTC.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from clew.domain.compactions import Inline
from clew.domain.conversations import TitleOrigin, Workspace
from clew.domain.messages import Role
from clew.domain.parts import Parts
from clew.domain.turns import Spent, Usage

__all__ = [
    "ROOT", "Chat", "Compacted", "Damaged", "Event", "Fork", "Kept", "Named", "Paused", "Record",
    "Rewound", "Skipped", "Spent", "Titled", "Usage", "Used", "Warned",
]  # fmt: skip

ROOT = ""
"""As a `parent`: the record begins its conversation anew, beside the first one (trees only)."""


class Fork(Struct, frozen=True):
    """Where a conversation left another of the same format: after `record`, or at its newest
    record when that is None."""

    chat: str
    record: str | None = None
    copied: bool = False
    """Whether the source has the other's records too, from the first to `record`."""


class Chat(Struct, frozen=True, kw_only=True):
    """A conversation of the source. Comes before its first record; when it comes again, what it
    gives (not None) replaces what it gave before."""

    id: str
    """Its own id in that tool, or the source's `id` where the tool gives none."""
    title: str | None = None
    title_origin: TitleOrigin = "llm"
    """Who made the title: "user" when a person typed it, "derived" when it is only a first line."""
    created_at: int | None = None
    workspace: Workspace = Workspace()
    model: str | None = None
    prompt: str | None = None
    """The system prompt, where the format keeps it outside the messages."""
    tools: tuple[dict[str, Any], ...] | None = None
    """Tool schemas, as Chat Completions has them."""
    origin: str | None = None
    """Id of the conversation whose sub-agent this is; that one comes first."""
    call: str | None = None
    """Id of the tool call there that began it."""
    fork: Fork | None = None
    automation: bool = False
    meta: dict[str, Any] | None = None
    """Small facts worth keeping: version of the tool, agent's name."""


class Record(Struct, frozen=True, kw_only=True):
    """One record of the source that is one message."""

    chat: str
    role: Role
    parts: Parts
    id: str | None = None
    """Its own id, unique in the chat. None: it is known by what it says and all before it."""
    parent: str | None = None
    """Id of the record it follows, skipped ones bridged. None: the one before it in the chat."""
    content: bytes = b""
    """Of a record without id: its bytes in the source (or a canonical form of what it says)."""
    created_at: int | None = None
    author: str | None = None
    api_group: str | None = None
    """The same for all records that were one API message."""
    spent: Spent | None = None
    """Counted once for each api_group; of several the largest counts are kept."""
    workspace: Workspace | None = None
    """Where the agent was at this record, if the format says."""
    model: str | None = None
    """Of the record or the turn, if the format says."""
    meta: dict[str, Any] | None = None
    """What else of the record is worth keeping; becomes `meta["import"]`."""


class Used(Struct, frozen=True, kw_only=True):
    """A model call that the source tells apart from its messages. `group` names it in the chat."""

    chat: str
    group: str
    spent: Spent
    at: int | None = None


class Kept(Struct, frozen=True):
    """In a compaction's body: the messages first..last (ids of records) stand there verbatim."""

    first: str
    last: str


class Compacted(Struct, frozen=True, kw_only=True):
    """The source compacted here: for the model, `body` stands for all up to `after`."""

    chat: str
    id: str
    """Of the boundary, unique in the chat."""
    after: str | None = None
    """Id of the last record that it covers. None: the newest so far."""
    body: tuple[Kept | Inline, ...] = ()
    """Summary and what else the tool put in place. Records that were only inserted again are
    `Kept`, where they can be told."""
    tokens_before: int | None = None
    tokens_after: int | None = None
    at: int | None = None
    receipt: dict[str, Any] | None = None
    """What else the source says: trigger, window ids, opaque items."""


class Rewound(Struct, frozen=True, kw_only=True):
    """At this place the tool took back the record `first` and all after it."""

    chat: str
    first: str
    by: str | None = None


class Titled(Struct, frozen=True, kw_only=True):
    """The conversation was given a title."""

    chat: str
    title: str
    origin: TitleOrigin = "llm"


class Named(Struct, frozen=True, kw_only=True):
    """Another id of the tool that names this conversation; messages from here on were known
    under it (a segment of a chain)."""

    chat: str
    id: str


class Skipped(Struct, frozen=True):
    """Something that is not imported: its kind in the source's own words, and how many."""

    kind: str
    count: int = 1


class Damaged(Struct, frozen=True):
    """Something that cannot be read: where ("line 17") and why. What follows is read."""

    where: str
    reason: str


class Paused(Damaged, frozen=True):
    """A followed source was read as far as it goes now. Nothing is damaged; but that is what all
    readers pass on as it comes, so this reaches whoever drives them."""


class Warned(Struct, frozen=True):
    """Something a person should know, such as a lineage that could not be told."""

    text: str


Event = Chat | Record | Used | Compacted | Rewound | Titled | Named | Skipped | Damaged | Warned
