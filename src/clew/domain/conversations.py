"""Conversations: the facts of one, the filters of a list, and pages."""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from clew.domain.text import a_text, storable

Kind = Literal["root", "branch", "delegate"]
TitleOrigin = Literal["user", "llm", "derived"]
T = TypeVar("T")


class Page(Struct, Generic[T], frozen=True):
    """A page of a listing. `next` is the cursor of the following page, None at the end."""

    items: tuple[T, ...]
    next: str | None = None


class Workspace(Struct, frozen=True, omit_defaults=True):
    """Where an agent works: folder, repository root and branch."""

    cwd: str | None = None
    git_root: str | None = None
    git_branch: str | None = None


class ConversationSummary(Struct, frozen=True, kw_only=True):
    """What a list shows of a conversation. Times in microseconds."""

    id: str
    profile: str
    kind: Kind
    source: str
    title: str | None
    title_origin: TitleOrigin | None
    preview: str | None
    message_count: int
    """Messages that are visible, inherited ones included."""
    waiting: int
    """Messages in the inbox."""
    turn: int | None
    """Number of the open turn."""
    cwd: str | None
    git_root: str | None
    git_branch: str | None
    model: str | None
    pinned: bool
    archived: bool
    created_at: int
    active_at: int
    ended_at: int | None
    end_reason: str | None

    @property
    def ended(self) -> bool:
        return self.ended_at is not None


class ConversationInfo(ConversationSummary, frozen=True, kw_only=True):
    """The whole row of a conversation, as values."""

    origin: str | None
    """Id of the conversation this is a branch or delegate of."""
    base: int
    head: int
    view: int
    generation: int
    fence: int
    title_locked: bool
    affinity: str
    """Scope for provider prompt caches; minted anew for every conversation."""
    attribution: str | None
    """A delegate's origin's affinity."""
    automation: bool
    read_only: bool
    imported_at: int | None
    reopened_at: int | None
    meta: dict[str, Any] | None
    prompt_hash: str | None = None
    """SHA-256 of the system prompt, and of the tool set below."""
    toolset_hash: str | None = None

    def summary(self) -> ConversationSummary:
        """The part that a list shows."""
        names = ConversationSummary.__struct_fields__
        return ConversationSummary(**{name: getattr(self, name) for name in names})


class NewConversation(Struct, frozen=True, kw_only=True):
    """What a caller may say about a conversation it creates."""

    id: str | None = None
    """An id from `ids.conversation()`, as the idempotency key of the creation."""
    source: str | None = None
    """Where it comes from; "api" when None, or the origin's for a branch or delegate."""
    title: str | None = None
    workspace: Workspace = Workspace()
    model: str | None = None
    prompt: str | None = None
    toolset: tuple[dict[str, Any], ...] | None = None
    automation: bool = False
    read_only: bool = False
    archived: bool = False
    meta: dict[str, Any] | None = None
    created_at: int | None = None
    imported_at: int | None = None


class ListFilter(Struct, frozen=True, kw_only=True):
    """Which conversations a list shows; None means any. Sub-agents are listed under their origin
    (`children`), never here."""

    source: str | None = None
    project: str | None = None
    """A git root; the folder of a conversation that has none."""
    git_branch: str | None = None
    model: str | None = None
    title: str | None = None
    """Part of the shown title; A to Z in any case."""
    since: int | None = None
    """Active at this time (microseconds) or later."""
    until: int | None = None
    """Active before this time."""
    pinned: bool | None = None
    archived: bool = False
    ended: bool | None = None
    automation: bool | None = None

    def __post_init__(self) -> None:
        for what in ("source", "project", "git_branch", "model", "title"):
            text: str | None = getattr(self, what)
            if text is not None:
                a_text(what, text)
                storable(what, text)


def shown_title(
    user: str | None, llm: str | None, derived: str | None
) -> tuple[str | None, TitleOrigin | None]:
    """A person's title wins over a model's, that over a derived one: by order, not by a rule."""
    if user is not None:
        return user, "user"
    if llm is not None:
        return llm, "llm"
    if derived is not None:
        return derived, "derived"
    return None, None
