"""The newest 50 conversations with title, preview and activity, in five kinds of list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import clew
from benchmarks import clew_adapter, floor, stores
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Target, interleave, typical

_SIZES = {"25k": 25_000, "125k": 125_000}
_LIMIT_MS = 0.2
_COLUMNS = "id, coalesce(title_user, title_llm, title_derived), preview, active_at"
_LISTED = "archived = 0 AND kind <> 'delegate' AND binned_at IS NULL"
_NEWEST = f"{_LISTED} ORDER BY active_at DESC, no DESC LIMIT 50"


@dataclass(frozen=True)
class _Kind:
    """A kind of list, and the condition by which the floor finds the same rows."""

    says: str
    ask: Callable[[clew.Store, clew.Profile], Any]
    where: str


_KINDS = {
    "list": _Kind(
        "newest first", lambda store, profile: profile.list(limit=50), "profile = 'bench' AND"
    ),
    "list_pinned_first": _Kind(
        "pinned first",
        lambda store, profile: profile.list(limit=50, pinned_first=True),
        "profile = 'bench' AND pinned = 1 AND",
    ),
    "list_all_profiles": _Kind("all profiles", lambda store, profile: store.list_all(limit=50), ""),
    "list_by_source": _Kind(
        "of one source",
        lambda store, profile: profile.list(clew.ListFilter(source="web"), limit=50),
        "profile = 'bench' AND source = 'web' AND",
    ),
    "list_by_project": _Kind(
        "of one project",
        lambda store, profile: profile.list(clew.ListFilter(project="/src/project-7"), limit=50),
        "profile = 'bench' AND coalesce(git_root, cwd) = '/src/project-7' AND",
    ),
}


def lists(bench: Bench) -> Readings:
    """Warm, as a client that shows the list again and again."""
    for label, size in _SIZES.items():
        yield from _lists(bench, label, stores.listed(size))


def _lists(bench: Bench, label: str, path: Path) -> Readings:
    under = floor.Floor(path)
    with clew.open(path) as store:
        profile = store.profile(clew_adapter.PROFILE)
        for name, kind in _KINDS.items():
            page = kind.ask(store, profile)
            assert len(page.items) == 50, f"{name}: {len(page.items)}"
            sql = f"SELECT {_COLUMNS} FROM conversation WHERE {kind.where} {_NEWEST}"  # noqa: S608
            sides = {
                "clew": _milliseconds(partial(kind.ask, store, profile)),
                "floor": _milliseconds(partial(under.rows, sql)),
            }
            samples = interleave(bench.pick(7, 21), sides)
            yield f"{name}_{label}", samples.plain("clew", "floor", "ms")
    under.close()


def _milliseconds(action: Callable[[], object]) -> Callable[[], float]:
    return lambda: typical(9, action) * 1e3


LISTS = Job(
    "lists",
    lists,
    tuple(
        Target(
            f"{name}_{label}",
            _LIMIT_MS,
            "ms",
            size=size,
            says=f"list 50 of {label} conversations, {kind.says}",
        )
        for label, size in _SIZES.items()
        for name, kind in _KINDS.items()
    ),
    stores=("listed-25000", "listed-125000"),
)
