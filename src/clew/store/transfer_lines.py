"""What a conversation is when it leaves a store: typed values, one for each row.

They are the lines of clew's own JSONL (docs/reference/clew-jsonl.md): the name of a class's tag and
of its fields are those of the file. Every value says which conversation it belongs to. Times are
microseconds, hashes and uids hexadecimal, bytes base64.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from clew.clock import LATEST
from clew.domain.compactions import AttemptState, BodyItem, Trigger
from clew.domain.conversations import Kind
from clew.domain.messages import Role
from clew.domain.parts import Parts
from clew.domain.turns import TurnState

Time = Annotated[int, Meta(ge=0, le=LATEST)]
Count = Annotated[int, Meta(ge=0, le=1 << 62)]
Number = Annotated[int, Meta(ge=1, le=1 << 62)]
Uid = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class Of(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Belongs to a conversation."""

    conversation: str = field(name="in")


class Facts(Of, frozen=True, kw_only=True, omit_defaults=True, tag="conversation"):
    """The conversation itself: its row. First of its lines."""

    kind: Kind
    source: str
    affinity: str
    created_at: Time
    active_at: Time
    origin: str | None = None
    base: Count = 0
    head: Count = 0
    view: Count = 0
    generation: Count = 0
    fence: Count = 0
    title_user: str | None = None
    title_llm: str | None = None
    title_derived: str | None = None
    title_locked: bool = False
    preview: str | None = None
    cwd: str | None = None
    git_root: str | None = None
    git_branch: str | None = None
    model: str | None = None
    prompt: Hash | None = None
    toolset: Hash | None = None
    attribution: str | None = None
    pinned: bool = False
    archived: bool = False
    automation: bool = False
    read_only: bool = False
    imported_at: Time | None = None
    imported_to: Count | None = None
    ended_at: Time | None = None
    end_reason: str | None = None
    reopened_at: Time | None = None
    meta: dict[str, Any] | None = None
    cuts: Count = 0
    """The highest number of each kind of record, below."""
    attempts: Count = 0
    turns: Count = 0
    calls: Count = 0


class PromptLine(Of, frozen=True, kw_only=True, tag="prompt"):
    """A system prompt that the conversation has, or had. The hash is that of its JSON."""

    hash: Hash
    text: str


class ToolsetLine(Of, frozen=True, kw_only=True, tag="toolset"):
    """The tool schemas that it has, or had."""

    hash: Hash
    schemas: tuple[dict[str, Any], ...]


class BlobLine(Of, frozen=True, kw_only=True, tag="blob"):
    """Bytes of an image or file. Before the line that refers to them by hash."""

    hash: Hash
    data: bytes


class MessageLine(Of, frozen=True, kw_only=True, omit_defaults=True, tag="message"):
    """A message of the log, hidden ones too."""

    seq: Number
    uid: Uid
    role: Role
    parts: Parts
    created_at: Time
    key: str | None = None
    turn: Number | None = None
    author: str | None = None
    api_group: str | None = None
    replaces: Number | None = None
    tokens: Count | None = None
    meta: dict[str, Any] | None = None


class CutLine(Of, frozen=True, kw_only=True, omit_defaults=True, tag="cut"):
    """A cut, undone ones too. Behind the last message that it hides."""

    number: Number
    uid: Uid
    from_seq: Number
    to_seq: Number
    at: Time
    by: str | None = None
    undone_at: Time | None = None


class AttemptLine(Of, frozen=True, kw_only=True, omit_defaults=True, tag="attempt"):
    """A try at a compaction."""

    number: Number
    uid: Uid
    view: Count
    base_generation: Count
    state: AttemptState
    trigger: Trigger
    started_at: Time
    model: str | None = None
    verdict: str | None = None
    summary_error: str | None = None
    deadline: Time | None = None
    ended_at: Time | None = None
    tokens_before: Count | None = None
    tokens_after: Count | None = None


class CompactionLine(Of, frozen=True, kw_only=True, omit_defaults=True, tag="compaction"):
    """A compaction. Behind the last message that it covers and the cuts that it names."""

    generation: Number
    covers_to: Number
    body: tuple[BodyItem, ...]
    kind: Literal["ours", "foreign"]
    created_at: Time
    cuts: tuple[Number, ...] = ()
    attempt: Number | None = None
    tokens_before: Count | None = None
    tokens_after: Count | None = None
    undone_at: Time | None = None
    undone_tokens: Count | None = None
    receipt: dict[str, Any] | None = None


class TurnLine(Of, frozen=True, kw_only=True, omit_defaults=True, tag="turn"):
    """A turn. Before its first message."""

    number: Number
    uid: Uid
    state: TurnState
    first_seq: Number
    started_at: Time
    key: str | None = None
    ended_at: Time | None = None
    error: str | None = None


class CallLine(Of, frozen=True, kw_only=True, omit_defaults=True, tag="model_call"):
    """A model call. Behind the last message that it was given."""

    number: Number
    model: str
    purpose: Literal["turn", "summary", "title", "review"]
    state: Literal["planned", "done", "failed"]
    started_at: Time
    generation: Count = 0
    up_to_seq: Count = 0
    turn: Number | None = None
    after_attempt: Number | None = None
    prompt: Hash | None = None
    toolset: Hash | None = None
    expected_tokens: Count | None = None
    settings: dict[str, Any] | None = None
    input_tokens: Count = 0
    output_tokens: Count = 0
    cached_tokens: Count = 0
    reasoning_tokens: Count = 0
    cost: float | None = None
    latency: Count | None = None
    prefix_hash: str | None = None
    partial: str | None = None
    error: str | None = None
    api_group: str | None = None


class TodoLine(Of, frozen=True, kw_only=True, tag="todo"):
    """An item of the agent's list."""

    number: Number
    text: str
    state: Literal["pending", "active", "done", "dropped"]
    at: Time


class GoalLine(Of, frozen=True, kw_only=True, tag="goal"):
    """What the conversation is for, or was."""

    number: Number
    text: str
    state: Literal["active", "done", "cleared"]
    at: Time


class AliasLine(Of, frozen=True, kw_only=True, tag="alias"):
    """Another id of the conversation."""

    source: str
    foreign_id: str
    from_seq: Count
    kind: Literal["segment", "foreign"]
    state: Literal["claimed", "ambiguous"]
    at: Time


class End(Of, frozen=True, kw_only=True, omit_defaults=True, tag="end"):
    """Last line of a conversation: what must have come before it."""

    messages: Count
    lines: Count
    """Lines of this conversation, this one left out."""
    sha256: Hash
    """Of those lines, each with its line end."""
    waiting: Count = 0
    """Messages of the inbox, which are not in the file."""


Record = CutLine | AttemptLine | CompactionLine | TurnLine | CallLine | TodoLine | GoalLine
"""A row that has a number in its conversation."""
Content = PromptLine | ToolsetLine | BlobLine | MessageLine | AliasLine | Record
Line = Facts | Content | End
