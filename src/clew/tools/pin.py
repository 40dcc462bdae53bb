"""The fold of S35.3: the tools of a conversation from now on, of those it had and those there are.

The order of a request's tools is part of what a provider's cache holds, so a tool that stays keeps
its place, and a new one comes last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from clew.providers.api import ToolSpec


def fold(
    pinned: Sequence[ToolSpec] | None, there: Iterable[ToolSpec], away: Callable[[str], bool]
) -> tuple[ToolSpec, ...]:
    """Fold the tools that are there on the pinned order.

    In both: the saved place, the fresh schema. Pinned only: kept as it is when `away` says that
    where it comes from cannot be reached just now, else dropped. New: at the tail, in the order of
    `there`. None of pinned: all that are there. A name that comes twice counts once, the first.
    """
    fresh: dict[str, ToolSpec] = {}
    for spec in there:
        fresh.setdefault(spec.name, spec)
    folded: dict[str, ToolSpec] = {}
    for spec in pinned or ():
        if spec.name in fresh:
            folded.setdefault(spec.name, fresh[spec.name])
        elif away(spec.name):
            folded.setdefault(spec.name, spec)
    return tuple((folded | {n: s for n, s in fresh.items() if n not in folded}).values())
