"""Erasing: in bounded steps, each a unit of its own, which say the same when they run again.

A step locks what shows the rows (branches before their origins), leaves tombstones, and moves the
view of each of them, in one transaction. So an append waits for it or comes after it; a turn that
runs is interrupted (fence + 1) and an attempt at a compaction is cancelled, since both were made
from what is gone. What an interrupted process left undone, `pending` finds. Invariant: I-23.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, cast

from clew.domain.erasure import ERASED, Target, tombstone
from clew.domain.messages import Message, Role
from clew.domain.text import shorten
from clew.store import (
    aliases,
    approvals,
    attempts,
    bindings,
    blobs,
    boundaries,
    calls,
    compactions,
    conversations,
    cuts,
    goals,
    inbox,
    log,
    outbox,
    presence,
    prompts,
    todos,
    turns,
)
from clew.store.backend import Row, Transaction
from clew.store.changes import note
from clew.store.conversations import Locked
from clew.store.drafts import TITLE, preview_of
from clew.store.kit import Kit
from clew.store.needles import Needles
from clew.store.search.words import segment

STEP = 200
"""Messages in one transaction."""
WORDS = 5000
"""Words that the search index is asked for afterwards, at most."""
_TAGS = frozenset({"type", "hash", "media_type"})
_KEPT = _TAGS | {"id", "call_id", "name", "kind"}
LAST = 1 << 62


class Gathered:
    """What steps took away: how much, and what to look for afterwards. A step that runs again
    counts once, since what it counted is known by its place."""

    def __init__(self) -> None:
        self.texts, self.frames = Needles(), Needles()
        """What was said, and bytes as they were stored: of those only files may have a trace."""
        self.words: set[str] = set()
        self.ids: set[int] = set()
        self.messages: set[tuple[int, int]] = set()
        self.compactions: set[tuple[int, int]] = set()
        self.blobs: set[tuple[int, bytes]] = set()

    def text(self, *texts: str | None) -> None:
        """Texts that were taken."""
        for text in texts:
            if text and text != ERASED:
                self.texts.add_text(text)
                if len(self.words) < WORDS:
                    self.words.update(segment(text).split())

    def packed(self, kit: Kit, data: bytes) -> None:
        """A packed value that was taken: its frame, and the texts in it."""
        text = kit.codec.json(data)
        if len(data) < len(text):  # compressed: else the texts are as they are stored
            self.frames.add(bytes(data)[2:])
        self.value(json.loads(text))

    def value(self, value: Any) -> None:
        """The texts in a JSON value. What ties calls to their results stays in a tombstone."""
        if isinstance(value, str):
            self.text(value)
        elif isinstance(value, dict):
            fields = cast(dict[str, Any], value)
            kept = _KEPT if fields.get("type") in ("tool_call", "tool_result") else _TAGS
            for name, one in fields.items():
                if name not in kept:
                    self.value(one)
        elif isinstance(value, list):
            for one in cast(list[Any], value):
                self.value(one)

    def json(self, text: str | None) -> None:
        """The texts in a JSON text."""
        if text:
            self.value(json.loads(text))

    def shares(self, text: str | None) -> bool:
        """Whether a text has a piece of what was taken."""
        return text is not None and self.texts.are_in(text.encode("utf-8", "surrogatepass"))


class EraseStep:
    """One step of a target: a unit of work. Gives whether there is more."""

    def __init__(
        self, kit: Kit, profile: str, target: Target, gathered: Gathered, author: str | None
    ) -> None:
        self._kit, self._profile, self._target = kit, profile, target
        self._gathered = gathered
        self._author = author if target.why == "author" and not target.whole else None

    def __call__(self, tx: Transaction) -> bool:
        found = tx.row("conversation_place", id=self._target.conversation, profile=self._profile)
        if found is None:
            return False  # deleted meanwhile
        whole = self._target.whole
        first = found[4] + 1 if whole else min(self._target.seqs, default=LAST)
        if first == LAST and self._author is None:
            return False
        return self._run(tx, found[0], found[4] + 1 if self._author else first)

    def _run(self, tx: Transaction, no: int, first: int) -> bool:
        now = self._kit.clock.now()
        heirs = [conversations.lock_whole(tx, heir) for heir in _heirs(tx, no, first)]
        row = conversations.lock_whole(tx, no)
        if row is None:
            return False
        row = self._stop(tx, row, now)
        rows = self._rows(tx, row, first)
        waited = self._waiting(tx, row, {r[0] for r in rows})
        if not rows and not waited and not self._target.whole:
            return False
        for taken in rows:
            self._message(tx, row, taken)
        self._blobs(tx, row, [r[2] for r in rows])
        lowest = min((r[0] for r in rows), default=LAST)
        row = self._beside(tx, row, lowest, {r[6] for r in rows} - {None}, now)
        if self._target.whole and len(rows) < STEP:
            row = self._records(tx, row, now)
        ids = json.dumps({"ids": [[i, i] for i in sorted(r[1] for r in rows)]})
        note(tx, row.id, row.profile, "erased", now, ids)
        for heir in heirs:
            if heir is not None and heir.base >= lowest:
                heir = self._stop(tx, heir, now)
                heir = self._beside(tx, heir, lowest, set(), now)
                note(tx, heir.id, heir.profile, "erased", now, "{}")
        return len(rows) == STEP

    def _stop(self, tx: Transaction, row: Locked, now: int) -> Locked:
        """End what is being made from what goes: the turn, and attempts at compactions."""
        row = turns.interrupt(tx, self._kit, row, now, "erased")
        attempts.cancel_all(tx, row.no, now)
        return row

    def _rows(self, tx: Transaction, row: Locked, first: int) -> list[Row]:
        if self._target.whole or self._author is not None:
            return log.erasable(tx, row.no, first, LAST, STEP, self._author)
        rows: list[Row] = []
        for seq in self._target.seqs:
            rows += log.erasable(tx, row.no, seq, seq, 1)
            if len(rows) == STEP:
                break
        return rows

    def _message(self, tx: Transaction, row: Locked, taken: Row) -> None:
        seq, id, data, key, author, meta, _, _ = taken
        kit, gathered = self._kit, self._gathered
        gathered.messages.add((row.no, seq))
        gathered.ids.add(id)
        gathered.packed(kit, data)
        gathered.text(key, author)
        gathered.json(meta)
        log.erase(tx, row.no, seq, kit.codec.pack(tombstone(kit.codec.parts(data))))

    def _waiting(self, tx: Transaction, row: Locked, seqs: set[int]) -> bool:
        """Copies of messages that waited in the inbox, and what never left it."""
        kit, gathered, some = self._kit, self._gathered, False
        entries = inbox.erasable(tx, row.no)
        for number, data, key, author, meta, seq, state in entries:
            wanted = self._target.whole or seq in seqs
            if self._author is not None and author == self._author:
                wanted = True
            if not wanted or meta == log.MARK:
                continue
            if state == "waiting":
                inbox.withdraw_one(tx, row, number)
            some = True
            gathered.packed(kit, data)
            gathered.text(key, author)
            gathered.json(meta)
            inbox.erase(tx, row.no, number, kit.codec.pack(tombstone(kit.codec.parts(data))))
        return some

    def _blobs(self, tx: Transaction, row: Locked, packed: Iterable[bytes]) -> None:
        """Bytes that only what is gone named."""
        codec = self._kit.codec
        named = {digest for data in packed for digest in blobs.hashes(codec.parts(data))}
        for entry in inbox.erasable(tx, row.no) if named else ():
            named -= blobs.hashes(codec.parts(entry[1]))
        if not named:
            return
        for message in log.backwards(tx, codec, [(row.no, row.base + 1, row.head)]):
            named -= blobs.hashes(message.parts)
        for digest in sorted(named):
            data = blobs.drop(tx, row.no, digest)
            if data is not None:
                self._gathered.blobs.add((row.no, digest))
                self._gathered.frames.add(data)

    def _beside(
        self, tx: Transaction, row: Locked, seq: int, of_turns: set[int], now: int
    ) -> Locked:
        """What was made from a message, in a conversation that shows it."""
        gathered, no = self._gathered, row.no
        row, taken = compactions.erase(tx, self._kit, row, seq, now)
        for generation, body, receipt, _ in taken:
            gathered.compactions.add((no, generation))
            gathered.packed(self._kit, body)
            gathered.json(receipt)
        for texts in (*attempts.erase(tx, no), *calls.erase(tx, no)):
            for text in texts:
                gathered.text(text)
        boundaries.erase(tx, no)
        for number in of_turns:
            for texts in turns.erase(tx, no, number, number):
                gathered.text(*texts)
        for number, turn, route, payload, error in outbox.texts(tx, no):
            if turn in of_turns:
                gathered.json(payload)
                gathered.text(error)
                outbox.erase(tx, no, number, route)
        self._quotes(tx, no)
        return self._shown(tx, row)

    def _quotes(self, tx: Transaction, no: int) -> None:
        """Todos, goals and labels that quote what is gone."""
        for module in (todos, goals):
            for number, text in module.texts(tx, no):
                if self._gathered.shares(text):
                    module.erase(tx, no, number, ERASED)
        for one in presence.all_of(tx, no):
            if self._gathered.shares(one.label) or self._gathered.shares(one.owner):
                presence.leave(tx, no, one.owner)

    def _shown(self, tx: Transaction, row: Locked) -> Locked:
        """Titles and preview, made anew. A person's own title stays unless it quotes."""
        cut_list = cuts.all_of(tx, row.no)
        pieces = log.ranges(log.segments_of(tx, row), cut_list, 1, row.head)
        title, llm, derived, preview, *_ = conversations.texts(tx, row.no)
        self._gathered.text(llm, derived, preview)
        kept = None if self._gathered.shares(title) else title
        return conversations.erase(
            tx, row, kept, _title(log.read_some(tx, self._kit.codec, pieces, 100, backward=False)),
            log.last_preview(tx, self._kit.codec, pieces),
        )  # fmt: skip

    def _records(self, tx: Transaction, row: Locked, now: int) -> Locked:
        """Everything beside the messages of a conversation that is erased as a whole."""
        gathered, no = self._gathered, row.no
        row, taken = compactions.erase(tx, self._kit, row, 0, now)
        for generation, body, receipt, _ in taken:
            gathered.compactions.add((no, generation))
            gathered.packed(self._kit, body)
            gathered.json(receipt)
        *texts, meta = conversations.texts(tx, no)
        gathered.text(*texts)
        gathered.json(meta)
        for one in (*attempts.erase(tx, no), *calls.erase(tx, no), *turns.erase(tx, no)):
            gathered.text(*one)
        for number, _, route, payload, error in outbox.texts(tx, no):
            gathered.json(payload)
            gathered.text(route, error)
            outbox.erase(tx, no, number, ERASED)
        for module in (todos, goals):
            gathered.text(*(text for _, text in module.texts(tx, no)))
            module.delete(tx, no)
        gathered.text(*(one.label for one in presence.all_of(tx, no)))
        presence.delete(tx, no)
        boundaries.erase(tx, no)
        approvals.erase(tx, no)
        cuts.erase(tx, no)
        row = conversations.forget(tx, row)
        calls.unprompt(tx, no)
        prompts.release(tx, no)
        aliases.tombstone(tx, row.profile, row.id)
        bindings.forget_deliveries_of(tx, row.profile, row.id)
        return row


def _title(messages: Sequence[Message]) -> str | None:
    """The title that the first message of a person gives."""
    for message in messages:
        if message.role is Role.USER and not message.is_erased:
            text = preview_of(message)
            if text:
                return shorten(text, TITLE)
    return None


def _heirs(tx: Transaction, no: int, seq: int) -> list[int]:
    """Conversations that show messages of this one from `seq` on: each before the one it comes
    from, which is the order of locks."""
    found: list[int] = []
    for child, _, kind, base in tx.rows("conversation_children", no=no):
        if kind == "branch" and base >= seq:
            found += [*_heirs(tx, child, seq), child]
    return found
