"""Search: what a person asks for and what is found. Times in microseconds since 1970-01-01 UTC."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from clew.domain.messages import Role, known_role
from clew.domain.text import a_text, exact
from clew.errors import InputError

Order = Literal["newest", "relevance"]
State = Literal["ready", "behind", "missing", "unusable"]
MAX_LIMIT = 200


class SearchQuery(Struct, frozen=True, kw_only=True):
    """What to look for; None means any.

    `text`: words (all of them), "phrases", begin*, -excluded, this OR that. Nothing in it is an
    error: a text without any word (`->`) finds nothing, an empty one everything that passes the
    filters. Case, diacritics and width do not matter; Chinese, Japanese and Korean are found as
    substrings, down to one character.
    """

    text: str = ""
    role: Role | None = None
    tool: str | None = None
    """Messages that hold a call, or a named result, of this tool."""
    source: str | None = None
    model: str | None = None
    project: str | None = None
    """The git root, or the folder of a conversation outside any repository."""
    git_branch: str | None = None
    since: int | None = None
    """The message's time is this or later."""
    until: int | None = None
    """The message's time is earlier than this."""
    conversation: str | None = None
    """Id of one conversation, as a person sees it: what a branch inherits belongs to it."""
    order: Order = "newest"
    """newest: by commit, latest first. relevance: the best 200 of the newest 2,000 hits."""
    hidden: bool = False
    """Also messages that a cut in force hides, or that a later message replaces."""
    archived: bool = False
    """Also archived conversations (a named conversation is searched in any case)."""
    limit: int = 20
    cursor: str | None = None
    """`SearchPage.next` of the page before, from the same query."""

    def __post_init__(self) -> None:
        a_text("text", self.text)
        if self.role is not None and not known_role(self.role):
            raise InputError(f"role is {self.role!r}; give one of {', '.join(Role)}")
        for what in ("since", "until"):
            at: object = getattr(self, what)
            if at is not None and not isinstance(at, int):
                raise InputError(f"{what} is {at!r}; give microseconds since 1970, a whole number")
        if not isinstance(self.limit, int) or not 1 <= self.limit <= MAX_LIMIT:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"limit is {self.limit}; give a number from 1 to {MAX_LIMIT}")
        if self.order not in ("newest", "relevance"):
            raise InputError(f"order is {self.order!r}; give 'newest' or 'relevance'")
        for what in _COMPARED:
            value: str | None = getattr(self, what)
            if value is not None:
                exact(what, value)


_COMPARED = ("tool", "source", "model", "project", "git_branch", "conversation")

Piece = tuple[str, bool]
"""A piece of a snippet, and whether it is highlighted."""


class Hit(Struct, frozen=True, kw_only=True):
    """A message that was found."""

    conversation: str
    title: str | None
    seq: int
    uid: str
    role: Role
    created_at: int
    """The time of the message, not of its conversation."""
    source: str
    snippet: tuple[Piece, ...]

    @property
    def plain(self) -> str:
        """The snippet without highlights."""
        return "".join(text for text, _ in self.snippet)


class SearchPage(Struct, frozen=True, kw_only=True):
    """Hits in the order asked for.

    `next`: the cursor of the following page; None at the end. A page may hold fewer hits than
    asked for, or none, and still have a `next`: the work of one call is bounded.
    `behind`: how many committed messages were not looked at, at most; 0 means the page is complete.
    `scanned`: how many messages were considered.
    `unreadable`: how many of them could not be read, because what is stored is damaged.
    """

    hits: tuple[Hit, ...]
    next: str | None
    behind: int
    scanned: int
    unreadable: int = 0


class SearchStatus(Struct, frozen=True, kw_only=True):
    """State of the search file.

    `state`: ready (every message is indexed), behind (the rest is scanned by each query),
    missing (the next catch-up makes it), unusable (`problem` says why; queries scan the log).
    `behind`: messages not indexed yet, at most. `size`: bytes on disk. `unreadable`: messages that
    could not be read when they were indexed; each query tries them again.
    """

    state: State
    rows: int
    behind: int
    size: int
    unreadable: int = 0
    problem: str | None = None
