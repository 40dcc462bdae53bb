"""What an erasure would take: read, never written.

A person is found by the author of messages, and by keys that hold theirs. A conversation in which
nobody else wrote, or to which such a key is bound, goes as a whole, answers and all, and so do the
branches that go on from it. In one that others share only the person's own messages go.
"""

from __future__ import annotations

from collections.abc import Sequence

from clew.domain.erasure import ErasurePlan, Target, names_person
from clew.errors import InputError, NotFound
from clew.store import aliases, bindings, conversations, inbox, log
from clew.store.backend import Transaction
from clew.store.database import Database
from clew.store.erasure import LAST

PAGE = 200
"""Conversations looked at in one snapshot."""


class Planner:
    """Gathers targets of one profile."""

    def __init__(self, db: Database, profile: str, sub_agents: bool) -> None:
        self._db, self._profile, self._sub_agents = db, profile, sub_agents
        self._targets: dict[str, Target] = {}
        self._left: list[str] = []

    def messages(self, conversation: str, seqs: Sequence[int]) -> None:
        """These messages, each where its row is: a branch shows rows of its origin."""
        self._db.read(lambda tx: self._messages(tx, conversation, seqs))

    def whole(self, conversation: str) -> None:
        """All of a conversation."""
        self._db.read(lambda tx: self._whole(tx, conversation, "asked"))

    def person(self, person: str) -> ErasurePlan:
        """Everything of a person."""
        if not person.strip():
            raise InputError("a person's key is empty; give the author or the peer's id")
        after = 0
        while True:
            page = self._db.read(lambda tx, after=after: self._authored(tx, person, after))
            if page is None:
                break
            after = page
        keys = self._db.read(lambda tx: self._keys(tx, person))
        return self.plan(person, keys)

    def plan(
        self, person: str | None = None, keys: Sequence[tuple[str, str, str]] = ()
    ) -> ErasurePlan:
        """What was gathered."""
        targets = tuple(sorted(self._targets.values(), key=lambda target: target.conversation))
        return ErasurePlan(
            person=person, targets=targets, keys=tuple(keys), left=tuple(dict.fromkeys(self._left))
        )

    def _messages(self, tx: Transaction, conversation: str, seqs: Sequence[int]) -> None:
        no, id, _, origin, base, head = conversations.place(tx, self._profile, conversation)
        parts = log.segments(tx, no, base, origin, head)
        for seq in seqs:
            holder = next((n for n, first, last in parts if first <= seq <= last), None)
            if holder is None:
                raise NotFound("message", str(seq))
            row = conversations.peek(tx, holder)
            owner = id if row is None else row.id
            known = self._targets.get(owner)
            if known is None or not known.whole:
                named = {seq} | set(known.seqs if known else ())
                self._targets[owner] = Target(owner, False, tuple(sorted(named)))
        self._sub_agents_of(tx, no, conversation)

    def _sub_agents_of(self, tx: Transaction, no: int, conversation: str) -> None:
        children = tx.rows("conversation_children", no=no)
        if any(kind == "delegate" for _, _, kind, _ in children):
            self._left.append(
                f"sub-agents of {conversation} may quote it: erase their conversations, too"
            )

    def _whole(self, tx: Transaction, conversation: str, why: str) -> None:
        known = self._targets.get(conversation)
        if known is not None and known.whole:
            return
        no, id, *_ = conversations.place(tx, self._profile, conversation)
        rows = log.erasable(tx, no, 1, LAST, LAST)
        waits = any(entry[4] != log.MARK for entry in inbox.erasable(tx, no))
        said = any(conversations.texts(tx, no))
        if rows or waits or said:
            self._targets[id] = Target(id, True, tuple(row[0] for row in rows), why)  # type: ignore[arg-type]
        for _, child, kind, _ in tx.rows("conversation_children", no=no):
            if kind == "branch":
                self._whole(tx, child, "branch")
            elif self._sub_agents:
                self._whole(tx, child, "sub-agent")
            else:
                self._left.append(f"the sub-agent {child} of {id} stays")

    def _authored(self, tx: Transaction, person: str, after: int) -> int | None:
        """One page of conversations; where the next begins, None: that was all."""
        page = tx.rows("conversation_all", no=after, limit=PAGE)
        if not page:
            return None
        last = page[-1][0]
        for no, id, _, _, _, others in log.authored(tx, self._profile, person, after, last):
            if others:
                self._part(tx, no, id, person)
            else:
                self._whole(tx, id, "author")
        for _, id, profile in page:
            if profile == self._profile and names_person(id, person):
                self._left.append(f"the id of {id} holds the key: delete that conversation")
        return last

    def _part(self, tx: Transaction, no: int, id: str, person: str) -> None:
        if id not in self._targets:
            rows = log.erasable(tx, no, 1, LAST, LAST, person)
            self._targets[id] = Target(id, False, tuple(row[0] for row in rows), "author")
            self._sub_agents_of(tx, no, id)

    def _keys(self, tx: Transaction, person: str) -> list[tuple[str, str, str]]:
        for no in inbox.authored(tx, self._profile, person):
            row = conversations.peek(tx, no)
            if row is not None:
                self._part(tx, no, row.id, person)
        found: list[tuple[str, str, str]] = []
        for table, source, key, conversation in bindings.keys(tx, self._profile):
            if names_person(key, person):
                found.append((table, source, key))
                self._whole(tx, conversation, "key")
        for table, source, foreign_id, _ in aliases.keys(tx, self._profile):
            if names_person(foreign_id, person):
                found.append((table, source, foreign_id))
        for source, account, key, _ in bindings.deliveries(tx, self._profile):
            if names_person(key, person) or names_person(account, person):
                found.append(("inbound", source, f"{account}\x1f{key}"))
        return found
