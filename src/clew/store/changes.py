"""The record of what changed other than by appending; written in the transaction that did it."""

from __future__ import annotations

from clew.store.backend import Transaction


def note(
    tx: Transaction, conversation: str, profile: str, kind: str, at: int, detail: str | None = None
) -> None:
    """Add one change."""
    tx.run(
        "change_insert", conversation=conversation, profile=profile, kind=kind, detail=detail, at=at
    )
