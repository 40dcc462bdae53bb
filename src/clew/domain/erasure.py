"""Erasure: what is left of a message, what is asked for, and what is reported.

A tombstone keeps what the log needs (seq, uid, role, time, and which calls are answered by which
results) and nothing that anybody said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from clew.domain.parts import Part, Parts, Text, ToolCall, ToolResult

ERASED = "[erased]"
"""What stands where something was said."""
ERASED_META: dict[str, Any] = {"erased": True}
"""The meta of a tombstone."""


def tombstone(parts: Parts) -> Parts:
    """What is left of these parts. Calls and results stay pairs, so that a context stays valid."""
    kept: list[Part] = []
    for part in parts:
        if isinstance(part, ToolCall):
            arguments = "{}" if part.kind == "function" else ERASED
            kept.append(ToolCall(part.id, part.name, arguments, part.kind))
        elif isinstance(part, ToolResult):
            kept.append(ToolResult(part.call_id, ERASED, part.name, part.is_error))
    return tuple(kept) or (Text(ERASED),)


def names_person(key: str, person: str) -> bool:
    """Whether a key (of a binding, a delivery, an alias) is a person's, or holds that: as one of
    the fields of a route, or between characters that are neither letters nor digits."""
    if person == key or person in _fields(key):
        return True
    at = key.find(person)
    while at >= 0:
        before, after = key[at - 1 : at], key[at + len(person) : at + len(person) + 1]
        if not before.isalnum() and not after.isalnum():
            return True
        at = key.find(person, at + 1)
    return False


def _fields(key: str) -> Sequence[str]:
    """The fields of a route's key ("4:chat2:42"); none if it is no such key."""
    found: list[str] = []
    at = 0
    while at < len(key):
        size, colon, _ = key[at:].partition(":")
        if not colon or not size.isdecimal() or len(size) > 6:
            return ()
        at += len(size) + 1
        found.append(key[at : at + int(size)])
        at += int(size)
    return found


class Target(Struct, frozen=True):
    """What is to be erased of one conversation: all of it, or these messages."""

    conversation: str
    whole: bool
    seqs: tuple[int, ...] = ()
    """Of messages of its own, ascending; of a `whole` one: all that are no tombstone yet."""
    why: Literal["asked", "author", "key", "branch", "sub-agent"] = "asked"
    """How it came to be one: named; by its messages' author; by the key that is bound to it;
    because it goes on from, or works for, one that is erased as a whole."""


class ErasurePlan(Struct, frozen=True, kw_only=True):
    """Exactly what an erasure takes, and what it knows to leave."""

    person: str | None = None
    targets: tuple[Target, ...] = ()
    keys: tuple[tuple[str, str, str], ...] = ()
    """(table, source, key) of bindings, deliveries and aliases that hold the person's key."""
    left: tuple[str, ...] = ()
    """What is not taken although it may hold the same, each with what to do about it."""

    @property
    def messages(self) -> int:
        return sum(len(target.seqs) for target in self.targets)

    @property
    def is_empty(self) -> bool:
        return not self.targets and not self.keys


class Trace(Struct, frozen=True):
    """Where something of what was erased was found."""

    kind: Literal["row", "file", "search", "dictionary", "spool"]
    place: str
    """table.column and row, or file and byte. Never what was found."""


class Proof(Struct, frozen=True, kw_only=True):
    """What was looked through after an erasure, and what was found."""

    fragments: int
    """Pieces of the erased text and of its stored bytes that were looked for."""
    values: int
    """Values of rows that were decoded."""
    bytes: int
    """Bytes of files that were read."""
    traces: tuple[Trace, ...] = ()
    missed: int = 0
    """Texts that were not looked for: under 6 bytes, or beyond the first 64 of under 16."""

    @property
    def is_clean(self) -> bool:
        return not self.traces


class Erased(Struct, frozen=True, kw_only=True):
    """What an erasure did."""

    messages: int
    conversations: int
    compactions: int
    """Compactions that lost their body, and are undone."""
    blobs: int
    keys: int
    dictionary: bool
    """Whether the store's compression dictionary was made anew: it held some of the text."""
    proof: Proof
    left: tuple[str, ...] = ()
    """What still holds it beyond this store's reach: backups, replicas, other copies."""

    @property
    def is_proven(self) -> bool:
        return self.proof.is_clean
