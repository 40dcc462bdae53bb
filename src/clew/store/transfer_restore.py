"""Bringing whole conversations from a file, in steps of bounded transactions.

A conversation that is here already must be the beginning of the one in the file: then it grows by
what is new. Nothing is written before that is known. Whatever ends an import, what is there then is
a conversation as it was once, and the next import goes on with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from msgspec import structs

from clew.domain.compactions import Inline
from clew.domain.messages import ROLE_CODES, Draft, Role
from clew.domain.parts import File, Image, Part, Parts, Text, ToolResult
from clew.domain.values import json_text
from clew.errors import InputError, KeyReused, Refused, TooLarge
from clew.store import conversations, log
from clew.store.backend import Transaction
from clew.store.codec import escape_json
from clew.store.copy.conversations import COLUMNS
from clew.store.database import Database
from clew.store.drafts import prepare_all
from clew.store.prompts import tool_name
from clew.store.transfer_compare import STANDS_IN, Compare, known_blobs
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
from clew.store.transfer_rows import Fields, columns_of, line_hashes, table_of, values_of
from clew.store.transfer_rules import Rules, needs
from clew.store.transfer_step import Apply, Step, Written, diverged, fitting, news

LOOKED_BACK = 5000
"""Messages in which the call of a result is looked for."""
NOTES = 100
"""Of one conversation that are told."""
SMALL = 128 << 10
"""Bytes of the file."""
MESSAGES, BYTES = 500, 4 << 20
"""Rows, and bytes of the file, of one transaction."""
PENDING, PENDING_BYTES = 10_000, 192 << 20
"""Records that may be new to a conversation whose messages are all here already."""

LOST = "[a message was here: its line in the imported file is damaged]"
LOST_BYTES = "[an image or file was here: its line in the imported file is damaged]"


class There(NamedTuple):
    """A conversation as it is here. `ahead`: it has records that the file does not have."""

    no: int
    head: int
    ahead: bool
    columns: Fields


class Restored(NamedTuple):
    """What an import of one conversation did."""

    made: bool
    changed: bool
    messages: int
    """That are new."""
    head: int
    notes: tuple[str, ...] = ()
    """What is not as the file says, in words."""


class _Lost:
    """Lines that may have been a message, or a compaction."""

    def __init__(self) -> None:
        self.messages = self.compactions = 0


class Restoring:
    """One conversation on its way in. `add` its lines in their order, `complete` it, then `finish`.

    `dry`: nothing is written; `planned` has the heads of conversations that would be made.
    InputError of `add`: this line cannot be; the next may. Refused: give the conversation up.
    """

    def __init__(
        self, db: Database, profile: str, facts: Facts, dry: bool, planned: Mapping[str, int]
    ) -> None:
        self._db, self._profile, self.facts = db, profile, facts
        self._dry, self._planned = dry, planned
        self._columns = columns_of(db.kit, facts)
        self._there = db.read(self._look)
        self.made = self._there is None
        self._at = facts.base
        """Seq of the last message of the file."""
        self._head = facts.base if self._there is None else self._there.head
        """As it is here."""
        self._first_head = self._head
        self._checking = self._there is not None
        self._step, self._pending = Step(), Step()
        self._changed = False
        self._lost = _Lost()
        self._notes: list[str] = []
        self._rules = Rules(facts)

    @property
    def is_small(self) -> bool:
        """Whether it is new, and what it holds is not much, and all of it still to be written."""
        return self.made and self._head == self.facts.base and self._step.size < SMALL

    # ------------------------------------------------------------------ lines

    def lost(self, line: Content | None = None) -> None:
        """A line of it cannot be read, or (`line`) cannot be."""
        if line is None or isinstance(line, MessageLine):
            self._lost.messages += 1
        if line is None or isinstance(line, CompactionLine):
            self._lost.compactions += 1

    def add(self, line: Content, size: int) -> None:
        """The next line, of so many bytes."""
        match line:
            case MessageLine():
                self._message(line)
            case BlobLine():
                self._blob(line)
            case PromptLine() | ToolsetLine():
                self._prompt(line)
            case AliasLine():
                self._step.aliases.append(values_of(self._db.kit, line))
            case _:
                self._record(line)
        self._step.count += 1
        self._step.size += size
        if self._step.count >= MESSAGES or self._step.size >= BYTES:
            self._flush()

    def complete(self, whole: bool = True) -> None:
        """No line follows. What the file lacks of its messages is told in the notes. Not `whole`:
        lines may have followed once."""
        missing = self.facts.head - self._at
        if whole and 0 < missing <= self._lost.messages:
            self._fill(self.facts.head + 1)
        elif missing > 0:
            self._note(f"its messages from seq {self._at + 1} on are missing in the file")

    def finish(self) -> Restored:
        """Write what is left."""
        if self._checking:
            self._settle()
            self._step.count += self._has_news()
        self._flush()
        return self._restored()

    def unit(self) -> Apply:
        """What is left, for a transaction that others share: of a small one."""
        step, self._step = self._step, Step()
        return Apply(self._db.kit, self._profile, self.facts, self._columns, step)

    def written(self, outcome: Written) -> Restored:
        """The unit was written."""
        self._take(outcome)
        return self._restored()

    def _restored(self) -> Restored:
        added = self._head - self._first_head
        return Restored(self.made, self._changed, added, self._head, tuple(self._notes))

    def _has_news(self) -> bool:
        """Whether the file says more of a conversation that does not grow: a title, an end."""
        there = self._there
        if there is None or there.ahead or there.head > self.facts.head:
            return False
        given = fitting(self._columns, there.columns["base"], there.head)
        return bool(news(there.columns, given, longer=False, moved=False))

    def _message(self, line: MessageLine) -> None:
        if line.seq <= self._at:
            raise InputError(f"seq {line.seq} stands a second time")
        if line.seq > self.facts.head:
            raise InputError(f"seq {line.seq} lies above the head {self.facts.head}")
        gap = line.seq - self._at - 1
        if gap > self._lost.messages:
            raise Refused(f"seq {line.seq} follows {self._at}: lines of the file are missing")
        if gap:  # what is lost may have ended the turn that the last line was in
            self._rules.stand_in_turn()
        values = self._values(line)
        if gap:
            self._fill(line.seq)
        self._next(values)

    def _values(self, line: MessageLine) -> Fields:
        kit = self._db.kit
        parts = self._with_bytes(line)
        draft = Draft(
            role=line.role, parts=parts, uid=line.uid, key=line.key, author=line.author,
            api_group=line.api_group, tokens=line.tokens, meta=line.meta,
            created_at=line.created_at,
        )  # fmt: skip
        (ready,) = prepare_all(kit, [draft])
        if line.replaces is not None and line.replaces >= line.seq:
            raise InputError(f"replaces names seq {line.replaces}; only an earlier one can be")
        self._step.blobs.update((h, data) for h, data in ready.blobs.items() if data is not None)
        return {
            "seq": line.seq, "uid": ready.uid, "key": ready.key,
            "turn": self._rules.turn_of(line, self._asked), "role": ready.role,
            "author": ready.author, "api_group": ready.api_group,
            "replaces": line.replaces, "parts": ready.parts,
            "meta": ready.meta, "tokens": ready.tokens, "created_at": ready.at,
        }  # fmt: skip

    def _next(self, values: Fields) -> None:
        """A message at the next seq."""
        self._at += 1
        self._rules.at = self._at
        if self._checking and self._at > self._head:
            self._settle()
        self._step.messages.append(values)

    def _fill(self, before: int) -> None:
        """Stand-ins for messages whose lines are damaged, up to a seq, so that all others keep
        theirs."""
        kit = self._db.kit
        while self._at + 1 < before:
            seq = self._at + 1
            self._lost.messages -= 1
            uid = hashlib.sha256(f"{self.facts.conversation} {seq}".encode()).digest()[:16]
            if seq > self._head:
                self._note(f"seq {seq} is lost; a text stands in its place")
            self._next({
                "seq": seq, "uid": uid, "key": None, "turn": self._rules.stand_in_turn(),
                "role": ROLE_CODES[Role.SYSTEM], "author": None, "api_group": None,
                "replaces": None, "parts": kit.codec.pack((Text(LOST),)),
                "meta": json_text(STANDS_IN), "tokens": None,
                "created_at": self.facts.created_at,
            })  # fmt: skip

    def _asked(self, calls: set[str]) -> bool:
        """Whether all these calls were made by messages before."""
        if self._checking:
            return True
        self._flush()
        return not self._dry and not self._db.read(lambda tx: self._not_asked(tx, calls))

    def _not_asked(self, tx: Transaction, calls: set[str]) -> set[str]:
        found = tx.row("conversation_no", id=self.facts.conversation)
        row = None if found is None else conversations.peek(tx, found[0])
        if row is None:
            return calls
        parts = log.segments(tx, row.no, row.base, row.origin, row.head)
        near = log.ranges(parts, (), max(1, row.head - LOOKED_BACK), row.head)
        return log.not_asked(tx, self._db.kit.codec, near, calls)

    def _whole_body(self, line: CompactionLine) -> CompactionLine:
        """Without images and files whose bytes are nowhere."""
        missing = self._missing(line_hashes(line))
        if not missing:
            return line
        self._note(f"an image or file in compaction {line.generation} is lost")
        body = tuple(
            structs.replace(item, parts=tuple(_without(part, missing) for part in item.parts))
            if isinstance(item, Inline) else item
            for item in line.body
        )  # fmt: skip
        return structs.replace(line, body=body)

    def _with_bytes(self, line: MessageLine) -> Parts:
        """The parts, without images and files whose bytes are nowhere."""
        missing = self._missing(line_hashes(line))
        if not missing:
            return line.parts
        if line.seq > self._head:
            self._note(f"an image or file of seq {line.seq} is lost")
        return tuple(_without(part, missing) for part in line.parts)

    def _missing(self, wanted: set[bytes]) -> set[str]:
        """Which of these hashes nobody has the bytes of."""
        wanted = wanted - self._rules.blobs
        if wanted and self._there is not None:
            no, asked = self._there.no, wanted
            wanted = asked - self._db.read(lambda tx: known_blobs(tx, no, asked))
        return {digest.hex() for digest in wanted}

    def _blob(self, line: BlobLine) -> None:
        digest = hashlib.sha256(line.data).digest()
        if len(line.data) > self._db.kit.limits.blob:
            raise TooLarge("blob", len(line.data), self._db.kit.limits.blob)
        if digest.hex() != line.hash:
            raise InputError(f"these are not the bytes of {line.hash}")
        self._rules.blobs.add(digest)
        self._step.blobs[digest] = line.data

    def _prompt(self, line: PromptLine | ToolsetLine) -> None:
        value = line.text if isinstance(line, PromptLine) else line.schemas
        body = escape_json(value)
        if len(body) > self._db.kit.limits.prompt:
            raise TooLarge("prompt", len(body), self._db.kit.limits.prompt)
        if hashlib.sha256(body).hexdigest() != line.hash:
            raise InputError(f"this is not the {line.__struct_config__.tag} of {line.hash}")
        if isinstance(line, PromptLine):
            self._step.prompts.append(line.text)
        else:
            for schema in line.schemas:
                tool_name(schema)
            self._step.toolsets.append(line.schemas)

    def _record(self, line: Record) -> None:
        table = table_of(line)
        if isinstance(line, CompactionLine):
            line = self._whole_body(line)
        values = values_of(self._db.kit, line)
        if 0 < needs(line) - self._at <= self._lost.messages:
            self._fill(needs(line) + 1)
        for filler in self._rules.check(line, self._lost.compactions):
            self._lost.compactions -= 1
            self._note(f"compaction {filler.generation} is lost")
            self._step.record(table, values_of(self._db.kit, filler))
        if isinstance(line, CompactionLine):
            values["attempt"] = self._rules.attempt_of(line)
        self._step.record(table, values)

    # ------------------------------------------------------------------ steps

    def _look(self, tx: Transaction) -> There | None:
        """What is here by this id; Refused where this cannot be brought."""
        facts = self.facts
        if facts.end_reason is not None:
            conversations.check_reason(tx, facts.end_reason)
        found = tx.row("conversation_no", id=facts.conversation)
        if found is None:
            self._check_origin(tx)
            return None
        row = tx.row("copy_conversation_one", no=found[0])
        if found[1] != self._profile or row is None:
            raise KeyReused(facts.conversation, None, "conversation")
        columns: Fields = dict(zip(COLUMNS, row[2:], strict=True))
        if columns["affinity"] != facts.affinity:
            raise KeyReused(facts.conversation, None, "conversation")
        numbers = tx.rows("transfer_numbers", no=found[0])[0]
        said = (facts.cuts, facts.attempts, facts.turns, facts.calls, facts.generation)
        here = (*numbers, columns["generation"])
        ahead = any(a > b for a, b in zip(here, said, strict=True))
        return There(found[0], columns["head"], ahead, columns)

    def _check_origin(self, tx: Transaction) -> None:
        facts = self.facts
        if (facts.kind == "branch") != (facts.base > 0) and (facts.base or facts.origin):
            raise InputError(f"a {facts.kind} with base {facts.base}: only a branch has one")
        if facts.kind == "root" and facts.origin is not None:
            raise InputError("a root has no origin")
        if facts.head < facts.base:
            raise InputError(f"head {facts.head} lies below base {facts.base}")
        if not facts.base:
            return
        head = self._planned.get(facts.origin or "", 0)
        found = tx.row("conversation_no", id=facts.origin)
        if found is not None and found[1] == self._profile:
            origin = conversations.peek(tx, found[0])
            head = max(head, 0 if origin is None else origin.head)
        if head < facts.base:
            raise Refused(
                f"it goes on with messages 1 to {facts.base} of {facts.origin}, which are not "
                f"here; export and import that one with it"
            )

    def _flush(self) -> None:
        """Write the step, or compare it with what is here."""
        step, self._step = self._step, Step()
        if self._checking:
            self._compare(step)
        elif self._dry:
            self._changed |= bool(step.count) or self.made
            self._head = max(self._head, self._at)
        elif step.count or self.made or self._changed:
            unit = Apply(self._db.kit, self._profile, self.facts, self._columns, step)
            self._take(self._db.write(unit))

    def _take(self, written: Written) -> None:
        self._head, self._changed = written.head, self._changed or written.changed
        for seq in written.dropped:
            self._note(f"the key of seq {seq} names another message")

    def _note(self, text: str) -> None:
        if len(self._notes) < NOTES:
            self._notes.append(text)

    def _compare(self, step: Step) -> None:
        """Refuse what differs; keep what is new until all was compared."""
        assert self._there is not None
        id, pending = self.facts.conversation, self._pending
        compare = Compare(self._db.kit, self._profile, self._there.no, id, step)
        pending.take(self._db.read(compare))
        if pending.count > PENDING or pending.size > PENDING_BYTES:
            raise diverged(id, "many records")

    def _settle(self) -> None:
        """All that is here was compared. What is new may be written, unless both went on."""
        self._flush()
        assert self._there is not None
        pending, self._pending = self._pending, Step()
        grows = self._at > self._there.head or bool(pending.count)
        if grows and (self._there.ahead or self._there.head > self.facts.head):
            raise diverged(self.facts.conversation, "records")
        self._checking = False
        self._step = pending


def _without(part: Part, missing: set[str]) -> Part:
    """A text in the place of an image or file whose bytes are missing."""
    match part:
        case Image(hash=str(name)) | File(hash=str(name)) if name in missing:
            return Text(LOST_BYTES)
        case ToolResult(content=tuple(pieces)):
            content = tuple(_without(piece, missing) for piece in pieces)
            return structs.replace(part, content=content)
        case _:
            return part
