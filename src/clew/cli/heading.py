"""What a conversation is, in a few lines above its messages."""

from __future__ import annotations

from collections.abc import Iterator

from clew.cli.lines import BLANK, Line, line
from clew.cli.screen import Piece
from clew.cli.text import one_line, short_id
from clew.cli.times import ago, moment
from clew.domain.conversations import ConversationInfo
from clew.store.findings import counted


def heading(info: ConversationInfo, now: int) -> Iterator[Line]:
    """Title, id, where it belongs, and what is special about it."""
    yield line(0, (title_of(info), "bold"))
    yield line(0, ("id       ", "dim"), (one_line(info.id), "yellow"))
    yield line(0, ("where    ", "dim"), *_where(info))
    times = f"begun {moment(info.created_at)}, active {ago(info.active_at, now)}"
    yield line(0, ("messages ", "dim"), f"{info.message_count:,}  ", (times, "dim"))
    state = list(states(info, now))
    if state:
        yield line(0, ("state    ", "dim"), ("; ".join(state), "yellow"))
    yield BLANK


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
        origin = short_id(info.origin) if info.origin else "one that was deleted"
        at = f" from #{info.base}" if info.base else ""
        yield f"{info.kind} of {origin}{at}"
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
