"""What a conversation is, in a few lines above its messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clew.cli.elsewhere import Name
from clew.cli.lines import BLANK, Line, line
from clew.cli.screen import Piece
from clew.cli.text import one_line, short_id
from clew.cli.times import ago, day, moment
from clew.domain.conversations import ConversationInfo
from clew.store.findings import counted

NAMES = 3
"""Ids in other tools that are shown."""
KINDS = {"branch": "branch", "delegate": "sub-agent"}
"""Kinds of conversations as people call them."""


def heading(
    info: ConversationInfo, now: int, inside: str = "", names: Sequence[Name] = ()
) -> Iterator[Line]:
    """Title, ids, where it belongs, what began in it, and what is special about it."""
    yield line(0, (title_of(info), "bold"))
    yield line(0, ("id       ", "dim"), (one_line(info.id), "yellow"))
    if names:
        more = f", and {len(names) - NAMES:,} more" if len(names) > NAMES else ""
        yield line(0, ("also     ", "dim"), ", ".join(map(str, names[:NAMES])) + more)
    yield line(0, ("where    ", "dim"), *_where(info))
    times = f"begun {moment(info.created_at)}, active {_active(info.active_at, now)}"
    yield line(0, ("messages ", "dim"), f"{info.message_count:,}  ", (times, "dim"))
    if inside:
        yield line(0, ("inside   ", "dim"), (inside, "dim"))
    state = list(states(info, now))
    if state:
        yield line(0, ("state    ", "dim"), ("; ".join(state), "yellow"))
    yield BLANK


def _active(at: int, now: int) -> str:
    age = ago(at, now)
    return moment(at) if age == day(at) else f"{moment(at)} ({age})"


def title_of(info: ConversationInfo) -> str:
    return one_line(info.title or info.preview or "") or "(untitled)"


def _where(info: ConversationInfo) -> Iterator[Piece | str]:
    yield f"{one_line(info.profile)}/{one_line(info.source)}"
    project = info.git_root or info.cwd
    if project:
        yield f"  {one_line(project)}"
    if info.git_branch:
        yield f" ({one_line(info.git_branch)})"
    if info.model:
        yield (f"  {one_line(info.model)}", "dim")


def states(info: ConversationInfo, now: int) -> Iterator[str]:
    """What makes this one unlike others."""
    if info.kind != "root":
        origin = short_id(info.origin) if info.origin else "a conversation that was deleted"
        at = f" from #{info.base}" if info.base else ""
        yield f"{KINDS[info.kind]} of {origin}{at}"
    if info.turn is not None:
        yield f"turn {info.turn} is open"
    if info.waiting:
        yield f"{counted(info.waiting, 'message')} waiting"
    if info.ended_at is not None:
        yield f"ended {ago(info.ended_at, now)} ({one_line(info.end_reason or '')})"
    for flag, word in (
        (info.pinned, "pinned"), (info.archived, "archived"), (info.read_only, "read-only"),
        (info.automation, "owned by an automation"),
    ):  # fmt: skip
        if flag:
            yield word
