"""Stores that several jobs need, made by clew itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import clew
from benchmarks import clew_adapter, floor, kept, workload
from benchmarks.jobs import Bench, say
from benchmarks.workload import Chat

_KINDS = 200
_LIST_SOURCES = ("cli", "web", "api")


def rows_of(
    bench: Bench, label: str, chats: list[Chat], base: Path | None = None
) -> dict[str, list[floor.Append]]:
    """The rows that clew writes for some conversations, for the floor to write again.

    `base`: the store they are for, because its dictionary decides what they look like. A new
    store has none below 10,000 messages, so write fewer into it.
    """
    path = bench.path(label)
    if base is not None:
        floor.clone(base, path)
    clew_adapter.write(path, chats)
    return floor.written(path, {chat.name for chat in chats})


def grown(size: int) -> Path:
    """A closed store of `size` messages, with its dictionary and its search file complete.
    Clone it before writing."""
    return _kept(f"grown-{size}", lambda path: _grow(path, size))


def listed(count: int) -> Path:
    """A closed store of `count` conversations: three sources, 25 projects, two profiles."""
    return _kept(f"listed-{count}", lambda path: _list(path, count))


def prepare() -> None:
    """Make all that a quick run uses."""
    for size in (20_000, 200_000):
        grown(size)
    for count in (25_000, 125_000):
        listed(count)


def _grow(path: Path, size: int) -> None:
    clew_adapter.write(path, workload.grown(size))
    clew_adapter.maintain(path)


def _list(path: Path, count: int) -> None:
    """clew makes one conversation of each kind; the rest are copies of these rows, since a list
    reads no other table."""
    write_kinds(path)
    floor.multiply_conversations(path, count)


def write_kinds(path: Path | str) -> None:
    """A conversation of each kind. Twenty are pinned; one in ten belongs to another profile."""
    with clew.open(path) as store:
        for number in range(_KINDS):
            profile = store.profile(clew_adapter.PROFILE if number % 10 else "another")
            folder = f"/src/project-{number % 25}"
            conversation = profile.create(
                source=_LIST_SOURCES[number % len(_LIST_SOURCES)],
                title=f"Conversation about the {number}th thing",
                workspace=clew.Workspace(cwd=folder, git_root=folder, git_branch="main"),
            )
            conversation.append([clew.user(workload.Writer(number).text(200))])
            if number in range(1, _KINDS, 10):
                conversation.pin()


def _kept(name: str, fill: Callable[[Path], None]) -> Path:
    """The store of this name, made now if it is not there."""
    if not kept.has(name):
        say(f"    making the store {name}")
        kept.make(name, fill)
    return kept.path(name)
