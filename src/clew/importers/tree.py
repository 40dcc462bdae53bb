"""Trees of messages: skipped nodes are bridged, cycles broken, and the path that a person last
looked at comes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from clew.importers.records import ROOT


class Node(NamedTuple):
    """What of a node its place depends on."""

    parent: str | None
    kept: bool
    """Whether it becomes a record; if not, its children go to what it hangs on."""
    at: int | None = None
    """Microseconds; None when nobody says."""


class Placed(NamedTuple):
    """A kept node, and the kept node that it follows (ROOT when there is none)."""

    id: str
    parent: str


def placed(nodes: Mapping[str, Node], current: str | None) -> list[Placed]:
    """The kept nodes: first the path down to `current`, then all others, parents before children
    and in their order in `nodes`. Where `current` names no node, the newest leaf stands for it. A
    parent that is not there, and one link of every cycle, count as none.
    """
    above = _above(nodes)
    below: dict[str, list[str]] = {}
    for id, node in nodes.items():
        if node.kept:
            below.setdefault(above[id], []).append(id)
    order = _parents_first(below)
    leaf = _nearest(nodes, above, current) or _newest_leaf(nodes, above, below, order)
    path = _path(leaf, above)
    main = frozenset(path)
    return [Placed(id, above[id]) for id in [*path, *(id for id in order if id not in main)]]


def orphans(nodes: Mapping[str, Node]) -> int:
    """How many nodes name a parent that is not there."""
    return sum(1 for node in nodes.values() if node.parent and node.parent not in nodes)


def _above(nodes: Mapping[str, Node]) -> dict[str, str]:
    """For each node the nearest kept node above it. Every node is passed once."""
    above: dict[str, str] = {}
    for start in nodes:
        path: dict[str, None] = {}
        at: str | None = start
        while at is not None and at in nodes and at not in above and at not in path:
            path[at] = None
            at = nodes[at].parent
        nearest = _nearest(nodes, above, at)
        for id in reversed(path):
            above[id] = nearest
            if nodes[id].kept:
                nearest = id
    return above


def _nearest(nodes: Mapping[str, Node], above: Mapping[str, str], at: str | None) -> str:
    """Of a node whose place is known, itself or what is above it; ROOT of all others."""
    if at is None or at not in above:
        return ROOT
    return at if nodes[at].kept else above[at]


def _parents_first(below: Mapping[str, list[str]]) -> list[str]:
    order: list[str] = []
    rest = list(reversed(below.get(ROOT, [])))
    while rest:
        id = rest.pop()
        order.append(id)
        rest.extend(reversed(below.get(id, [])))
    return order


def _newest_leaf(
    nodes: Mapping[str, Node],
    above: Mapping[str, str],
    below: Mapping[str, list[str]],
    order: list[str],
) -> str:
    """A node is at least as new as those above it: many tools leave times out."""
    newest: dict[str, int] = {ROOT: 0}
    best = ROOT
    for id in order:
        newest[id] = max(nodes[id].at or 0, newest[above[id]])
        if id not in below and newest[id] >= newest[best]:
            best = id
    return best


def _path(leaf: str, above: Mapping[str, str]) -> list[str]:
    path: list[str] = []
    while leaf != ROOT:
        path.append(leaf)
        leaf = above[leaf]
    return path[::-1]
