"""Which conversations leave a store together, and in which order: an origin before its branches."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from clew.store import conversations
from clew.store.backend import Transaction
from clew.store.copy.conversations import COLUMNS

PAGE = 500
_ID, _PROFILE, _ORIGIN, _BINNED = map(COLUMNS.index, ("id", "profile", "origin", "binned_at"))


def everything(tx: Transaction, profile: str) -> list[str]:
    """All conversations of a profile, archived ones and sub-agents' too."""
    origins: dict[str, str | None] = {}
    after = 0
    while rows := tx.rows("copy_conversation_page", no=after, limit=PAGE):
        after = rows[-1][0]
        for row in (row[2:] for row in rows):
            if row[_PROFILE] == profile and row[_BINNED] is None:
                origins[row[_ID]] = row[_ORIGIN]
    return in_order(origins)


def family(
    tx: Transaction, profile: str, ids: Iterable[str], branches: bool, delegates: bool
) -> list[str]:  # fmt: skip
    """These conversations and those whose messages they inherit; with `branches` and `delegates`
    also what comes from them, to any depth. NotFound."""
    origins: dict[str, str | None] = {}
    rest = deque(ids)
    while rest:
        id = rest.popleft()
        if id in origins:
            continue
        no = conversations.number_of(tx, profile, id)
        row = tx.row("copy_conversation_one", no=no)
        origin = None if row is None else row[2 + _ORIGIN]
        base = 0 if row is None else row[2 + COLUMNS.index("base")]
        inherits = base > 0 and tx.row("conversation_no", id=origin) is not None
        origins[id] = origin
        if origin is not None and inherits:
            rest.append(origin)
        rest.extend(_children(tx, no, branches, delegates))
    return in_order(origins)


def _children(tx: Transaction, no: int, branches: bool, delegates: bool) -> list[str]:
    return [
        id
        for _, id, kind, _ in tx.rows("conversation_children", no=no)
        if ((kind == "delegate" and delegates) or (kind == "branch" and branches))
        and tx.row("conversation_no", id=id) is not None
    ]


def in_order(origins: Mapping[str, str | None]) -> list[str]:
    """Each behind its origin, if that is among them; otherwise in the order they were given."""
    ordered: dict[str, None] = {}
    for id in origins:
        line: dict[str, None] = {}
        step: str | None = id
        while step is not None and step in origins and step not in ordered and step not in line:
            line[step] = None
            step = origins[step]
        ordered.update(dict.fromkeys(reversed(line)))
    return list(ordered)
