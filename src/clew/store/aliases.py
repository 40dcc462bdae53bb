"""Aliases: other ids that name a conversation, and the one resolver of everything a person types.

The first claim of a foreign id wins; a second is kept as ambiguous and listed. A deleted import
leaves a `deleted` row, so importing again does not bring it back. Invariant: I-13.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from clew.domain.text import clean
from clew.errors import Ambiguous, NotFound
from clew.store.backend import Transaction
from clew.store.conversations import Locked
from clew.store.kit import Kit

CANDIDATES = 20


class Alias(Struct, frozen=True, kw_only=True):
    """One other id of a conversation; messages from `from_seq` on were known under it."""

    source: str
    foreign_id: str
    from_seq: int
    kind: Literal["segment", "foreign"]
    state: Literal["claimed", "ambiguous", "deleted"]


def claim(
    tx: Transaction, kit: Kit, row: Locked, source: str, foreign_id: str, *, from_seq: int,
    kind: Literal["segment", "foreign"],
) -> Literal["claimed", "ambiguous", "deleted"]:  # fmt: skip
    """Name a conversation by a foreign id; gives the state that the claim has.

    Two claimers meet at the unique index on claimed rows: the second waits for the first to commit,
    inserts no row, and its claim is then stored as ambiguous.
    """
    source, foreign_id = kit.key("alias source", source), kit.key("alias", foreign_id)
    known = tx.rows("alias_find", profile=row.profile, foreign_id=foreign_id, source=source)
    for _, conversation, _, _, state in known:
        if conversation == row.id:
            return state
    taken = any(state == "claimed" for *_, state in known)
    alias = {
        "profile": row.profile, "source": source, "foreign_id": foreign_id,
        "conversation": row.id, "from_seq": from_seq, "kind": kind, "at": kit.clock.now(),
    }  # fmt: skip
    if not taken and tx.changed("alias_insert", **alias, state="claimed"):
        return "claimed"
    tx.run("alias_insert", **alias, state="ambiguous")
    return "ambiguous"


def of(tx: Transaction, profile: str, conversation: str) -> tuple[Alias, ...]:
    """All aliases of a conversation, oldest part first."""
    rows = tx.rows("alias_of", profile=profile, conversation=conversation)
    return tuple(
        Alias(source=r[0], foreign_id=r[1], from_seq=r[2], kind=r[3], state=r[4]) for r in rows
    )


def tombstone(tx: Transaction, profile: str, conversation: str) -> None:
    """What remains of a deleted conversation: its foreign ids, as deleted."""
    tx.run("alias_tombstone", profile=profile, conversation=conversation)


def revive(tx: Transaction, row: Locked, now: int) -> None:
    """The foreign ids of a conversation that leaves the bin: its own again, or ambiguous where
    another has claimed one meanwhile. Decided by the unique index, as in `claim`."""
    for alias in of(tx, row.profile, row.id):
        if alias.state != "deleted":
            continue
        place = {
            "profile": row.profile, "source": alias.source, "foreign_id": alias.foreign_id,
            "conversation": row.id,
        }  # fmt: skip
        values = {**place, "from_seq": alias.from_seq, "kind": alias.kind, "at": now}
        tx.run("alias_remove", **place)
        if not tx.changed("alias_insert", **values, state="claimed"):
            tx.run("alias_insert", **values, state="ambiguous")


def is_deleted(tx: Transaction, profile: str, source: str, foreign_id: str) -> bool:
    """Whether this foreign id was imported once and deleted here."""
    rows = tx.rows("alias_find", profile=profile, foreign_id=foreign_id, source=source)
    return any(r[4] == "deleted" for r in rows) and all(r[4] != "claimed" for r in rows)


def resolve(tx: Transaction, profile: str, text: str, source: str | None = None) -> str:
    """The conversation that a person names: exact id, exact alias, then unique prefix.

    Raises NotFound, or Ambiguous with at most 20 candidates; an ambiguous name does nothing.
    """
    text = text.strip()
    if not text or clean(text) != text:
        raise NotFound("conversation", text)
    row = tx.row("conversation_no", id=text)
    if row is not None and row[1] == profile:
        return text
    claims = [
        r for r in tx.rows("alias_find", profile=profile, foreign_id=text, source=source)
        if r[4] != "deleted"
    ]  # fmt: skip
    if len({r[1] for r in claims}) > 1:
        raise Ambiguous(text, sorted({r[1] for r in claims})[:CANDIDATES])
    if claims:
        return claims[0][1]
    return _by_prefix(tx, profile, text)


def _by_prefix(tx: Transaction, profile: str, text: str) -> str:
    # Every text that begins with this one lies below it followed by the last code point.
    bounds = {
        "profile": profile, "low": text, "high": text + "\U0010ffff", "limit": CANDIDATES + 1,
    }  # fmt: skip
    found = {r[0] for r in tx.rows("conversation_prefix", **bounds)}
    found.update(r[0] for r in tx.rows("alias_prefix", **bounds))
    if not found and text != text.lower():
        return _by_prefix(tx, profile, text.lower())
    if not found:
        raise NotFound("conversation", text)
    if len(found) > 1:
        candidates = sorted(found)
        raise Ambiguous(text, candidates[:CANDIDATES], len(candidates) > CANDIDATES)
    return found.pop()


def keys(tx: Transaction, profile: str) -> list[tuple[str, str, str, str]]:
    """All: ("alias", source, foreign id, conversation)."""
    return [("alias", r[0], r[1], r[2]) for r in tx.rows("alias_keys", profile=profile)]


def forget(tx: Transaction, profile: str, source: str, foreign_id: str) -> None:
    """Forget a foreign id: an import knows it no more."""
    tx.run("alias_forget", profile=profile, source=source, foreign_id=foreign_id)
