"""Which rows of Hermes' `sessions` table are one conversation.

Hermes ends a session with the reason "compression" and goes on in a child of it; branches,
delegates and sessions of tools are children by the same column. A chain of such rotations is one
conversation only when every hop is beyond doubt. Where one is not, nothing is guessed: its sessions
stand alone. All rows come from one snapshot, and nothing in them can make these functions raise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

Value = str | bytes | int | float | None
Kin = Literal["continuation", "branch", "delegate", "tool"]
Kind = Literal["root", "branch", "delegate"]

_MARKS: dict[str, Kin] = {"_branched_from": "branch", "_delegate_from": "delegate"}
_NAMED = 8
"""Ids that a warning names; of more it says how many."""


class Row(Struct, frozen=True, kw_only=True):
    """A row of `sessions`, as far as lineage goes: whatever SQLite holds there."""

    id: Value
    source: Value = "cli"
    parent: Value = None
    config: Value = None
    """`model_config`: JSON text, or anything else."""
    ended: Value = None
    reason: Value = None

    @property
    def is_rotated(self) -> bool:
        """Whether it says that it goes on in a child."""
        return self.ended is not None and self.reason == "compression"


Children = Mapping[Value, Sequence[Row]]


class Chain(Struct, frozen=True):
    """A chain of rotations, root first. `end`: its last session is still live, was ended for
    another reason, or was rotated and has no child."""

    ids: tuple[str, ...]
    end: Literal["live", "ended", "childless"]


class Broken(Struct, frozen=True):
    """The sessions up to the hop that is in doubt, and why it is."""

    ids: tuple[str, ...]
    why: str


class Lineage(Struct, frozen=True, kw_only=True):
    """The sessions of one conversation, root first."""

    ids: tuple[str, ...]
    kind: Kind = "root"
    parent: str | None = None
    """Of a branch or delegate: the session it comes from."""
    claimed: str | None = None
    """The session that its root names as parent, where that could not be taken."""
    is_live: bool = False


def children_of(rows: Iterable[Row]) -> Children:
    """The children of each session, in the order of the rows."""
    found: dict[Value, list[Row]] = {}
    for row in rows:
        if isinstance(row.parent, str) and row.parent:
            found.setdefault(row.parent, []).append(row)
    return found


def kin(row: Row, parent: str) -> Kin | None:
    """What a child is to its parent; None when what it says of itself cannot be trusted."""
    if isinstance(row.source, str) and row.source.casefold() == "tool":
        return "tool"
    if not isinstance(row.source, str) or not row.source:
        return None
    if row.config is None:
        return "continuation"
    config = _object(row.config)
    if config is None:
        return None
    marks = [mark for mark in _MARKS if mark in config]
    if not marks:
        return "continuation"
    if len(marks) > 1 or config[marks[0]] != parent:
        return None
    return _MARKS[marks[0]]


def _object(value: Value) -> dict[str, Any] | None:
    if not isinstance(value, str):
        return None
    try:
        found = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return cast(dict[str, Any], found) if isinstance(found, dict) else None


def continuations(parent: str, children: Children) -> list[Row] | None:
    """The children that are neither branch, delegate nor tool; None when one of them is
    malformed. All are looked at before any is counted."""
    found = [(row, kin(row, parent)) for row in children.get(parent, ())]
    if any(each is None for _, each in found):
        return None
    return [row for row, each in found if each == "continuation"]


def walk(start: Row, children: Children) -> Chain | Broken:
    """Follow the rotations from `start`, which has an id, however many there are."""
    ids, row = [cast(str, start.id)], start
    seen: set[Value] = {start.id}
    while row.is_rotated:
        found = continuations(ids[-1], children)
        if found is None:
            return Broken(tuple(ids), f"a child of {ids[-1]!r} is malformed")
        if not found:
            return Chain(tuple(ids), "childless")
        if len(found) > 1:
            return Broken(tuple(ids), f"{ids[-1]!r} has {len(found)} continuations")
        row = found[0]
        if not isinstance(row.id, str) or not row.id:
            return Broken(tuple(ids), f"the continuation of {ids[-1]!r} has no id")
        if row.id in seen:
            return Broken(tuple(ids), f"{ids[-1]!r} goes on in {row.id!r}, which came before it")
        seen.add(row.id)
        ids.append(row.id)
    if row.ended is not None:
        return Chain(tuple(ids), "ended")
    if row.reason is not None:
        return Broken(tuple(ids), f"{ids[-1]!r} has an end reason and has not ended")
    if row is not start and continuations(ids[-1], children) != []:
        return Broken(tuple(ids), f"{ids[-1]!r} has not ended and has a child")
    return Chain(tuple(ids), "live")


class _Finding:
    """The walk over all sessions of a file."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows: dict[str, Row] = {}
        for row in rows:
            if isinstance(row.id, str) and row.id:
                self.rows.setdefault(row.id, row)
        self.children = children_of(self.rows.values())
        self.chains: list[tuple[tuple[str, ...], bool]] = []
        """Ids, and whether the last of them is live."""
        self.done: set[str] = set()
        self.broken: set[str] = set()
        self.warnings: list[str] = []

    def goes_on(self, row: Row) -> bool:
        """Whether it says to be the continuation of a rotated session."""
        parent = self.parent(row)
        return parent is not None and parent.is_rotated and self.kin(row) == "continuation"

    def parent(self, row: Row) -> Row | None:
        return self.rows.get(row.parent) if isinstance(row.parent, str) else None

    def kin(self, row: Row) -> Kin | None:
        return kin(row, cast(str, row.parent))

    def all(self) -> list[Lineage]:
        starts = deque(id for id, row in self.rows.items() if not self.goes_on(row))
        while starts:
            starts.extend(self.one(starts.popleft()))
        for id in self.rows:  # what no start leads to goes round in a circle
            self.one(id)
        return [self.lineage(ids, is_live) for ids, is_live in self.chains]

    def one(self, id: str) -> list[str]:
        """Settle the chain that begins here; the ids of chains that begin where it broke."""
        if id in self.done:
            return []
        row = self.rows[id]
        if not row.is_rotated:
            self.add((id,), row.ended is None)
            return []
        chain = walk(row, self.children)
        if isinstance(chain, Chain):
            self.add(chain.ids, chain.end == "live")
            return []
        for each in chain.ids:
            self.add((each,), False)
        self.broken.update(chain.ids)
        children = self.children.get(chain.ids[-1], ())
        beyond = [cast(str, child.id) for child in children if self.kin(child) == "continuation"]
        named = list(dict.fromkeys([*chain.ids, *beyond]))
        self.warnings.append(
            f"sessions {_names(named)} are kept apart: {chain.why}, so which of them are one "
            "conversation is in doubt"
        )
        return beyond

    def add(self, ids: tuple[str, ...], is_live: bool) -> None:
        self.done.update(ids)
        self.chains.append((ids, is_live))

    def lineage(self, ids: tuple[str, ...], is_live: bool) -> Lineage:
        row, parent = self.rows[ids[0]], self.parent(self.rows[ids[0]])
        if parent is None or parent is row:
            claimed = row.parent if isinstance(row.parent, str) and row.parent else None
            return Lineage(ids=ids, is_live=is_live, claimed=claimed)
        origin = cast(str, parent.id)
        match self.kin(row):
            case "branch":
                return Lineage(ids=ids, kind="branch", parent=origin, is_live=is_live)
            case "delegate" | "tool":
                return Lineage(ids=ids, kind="delegate", parent=origin, is_live=is_live)
            case "continuation" if parent.reason == "branched":  # before there were marks
                return Lineage(ids=ids, kind="branch", parent=origin, is_live=is_live)
            case "continuation" if parent.reason != "compression" and origin not in self.broken:
                return Lineage(ids=ids, kind="delegate", parent=origin, is_live=is_live)
            case "continuation":
                pass
            case None if not parent.is_rotated:
                self.warnings.append(
                    f"session {ids[0]!r} is kept apart: what it says of its parent {origin!r} is "
                    "malformed"
                )
            case None:
                pass  # its parent's chain broke by it and is warned of
        return Lineage(ids=ids, is_live=is_live, claimed=origin)


def lineages(rows: Iterable[Row]) -> tuple[list[Lineage], list[str]]:
    """The conversations that these sessions are, those that others come from before them; and
    what a person should know of those that are in doubt. Rows without an id are left out."""
    finding = _Finding(rows)
    found = finding.all()
    return _in_order(found, finding.warnings), finding.warnings


def _in_order(found: Sequence[Lineage], warnings: list[str]) -> list[Lineage]:
    """Parents first. One that comes from itself, by whatever way, comes from nothing."""
    home = {id: lineage for lineage in found for id in lineage.ids}
    ordered: list[Lineage] = []
    placed: set[str] = set()
    for lineage in found:
        waiting: list[Lineage] = []
        on_the_way: set[str] = set()
        each: Lineage | None = lineage
        while each is not None and each.ids[0] not in placed:
            if each.ids[0] in on_the_way:
                warnings.append(
                    f"session {waiting[-1].ids[0]!r} is kept apart: it comes, by others, from "
                    "itself"
                )
                waiting[-1] = Lineage(
                    ids=waiting[-1].ids, claimed=waiting[-1].parent, is_live=waiting[-1].is_live
                )
                break
            on_the_way.add(each.ids[0])
            waiting.append(each)
            each = None if each.parent is None else home[each.parent]
        placed.update(each.ids[0] for each in waiting)
        ordered += reversed(waiting)
    return ordered


def _names(ids: Sequence[str]) -> str:
    named = ", ".join(repr(id) for id in ids[:_NAMED])
    return named if len(ids) <= _NAMED else f"{named} and {len(ids) - _NAMED} more"
