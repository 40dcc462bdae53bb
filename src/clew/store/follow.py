"""Following changes: a cheap look whether anybody committed, then what came after the mark.

Messages are found by their id, which is commit order on SQLite; everything else by the change
table. Nothing is missed between two looks and nothing is told twice: both marks and what they
lead to are read in one snapshot.
"""

from __future__ import annotations

from clew.domain.changes import Change, Mark
from clew.store.backend import Transaction

BATCH = 1000


def mark(tx: Transaction) -> Mark:
    """Now."""
    message, change = tx.row("message_last_id"), tx.row("change_last")
    return Mark(message[0] if message else 0, change[0] if change else 0)


def after(
    tx: Transaction, since: Mark, profile: str | None, conversation: str | None
) -> tuple[Mark, list[Change]]:
    """What changed since a mark, and the next mark. Filters only narrow what is told."""
    now = mark(tx)
    found: list[Change] = []
    for row in tx.rows("change_after", id=since.change, limit=BATCH):
        now = Mark(now.message, row[0])
        if _wanted(row[2], row[1], profile, conversation):
            found.append(Change(conversation=row[1], kind=row[3]))
    for row in tx.rows("message_changed_after", id=since.message, last=now.message):
        if _wanted(row[1], row[0], profile, conversation):
            found.append(
                Change(conversation=row[0], kind="appended", first_seq=row[3], last_seq=row[4])
            )
    return now, found


def _wanted(
    row_profile: str, row_conversation: str, profile: str | None, conversation: str | None
) -> bool:
    return profile in (None, row_profile) and conversation in (None, row_conversation)
