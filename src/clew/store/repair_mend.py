"""Makes a new store of salvaged rows one that keeps every rule again.

Each step is a rule, in an order in which a later one undoes nothing of an earlier. What is lost is
never hidden: it is counted, and where other rows count on it something stands in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import apsw

from clew.clock import Clock
from clew.domain.compactions import Ref
from clew.ids import Ids
from clew.store import repair_messages
from clew.store.codec import Codec, json_value
from clew.store.repair_messages import Note
from clew.store.salvage_records import Value
from clew.store.salvage_shapes import SQL
from clew.store.sqlite_driver import query

RECOVERED = "recovered"
"""Profile and source of a conversation of which only messages are left."""
ENDED = "ended by a repair of the store"


def mend(
    store: apsw.Connection, codec: Codec, hints: Mapping[int, Mapping[str, Value]], ids: Ids,
    clock: Clock, note: Note,
) -> dict[str, list[Ref]]:  # fmt: skip
    """Mend all; gives the seqs that are lost, by conversation. Inside the caller's transaction."""
    triggers = query(store, SQL["triggers"])
    for name, _ in triggers:
        query(store, f'DROP TRIGGER "{name}"')
    repair_messages.drop_undecodable(store, codec, note)
    _conversations(store, hints, ids, clock, note)
    _count(store, "heads", note, None)
    lost = repair_messages.fill_gaps(store, codec, note)
    _prompts(store, note)
    _cuts(store, ids, clock, note)
    _compactions(store, codec, note)
    _turns(store, clock, note)
    _inbox(store, note)
    repair_messages.settle_pairs(store, codec, note)
    _outside(store, note)
    for _, text in triggers:
        query(store, text)
    return lost


def _count(store: apsw.Connection, name: str, note: Note, what: str | None, *params: Value) -> None:
    """Run a statement, and count the rows that it changed."""
    query(store, SQL[name], params)
    if what is not None and store.changes():
        note(what, store.changes())


def _conversations(
    store: apsw.Connection, hints: Mapping[int, Mapping[str, Value]], ids: Ids, clock: Clock,
    note: Note,
) -> None:  # fmt: skip
    """A row for each conversation of which only other rows are left, from what indexes say."""
    while rows := query(store, SQL["orphaned"]):
        for (no,) in rows:
            hint = hints.get(no, {})
            first, made, active, profile, needed = query(store, SQL["orphaned_facts"], (no,))[0]
            origin, base = hint.get("origin"), 0
            kind = "root" if origin is None else "branch" if hint.get("listed") else "delegate"
            if kind == "branch" or (origin is not None and (first or 1) > 1):
                kind, base = "branch", (first or 1) - 1
            if needed is not None:
                base = min(base, needed)
            id = str(hint.get("id") or ids.conversation())
            now = clock.now()
            query(store, SQL["conversation_stand_in"], (
                no, id, hint.get("profile") or profile or RECOVERED, kind,
                hint.get("source") or RECOVERED, origin, base,
                "Recovered conversation", made or now, hint.get("active_at") or active or now,
            ))  # fmt: skip
            note("conversations whose record is lost, made anew around their messages")


def _prompts(store: apsw.Connection, note: Note) -> None:
    for name in ("prompts_lost", "toolsets_lost"):
        _count(store, name, note, "conversations that lost their prompt or tool set")
    for name in ("call_prompts_lost", "call_toolsets_lost"):
        _count(store, name, note, "model calls that lost their prompt or tool set")
    _count(store, "prompt_uses", note, None)
    _count(store, "prompt_uses_loose", note, None)
    _count(store, "presence_loose", note, None)


def _cuts(store: apsw.Connection, ids: Ids, clock: Clock, note: Note) -> None:
    """A cut that is named by its number and gone is replaced by one that hides nothing."""
    wanted: dict[int, set[int]] = {}
    for no, most, _, _ in query(store, SQL["cuts_between"]):
        wanted.setdefault(no, set()).update(range(1, most + 1))
    for no, named, _ in query(store, SQL["cuts_named"]):
        wanted.setdefault(no, set()).update(json_value(named))
    for no, numbers in wanted.items():
        for number in sorted(numbers - {row[0] for row in query(store, SQL["cut_numbers"], (no,))}):
            uid = ids.uid()
            query(store, SQL["cut_stand_in"], (no, number, uid, clock.now()))
            note("cuts that are lost: what they hid is visible again")
    _count(store, "views", note, None)


def _compactions(store: apsw.Connection, codec: Codec, note: Note) -> None:
    """Generations without gaps: one that is lost is out of effect."""
    blank = codec.pack(())
    for no, most, _, _ in query(store, SQL["generations"]):
        query(store, SQL["generation_raise"], (no, most))
    query(store, SQL["generation_lower"])
    for no, generation, at in query(store, SQL["generations_short"]):
        there = {row[0] for row in query(store, SQL["generation_numbers"], (no,))}
        for number in range(1, generation + 1):
            if number not in there:
                query(store, SQL["compaction_stand_in"], (no, number, blank, at))
                note("compactions that are lost; the messages they stood for are shown in full")
    _count(store, "attempts_lost", note, None)


def _turns(store: apsw.Connection, clock: Clock, note: Note) -> None:
    _count(store, "turns_lost", note, "turns whose record is lost, made anew as interrupted", ENDED)
    query(store, SQL["turns_first"])
    for (no,) in query(store, SQL["turns_odd"]):
        query(store, SQL["turn_end"], (no, clock.now(), ENDED))
        query(store, SQL["turn_leave"], (no,))
        note("open turns that had lost a part, ended as interrupted")
    query(store, SQL["fences"])
    _count(store, "approvals_lost", note, "approvals whose turn is lost, left out")


def _inbox(store: apsw.Connection, note: Note) -> None:
    _count(store, "inbox_lost", note, None)
    _count(store, "inbox_twice", note, None)
    query(store, SQL["waiting"])


def _outside(store: apsw.Connection, note: Note) -> None:
    """What names conversations by their ids, and what waits to be told."""
    _count(store, "bindings_lost", note, "outside keys whose conversation is lost, left out")
    _count(store, "aliases_lost", note, "other tools' ids whose conversation is lost, left out")
    _count(store, "boundaries_loose", note, "boundaries that nobody can be told of, left out")
    query(store, SQL["subscribers_lost"])
    query(store, SQL["boundaries_due"])


def blank_compactions(store: apsw.Connection, codec: Codec, conversation: str) -> int:
    """Put all compactions of a conversation out of effect: what one covers has changed."""
    found = query(store, SQL["compaction_at"], (conversation,))
    for (generation,) in found:
        query(store, SQL["compaction_blank_of"], (conversation, generation, codec.pack(())))
    return len(found)


def dictionaries(store: apsw.Connection) -> Mapping[int, bytes]:
    """The store's dictionaries by number."""
    rows = query(store, SQL["dictionaries_left"])
    return {cast(int, version): cast(bytes, data) for version, data in rows}


__all__ = ["blank_compactions", "dictionaries", "mend"]
