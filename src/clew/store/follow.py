"""Following changes: a cheap look whether anybody committed, then what came after the mark.

Messages are found by their ids, everything else by the change table. What a mark is only the
engine knows: the highest ids where these are commit order, a snapshot where they are not. Nothing
is missed between two looks and nothing is told twice: both marks and what they lead to are read in
one snapshot.
"""

from __future__ import annotations

from clew.domain.changes import Change, Mark
from clew.errors import StoreReplaced
from clew.store.backend import Transaction

BATCH = 1000


def mark(tx: Transaction, since: Mark | None = None) -> Mark:
    """Now; for a follower that is `since`, where it is after the changes that it will be told."""
    now = Mark(*tx.rows("follow_mark", change=since and since.change)[0])
    if since is not None and since.history != now.history:
        raise StoreReplaced(
            "another server took over, which may lack the newest messages and what was told of "
            "them. Read again what you follow, and follow on from a new mark."
        )
    return now


def after(
    tx: Transaction, since: Mark, profile: str | None, conversation: str | None
) -> tuple[Mark, list[Change]]:
    """What changed since a mark, and the next mark. Filters only narrow what is told."""
    now = mark(tx, since)
    found: list[Change] = []
    changes = tx.rows("change_after", change=since.change, limit=BATCH)
    if len(changes) == BATCH:  # the rest follows, from this mark
        now = Mark(now.message, changes[-1][0], now.history)
    for _, id, owner, kind in changes:
        if _wanted(owner, id, profile, conversation):
            found.append(Change(conversation=id, kind=kind))
    for id, owner, first, last in tx.rows("message_changed_after", message=since.message):
        if _wanted(owner, id, profile, conversation):
            found.append(Change(conversation=id, kind="appended", first_seq=first, last_seq=last))
    return now, found


def _wanted(
    row_profile: str, row_conversation: str, profile: str | None, conversation: str | None
) -> bool:
    return profile in (None, row_profile) and conversation in (None, row_conversation)
