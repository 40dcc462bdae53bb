"""Edits of the end of the log, each one transaction made of a cut and an append."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from msgspec.structs import replace

from clew.domain.cuts import Cut, hidden
from clew.domain.messages import ROLES, Appended, Draft, Message
from clew.errors import InputError, KeyReused
from clew.store import conversations, cuts, log
from clew.store.append import Append, append
from clew.store.backend import Transaction
from clew.store.codec import json_value
from clew.store.conversations import Locked
from clew.store.drafts import Prepared, check_batch, prepare_all
from clew.store.kit import Kit
from clew.store.unit import Once


class Edit(Once[Appended]):
    """Cut at a message, then append another that names it (`meta.retry_of`)."""

    def __init__(
        self, kit: Kit, no: int, name: str, uid: str, draft: Draft, cut: cuts.MakeCut
    ) -> None:
        self._cut, self._no, self._name = cut, no, name
        draft = replace(draft, meta={**(draft.meta or {}), "retry_of": uid})
        self._named = draft.key is not None or draft.uid is not None
        self._append = Append(kit, no, name, [draft])

    def is_stored(self, tx: Transaction) -> bool:
        return self._cut.is_stored(tx)

    def run(self, tx: Transaction) -> Appended:
        row = conversations.lock(tx, self._no, self._name)
        if self._named and (again := self._append.before(tx, row)) is not None:
            return again
        row, _ = self._cut.onto(tx, row)
        return self._append.onto(tx, row)


class Pop(Once[list[Message]]):
    """Cut off the newest `count` messages that are shown: from where the first of them stands.

    A replacing message stands in the place of the one it replaces. If a cut from there would hide
    one that stands further up, whose old text would come back, it is refused.
    """

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
        parts, cut_list = log.segments_of(tx, row), cuts.all_of(tx, row.no)
        pieces = log.ranges(parts, cut_list, 1, row.head)
        places = log.replacing(tx, parts)
        if not places:
            found = log.read_some(tx, kit.codec, pieces, self._count, backward=True)[::-1]
        else:
            standing = (m for m in log.backwards(tx, kit.codec, pieces) if m.seq not in places)
            found = list(islice(standing, self._count))[::-1]
        if not found:
            return []
        first = found[0].seq
        _check_places(places, cut_list, first)
        found = log.in_place(tx, kit.codec, parts, cut_list, found)
        cuts.cut_from(tx, kit, row, first, "pop", self._uid)
        return log.inherited(found, row.base)


def _check_places(places: dict[int, int], cut_list: Sequence[Cut], first: int) -> None:
    """Refuse a cut at `first` that would take the text of a message which stays."""
    for seq, root in places.items():
        if root < first <= seq and not hidden(cut_list, root) and not hidden(cut_list, seq):
            raise InputError(
                f"the message at seq {root} is replaced by seq {seq}, which would be hidden too; "
                f"pop from there on, or cut"
            )


class Replace(Once[Appended]):
    """Make the visible log equal to a list: keep what both share, cut the rest, append.

    The names of what is cut off stay taken. A draft that says the same again under such a name is
    another message, so it is stored without.
    """

    def __init__(self, kit: Kit, no: int, name: str, drafts: Sequence[Draft]) -> None:
        self._kit, self._no, self._name = kit, no, name
        self._prepared = prepare_all(kit, drafts)
        self._spare = [kit.ids.uid() for _ in drafts]
        self._uid = kit.ids.uid()
        self._rest: tuple[Prepared, ...] = ()
        self._seen: int | None = None
        self._cuts = False
        """Whether the first run cut something off."""

    def is_stored(self, tx: Transaction) -> bool:
        if self._cuts:
            return tx.row("cut_by_uid", no=self._no, uid=self._uid) is not None
        assert self._first is not None
        row = conversations.lock(tx, self._no, self._name)
        found = log.find(tx, self._kit, row, self._rest, self._seen)
        kept = len(self._first.uids) - len(self._rest)
        ours = log.uids(self._rest, found) == self._first.uids[kept:]  # and not another's keys
        return bool(self._rest) and log.all_there(self._rest, found) and ours

    def run(self, tx: Transaction) -> Appended:
        kit = self._kit
        row = conversations.lock(tx, self._no, self._name)
        self._seen = row.head if self._seen is None else self._seen
        pieces = log.ranges(log.segments_of(tx, row), cuts.all_of(tx, row.no), 1, row.head)
        there = log.read(tx, kit.codec, pieces)
        shared = 0
        for message, item in zip(there, self._prepared, strict=False):
            if not self._alike(message, item):
                break
            shared += 1
        self._cuts = shared < len(there)
        if self._cuts:
            row, _ = cuts.cut_from(tx, kit, row, there[shared].seq, "replace", self._uid)
        seqs = tuple(message.seq for message in there[:shared])
        uids = tuple(message.uid for message in there[:shared])
        check_batch(kit, len(self._prepared) - shared)
        fresh = zip(self._prepared[shared:], self._spare[shared:], strict=True)
        self._rest = tuple([self._named(tx, row, item, spare) for item, spare in fresh])
        if not self._rest:
            return Appended(seqs, row.head, 0, uids)
        done = append(tx, kit, row, self._rest)
        return replace(done, seqs=seqs + done.seqs, uids=uids + done.uids)

    def _alike(self, message: Message, item: Prepared) -> bool:
        """Whether a message says what a draft says."""
        if _chat(message.meta) != _chat(json_value(item.meta)):
            return False
        return (message.role, message.author, message.parts) == (
            ROLES[item.role], item.author, self._kit.codec.parts(item.parts)
        )  # fmt: skip

    def _named(self, tx: Transaction, row: Locked, item: Prepared, spare: bytes) -> Prepared:
        """The draft, without its names if one of them names what does not wait."""
        try:
            found = log.find(tx, self._kit, row, [item], None)
        except KeyReused:
            found = [log.Found(item.uid, 0)]
        if not any(f is not None and f.number is None for f in found):
            return item
        return item._replace(key=None, uid=spare, minted=True)


def _chat(meta: dict[str, object] | None) -> object:
    """What a Chat Completions message had besides the fields that a draft has."""
    return None if meta is None else meta.get("chat")
