"""Edits of the end of the log, each one transaction made of a cut and an append."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from clew.domain.messages import Appended, Draft, Message
from clew.errors import InputError
from clew.store import conversations, cuts, log
from clew.store.append import Append
from clew.store.backend import Transaction
from clew.store.drafts import externalise
from clew.store.kit import Kit
from clew.store.unit import Once


class Edit(Once[Appended]):
    """Cut at a message, then append another that names it (`meta.retry_of`)."""

    def __init__(
        self, kit: Kit, no: int, name: str, uid: str, draft: Draft, cut: cuts.MakeCut
    ) -> None:
        self._cut, self._no, self._name = cut, no, name
        draft = replace(draft, meta={**(draft.meta or {}), "retry_of": uid})
        self._keyed = draft.key is not None
        self._append = Append(kit, no, name, [draft])

    def is_stored(self, tx: Transaction) -> bool:
        return self._cut.is_stored(tx)

    def run(self, tx: Transaction) -> Appended:
        row = conversations.lock(tx, self._no, self._name)
        if self._keyed and (again := self._append.before(tx, row)) is not None:
            return again
        row, _ = self._cut.onto(tx, row)
        return self._append.onto(tx, row)


class Pop(Once[list[Message]]):
    """Cut off the newest `count` visible messages."""

    def __init__(self, kit: Kit, no: int, name: str, count: int) -> None:
        if count < 1:
            raise InputError(f"count is {count}; pop at least one message")
        self._kit, self._no, self._name, self._count = kit, no, name, count
        self._uid = kit.ids.uid()

    def is_stored(self, tx: Transaction) -> bool:
        return tx.row("cut_by_uid", no=self._no, uid=self._uid) is not None

    def run(self, tx: Transaction) -> list[Message]:
        kit = self._kit
        row = conversations.lock(tx, self._no, self._name)
        pieces = log.ranges(log.segments_of(tx, row), cuts.all_of(tx, row.no), 1, row.head)
        found = log.read_some(tx, kit.codec, pieces, self._count, backward=True)[::-1]
        if found:
            cuts.cut_from(tx, kit, row, found[0].seq, "pop", self._uid)
        return found


class Replace(Once[Appended]):
    """Make the visible log equal to a list: keep what both share, cut the rest, append."""

    def __init__(self, kit: Kit, no: int, name: str, drafts: Sequence[Draft]) -> None:
        self._kit, self._no, self._name = kit, no, name
        self._drafts = [replace(d, parts=externalise(kit, d.parts)[0]) for d in drafts]
        self._appends = [Append(kit, no, name, [draft]) for draft in drafts]
        self._uid = kit.ids.uid()

    def run(self, tx: Transaction) -> Appended:
        kit = self._kit
        row = conversations.lock(tx, self._no, self._name)
        pieces = log.ranges(log.segments_of(tx, row), cuts.all_of(tx, row.no), 1, row.head)
        there = log.read(tx, kit.codec, pieces)
        shared = 0
        for message, draft in zip(there, self._drafts, strict=False):
            if message.role != draft.role or message.parts != draft.parts:
                break
            shared += 1
        if shared < len(there):
            row, _ = cuts.cut_from(tx, kit, row, there[shared].seq, "replace", self._uid)
        seqs = [message.seq for message in there[:shared]]
        uids = [message.uid for message in there[:shared]]
        for append in self._appends[shared:]:
            done = append.onto(tx, row)
            row = conversations.lock(tx, self._no, self._name)
            seqs.extend(done.seqs)
            uids.extend(done.uids)
        return Appended(tuple(seqs), row.head, len(self._appends) - shared, tuple(uids))
