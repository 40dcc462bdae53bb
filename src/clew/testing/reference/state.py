"""What the reference store holds: lists and dicts, one `State` for each conversation.

A unit of work changes a copy of the world, which takes the world's place if nothing was raised:
that is all there is to a transaction here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from msgspec import Struct

from clew.clock import Clock
from clew.config import Limits
from clew.domain.boundaries import PendingBoundary
from clew.domain.compactions import Attempt, Compaction
from clew.domain.conversations import Kind, TitleOrigin, Workspace
from clew.domain.cuts import Cut
from clew.domain.messages import Draft, Message
from clew.domain.notes import Goal, Todo
from clew.domain.routes import Received
from clew.domain.turns import OPEN_STATES, Approval, Delivered, ModelCall, Turn
from clew.errors import NotFound
from clew.ids import Ids

T = TypeVar("T")


class Named(Struct, frozen=True):
    """A draft that has its uid; `minted`: the store gave it, so it cannot be there already."""

    draft: Draft
    uid: str
    minted: bool
    at: int
    blobs: dict[str, bytes | None] = {}
    """Bytes by their hash; None: they are here already."""


class Entry(Struct, frozen=True):
    """A row of the inbox."""

    number: int
    named: Named
    state: Literal["waiting", "taken", "withdrawn"] = "waiting"
    seq: int | None = None


class AliasRow(Struct, frozen=True, kw_only=True):
    """Another id of a conversation."""

    profile: str
    source: str
    foreign_id: str
    conversation: str
    from_seq: int
    kind: Literal["segment", "foreign"]
    state: Literal["claimed", "ambiguous", "deleted"]


@dataclass
class State:
    """One conversation. `messages[n]` has seq n + 1; a branch has its inherited ones too."""

    id: str
    profile: str
    source: str
    kind: Kind
    origin: str | None
    base: int
    affinity: str
    attribution: str | None
    created_at: int
    active_at: int
    imported_at: int | None
    workspace: Workspace
    model: str | None
    prompt: str | None
    toolset: tuple[dict[str, Any], ...] | None
    meta: dict[str, Any] | None
    archived: bool
    automation: bool
    read_only: bool
    pinned: bool = False
    messages: list[Message] = field(default_factory=list[Message])
    cuts: list[Cut] = field(default_factory=list[Cut])
    compactions: list[Compaction] = field(default_factory=list[Compaction])
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    turns: list[Turn] = field(default_factory=list[Turn])
    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    approvals: list[Approval] = field(default_factory=list[Approval])
    deliveries: list[Delivered] = field(default_factory=list[Delivered])
    inbox: list[Entry] = field(default_factory=list[Entry])
    boundaries: list[tuple[str, PendingBoundary]] = field(
        default_factory=list[tuple[str, PendingBoundary]]
    )
    """(subscriber, what it was not told yet)"""
    todos: list[Todo] = field(default_factory=list[Todo])
    goals: list[Goal] = field(default_factory=list[Goal])
    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])
    titles: dict[TitleOrigin, str] = field(default_factory=dict[TitleOrigin, str])
    title_locked: bool = False
    view: int = 0
    fence: int = 0
    holder: str | None = None
    held_at: int = 0
    held_ttl: int = 0
    ended_at: int | None = None
    end_reason: str | None = None
    reopened_at: int | None = None
    binned_at: int | None = None

    @property
    def head(self) -> int:
        return len(self.messages)

    @property
    def open_turn(self) -> Turn | None:
        return next((turn for turn in self.turns if turn.state in OPEN_STATES), None)

    @property
    def waiting(self) -> list[Entry]:
        return [entry for entry in self.inbox if entry.state == "waiting"]


class World:
    """All conversations of all profiles, and what finds them."""

    def __init__(self, clock: Clock, ids: Ids, limits: Limits) -> None:
        self.clock, self.ids, self.limits = clock, ids, limits
        self.states: dict[str, State] = {}
        self.bindings: dict[tuple[str, str, str], str] = {}
        self.inbound: dict[tuple[str, str, str, str], Received] = {}
        self.aliases: list[AliasRow] = []
        self.subscribers: dict[tuple[str, str], int] = {}
        """Since when, by profile and name."""

    def write(self, unit: Callable[[World], T]) -> T:
        """Do all of it or, when it raises, nothing."""
        trial = copy.copy(self)
        trial.states = {id: _copy(state) for id, state in self.states.items()}
        trial.bindings = dict(self.bindings)
        trial.inbound = dict(self.inbound)
        trial.aliases = list(self.aliases)
        trial.subscribers = dict(self.subscribers)
        result = unit(trial)
        self.__dict__.update(trial.__dict__)
        return result

    def get(self, profile: str, id: str) -> State:
        """The conversation of an id, inside one profile."""
        state = self.whole(profile, id)
        if state.binned_at is not None:
            raise NotFound("conversation", id)
        return state

    def whole(self, profile: str, id: str) -> State:
        """As `get`, for what may be in the bin."""
        state = self.states.get(id)
        if state is None or state.profile != profile:
            raise NotFound("conversation", id)
        return state


def _copy(state: State) -> State:
    """Values inside are frozen, so copying the lists and dicts is enough."""
    twin = copy.copy(state)
    for name, value in vars(state).items():
        if isinstance(value, list | dict):
            setattr(twin, name, copy.copy(value))  # pyright: ignore[reportUnknownArgumentType]
    return twin
