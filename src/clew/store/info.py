"""The facts of a conversation from its row. Apart, because a list needs nothing else."""

from __future__ import annotations

from typing import Any

from clew.domain.conversations import ConversationInfo, ConversationSummary, shown_title
from clew.domain.values import json_value


def info_of(row: tuple[Any, ...]) -> ConversationInfo:
    """From the columns of the `info` macro."""
    title, title_origin = shown_title(row[12], row[13], row[14])
    return ConversationInfo(
        id=row[1], profile=row[2], kind=row[3], source=row[4], origin=row[5], base=row[6],
        head=row[7], view=row[8], generation=row[9], fence=row[10], turn=row[11],
        title=title, title_origin=title_origin, title_locked=bool(row[15]), preview=row[16],
        message_count=row[17], waiting=row[18], cwd=row[19], git_root=row[20],
        git_branch=row[21], model=row[22], affinity=row[23], attribution=row[24],
        pinned=bool(row[25]), archived=bool(row[26]), automation=bool(row[27]),
        read_only=bool(row[28]), created_at=row[29], active_at=row[30], imported_at=row[31],
        ended_at=row[32], end_reason=row[33], reopened_at=row[34],
        meta=json_value(row[35]),
        prompt_hash=None if row[37] is None else row[37].hex(),
        toolset_hash=None if row[38] is None else row[38].hex(),
    )  # fmt: skip


def summary_of(row: tuple[Any, ...]) -> ConversationSummary:
    """From the columns of the `summary` macro."""
    title, title_origin = shown_title(row[5], row[6], row[7])
    return ConversationSummary(
        id=row[1], profile=row[2], kind=row[3], source=row[4], title=title,
        title_origin=title_origin, preview=row[8], message_count=row[9], waiting=row[10],
        turn=row[11], cwd=row[12], git_root=row[13], git_branch=row[14], model=row[15],
        pinned=row[16] == 1, archived=row[17] == 1, created_at=row[18], active_at=row[19],
        ended_at=row[20], end_reason=row[21],
    )  # fmt: skip
