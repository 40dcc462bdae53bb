"""Reading a whole conversation, one value at a time, in the order in which it came to be.

A record comes behind the last message that it needs, so that who stops anywhere has a conversation
as it was once: a cut behind what it hides, a compaction behind what it covers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import merge
from typing import Any, NamedTuple

from clew.domain.messages import ROLES
from clew.domain.values import json_value
from clew.errors import Corrupt, StoreError
from clew.store import conversations, log
from clew.store.backend import Row, Transaction
from clew.store.codec import Codec
from clew.store.copy.conversations import COLUMNS
from clew.store.kit import Kit
from clew.store.transfer_lines import (
    AliasLine,
    BlobLine,
    CompactionLine,
    Content,
    Facts,
    MessageLine,
    PromptLine,
    Record,
    ToolsetLine,
)
from clew.store.transfer_rows import (
    TABLES,
    Fields,
    attempt_of,
    call_of,
    compaction_of,
    cut_of,
    facts_of,
    goal_of,
    line_hashes,
    named,
    todo_of,
    turn_of,
)

PAGE = 200
"""Rows read at once."""
_SCHEMAS = tuple[dict[str, Any], ...]

Emit = Callable[[Facts | Content], None]
_Placed = tuple[int, int, int, Record]
"""(the seq it comes behind, order among those of one seq, number, value)"""


class Dumped(NamedTuple):
    """What was read. `waiting`: messages of the inbox, which are left out."""

    id: str
    messages: int
    waiting: int


class Dump:
    """A reader of one conversation, in one snapshot. What it has given it cannot take back, so it
    does not run twice."""

    def __init__(self, kit: Kit, profile: str, id: str, emit: Emit) -> None:
        self._kit, self._profile, self._id, self._emit = kit, profile, id, emit
        self._begun = False
        self._blobs: set[bytes] = set()

    def __call__(self, tx: Transaction) -> Dumped:
        if self._begun:
            raise StoreError(
                f"the connection was lost while {self._id} was read; begin the export again"
            )
        no = conversations.number_of(tx, self._profile, self._id)
        row = tx.row("copy_conversation_one", no=no)
        if row is None:
            raise Corrupt(f"the row of {self._id} is gone while it is read; run `clew verify`")
        self._begun = True
        return self._whole(tx, no, dict(zip(COLUMNS, row[2:], strict=True)))

    def _whole(self, tx: Transaction, no: int, row: Fields) -> Dumped:
        parts = self._segments(tx, no, row)
        facts = facts_of(row, _numbers(tx, no))
        self._emit(facts)
        self._prompts(tx, no)
        for alias in _aliases(tx, self._profile, self._id):
            self._emit(alias)
        records = merge(*self._placed(tx, no, facts), key=lambda placed: placed[:3])
        following = next(records, None)
        for line in self._messages(tx, parts):
            while following is not None and following[0] < line.seq:
                self._give(tx, parts, following[3])
                following = next(records, None)
            self._give(tx, parts, line)
        while following is not None:
            self._give(tx, parts, following[3])
            following = next(records, None)
        self._rest(tx, no)
        for name in ("todo", "goal"):
            for found in _all(tx, no, name):
                self._emit((todo_of if name == "todo" else goal_of)(self._id, found))
        return Dumped(self._id, facts.head - facts.base, row["waiting"])

    def _segments(self, tx: Transaction, no: int, row: Fields) -> list[log.Segment]:
        """Where its own messages are. Of an origin that is being deleted the inherited ones are
        its own already, as they will be when the deletion is through."""
        if row["origin"] is None or tx.row("conversation_no", id=row["origin"]) is not None:
            return [(no, row["base"] + 1, row["head"])]
        locked = conversations.peek(tx, no)
        assert locked is not None
        parts = log.segments(tx, no, locked.base, locked.origin, locked.head)
        row |= {"base": 0, "origin": None}
        return parts

    def _prompts(self, tx: Transaction, no: int) -> None:
        codec = self._kit.codec
        for _, digest in tx.rows("copy_prompt_use_rows", first=no, last=no):
            if (found := tx.row("copy_prompt_one", hash=digest)) is not None:
                text = codec.value(found[1], str)
                self._emit(PromptLine(conversation=self._id, hash=digest.hex(), text=text))
            if (found := tx.row("copy_toolset_one", hash=digest)) is not None:
                schemas = codec.value(found[2], _SCHEMAS)
                self._emit(ToolsetLine(conversation=self._id, hash=digest.hex(), schemas=schemas))

    def _messages(self, tx: Transaction, parts: Iterable[log.Segment]) -> Iterator[MessageLine]:
        own = conversations.number_of(tx, self._profile, self._id)
        for no, first, last in parts:
            while first <= last:
                end = min(last, first + PAGE - 1)
                rows = tx.rows("copy_message_range", no=no, first=first, last=end, limit=PAGE)
                if len(rows) != end - first + 1:
                    raise Corrupt(f"{self._id} lacks messages from seq {first} on: `clew verify`")
                for row in rows:
                    yield _message(self._kit.codec, self._id, row, own)
                first = end + 1

    def _placed(self, tx: Transaction, no: int, facts: Facts) -> list[Iterator[_Placed]]:
        """Each kind of record in its order, with the seq that it comes behind."""
        id, kit = self._id, self._kit
        cuts = [cut_of(id, row) for row in _all(tx, no, "cut")]
        ends = {cut.number: cut.to_seq for cut in cuts}
        turns = (turn_of(id, row, facts.active_at) for row in _paged(tx, no, "turn"))
        attempts = [attempt_of(id, row) for row in _all(tx, no, "attempt")]
        compactions = (compaction_of(kit, id, row) for row in _paged(tx, no, "compaction"))
        calls = (call_of(id, row) for row in _paged(tx, no, "model_call"))
        return [
            ((0, 0, line.number, line) for line in attempts),
            _ascending(1, ((line.first_seq - 1, line.number, line) for line in turns)),
            _ascending(2, ((line.to_seq, line.number, line) for line in cuts)),
            _ascending(3, ((_needs(line, ends), line.generation, line) for line in compactions)),
            _ascending(4, ((line.up_to_seq, line.number, line) for line in calls)),
        ]  # fmt: skip

    def _give(self, tx: Transaction, parts: list[log.Segment], line: MessageLine | Record) -> None:
        """A value, its images and files before it."""
        for digest in sorted(line_hashes(line) - self._blobs):
            for no, _, _ in reversed(parts):
                if (found := tx.row("blob_get", no=no, hash=digest)) is not None:
                    self._blob(digest, found[0])
                    break
        self._emit(line)

    def _rest(self, tx: Transaction, no: int) -> None:
        """Blobs that nothing in the log refers to."""
        for _, digest in tx.rows("copy_blob_rows", first=no, last=no):
            if digest not in self._blobs:
                found = tx.row("blob_get", no=no, hash=digest)
                if found is not None:
                    self._blob(digest, found[0])

    def _blob(self, digest: bytes, data: bytes) -> None:
        self._blobs.add(digest)
        self._emit(BlobLine(conversation=self._id, hash=digest.hex(), data=data))


def _ascending(rank: int, placed: Iterable[tuple[int, int, Record]]) -> Iterator[_Placed]:
    """In the order of their numbers; none before one with a lower number."""
    after = 0
    for seq, number, line in placed:
        after = max(after, seq)
        yield after, rank, number, line


def _needs(line: CompactionLine, ends: Mapping[int, int]) -> int:
    """The seq that a compaction comes behind: what it covers, and the cuts that it names."""
    return max(line.covers_to, *(ends.get(number, 0) for number in line.cuts), 0)


def _message(codec: Codec, id: str, row: Row, own: int) -> MessageLine:
    _, no, seq, uid, key, turn, role, author, group, replaces, parts, meta, tokens, at = row
    return MessageLine(
        conversation=id, seq=seq, uid=uid.hex(), key=key, turn=turn if no == own else None,
        role=ROLES[role], author=author, api_group=group, replaces=replaces,
        parts=codec.parts(parts), meta=json_value(meta), tokens=tokens, created_at=at,
    )  # fmt: skip


def _all(tx: Transaction, no: int, name: str) -> list[Fields]:
    """All records of a kind of which there are few."""
    table = TABLES[name]
    return [named(table, row) for row in tx.rows(table.rows, first=no, last=no)]


def _paged(tx: Transaction, no: int, name: str) -> Iterator[Fields]:
    """All records of a kind of which there may be many."""
    table, after = TABLES[name], 0
    while rows := page(tx, no, name, after, PAGE):
        yield from (named(table, row) for row in rows)
        after = rows[-1][1]


def page(tx: Transaction, no: int, name: str, after: int, limit: int) -> list[Row]:
    """Records of a kind above a number. The statement has the name of its key as a parameter."""
    match name:
        case "compaction":
            return tx.rows("copy_compaction_page", no=no, generation=after, limit=limit)
        case "turn":
            return tx.rows("copy_turn_page", no=no, number=after, limit=limit)
        case _:
            return tx.rows("copy_model_call_page", no=no, number=after, limit=limit)


def _aliases(tx: Transaction, profile: str, id: str) -> Iterator[AliasLine]:
    for source, foreign_id, from_seq, kind, state, at in tx.rows(
        "transfer_aliases", profile=profile, conversation=id
    ):
        yield AliasLine(
            conversation=id, source=source, foreign_id=foreign_id, from_seq=from_seq, kind=kind,
            state=state, at=at,
        )  # fmt: skip


def _numbers(tx: Transaction, no: int) -> Fields:
    """The highest number of each kind of record."""
    row = tx.rows("transfer_numbers", no=no)[0]
    return dict(zip(("cuts", "attempts", "turns", "calls"), row, strict=True))
