"""What stands beside a conversation's log: todos, its goal, presence, and jobs of the store."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Todo(Struct, frozen=True):
    """One item of the agent's list."""

    text: str
    state: Literal["pending", "active", "done", "dropped"] = "pending"


class Goal(Struct, frozen=True):
    """What the conversation is for, as a person set it."""

    number: int
    text: str
    state: Literal["active", "done", "cleared"]
    at: int


class Presence(Struct, frozen=True):
    """Somebody at work: owner, last heartbeat (microseconds), what it says it does."""

    owner: str
    heartbeat: int
    label: str | None = None


class Job(Struct, frozen=True):
    """Housekeeping that must run once at a time."""

    name: str
    holder: str | None
    fence: int
    at: int | None
    ttl: int | None
    done_at: int | None


class JobRight(Struct, frozen=True):
    """The right to run a job, by the same rule as a conversation's."""

    name: str
    fence: int
    holder: str
