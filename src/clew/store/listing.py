"""Lists of conversations, newest activity first, each walking one index from its newest end."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from clew.domain.conversations import ConversationInfo, ConversationSummary, ListFilter, Page
from clew.errors import InvalidCursor
from clew.store.backend import Row, Transaction, Value
from clew.store.info import info_of, summary_of

START = (1 << 62, 1 << 62)


def list_page(
    tx: Transaction, profile: str | None, want: ListFilter, limit: int, cursor: str | None,
    pinned_first: bool = False,
) -> Page[ConversationSummary]:  # fmt: skip
    """One page. `profile` None lists every profile. With `pinned_first` the pinned ones come
    before all others, whatever their age."""
    phase, position = _decode(cursor) if cursor else ("p" if pinned_first else "a", START)
    rows: list[Row] = []
    if phase == "p":
        rows = _query(tx, profile, want, True, limit + 1, position)
        if len(rows) <= limit:
            phase, position = "u", START
            rest = _query(tx, profile, want, False, limit + 1 - len(rows), position)
            rows.extend(rest)
    else:
        pinned = False if phase == "u" else want.pinned
        rows = _query(tx, profile, want, pinned, limit + 1, position)
    page = rows[:limit]
    following = None
    if len(rows) > limit:
        last = page[-1]
        at = phase if phase == "a" else ("p" if last[16] else "u")
        following = _encode(at, last[19], last[0])
    return Page(tuple(map(summary_of, page)), following)


def _query(
    tx: Transaction, profile: str | None, want: ListFilter, pinned: bool | None, limit: int,
    after: tuple[int, int],
) -> list[Row]:  # fmt: skip
    if pinned is not None and want.pinned is not None and want.pinned != pinned:
        return []
    params: dict[str, Value] = {
        "source": want.source, "project": want.project, "git_branch": want.git_branch,
        "model": want.model, "automation": _flag(want.automation), "pinned": _flag(pinned),
        "ended": _flag(want.ended), "since": want.since, "title": _pattern(want.title),
        "limit": limit, "active_at": after[0], "no": after[1], "archived": int(want.archived),
    }  # fmt: skip
    if want.until is not None:
        position = min(after, (want.until, 0))  # 0: below every number, so the time is not in it
        params["active_at"], params["no"] = position
    if profile is None:
        return tx.rows("conversation_list_everywhere", **params)
    params["profile"] = profile
    return tx.rows(_statement(want, pinned), **params)


def _statement(want: ListFilter, pinned: bool | None) -> str:
    if pinned:
        return "conversation_list_pinned"
    if want.project is not None:
        return "conversation_list_project"
    return "conversation_list_source" if want.source is not None else "conversation_list"


def children(tx: Transaction, profile: str, no: int, limit: int) -> tuple[ConversationInfo, ...]:
    """Branches and delegates of a conversation, newest first."""
    rows = tx.rows("conversation_list_children", origin=no, profile=profile, limit=limit)
    return tuple(info_of(row) for row in rows)


def _flag(value: bool | None) -> int | None:
    return None if value is None else int(value)


def _pattern(title: str | None) -> str | None:
    if title is None:
        return None
    escaped = title.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{escaped}%"


def _encode(phase: str, active_at: int, no: int) -> str:
    text = json.dumps([phase, active_at, no], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode(cursor: str) -> tuple[str, tuple[int, int]]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        value: Any = json.loads(base64.urlsafe_b64decode(padded))
        phase, active_at, no = value
    except (ValueError, TypeError, binascii.Error):
        raise InvalidCursor(cursor) from None
    if phase not in ("a", "p", "u") or not (isinstance(active_at, int) and isinstance(no, int)):
        raise InvalidCursor(cursor)
    return phase, (active_at, no)
