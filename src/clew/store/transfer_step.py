"""One transaction of a conversation that is brought from a file: bring what is not there.

Idempotent: what is there already and is the same is passed over, so a step whose commit was in
doubt, or an import that was interrupted, is simply run again. What is there and differs is Refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from clew.errors import KeyReused, Refused, TurnOpen
from clew.store import conversations, cuts, log, prompts
from clew.store.backend import Row, Transaction, Value
from clew.store.changes import note
from clew.store.conversations import Locked
from clew.store.copy.conversations import COLUMNS
from clew.store.copy.rows import insert_conversation, insert_messages, update_conversation
from clew.store.kit import Kit
from clew.store.transfer_dump import page
from clew.store.transfer_lines import Facts
from clew.store.transfer_rows import ALIAS, EXPORTED, KEYS, TABLES, Fields, named

_CORES = {
    "cut": ("uid", "from_seq", "to_seq", "at", "by"),
    "attempt": ("uid", "view", "base_generation", "trigger", "started_at"),
    "compaction": ("covers_to", "kind", "created_at"),
    "turn": ("uid", "first_seq", "started_at"),
    "model_call": ("model", "purpose", "started_at"),
    "todo": (), "goal": ("text",),
}  # fmt: skip
"""What never changes of a record."""
_PAGED = ("compaction", "turn", "model_call")
_NEW: Fields = {
    "message_count": 0, "generation": 0, "turn": None, "waiting": 0, "binned_at": None,
    "deleting": 0, "prompt_hash": None, "toolset_hash": None,
}  # fmt: skip
"""What a conversation begins with, whatever the file says."""
_NOTES = {"cut": "cut", "compaction": "compacted"}


class Step:
    """What one transaction brings."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.toolsets: list[prompts.ToolSchemas] = []
        self.blobs: dict[bytes, bytes] = {}
        self.messages: list[Fields] = []
        self.records: dict[str, list[Fields]] = {}
        self.aliases: list[Fields] = []
        self.count = self.size = 0

    def record(self, table: str, values: Fields) -> None:
        """One more record; those of a table come in the order of their numbers."""
        self.records.setdefault(table, []).append(values)

    def held(self) -> int:
        """How many things it holds."""
        listed = (self.prompts, self.toolsets, self.blobs, self.messages, self.aliases)
        return sum(map(len, (*listed, *self.records.values())))

    def take(self, other: Step) -> None:
        """All of another one that comes behind this one, without messages."""
        self.prompts += other.prompts
        self.toolsets += other.toolsets
        self.aliases += other.aliases
        self.blobs |= other.blobs
        for table, listed in other.records.items():
            self.records.setdefault(table, []).extend(listed)
        self.count, self.size = self.count + other.count, self.size + other.size

    def numbers(self, table: str) -> tuple[int, int]:
        """Lowest and highest number of a kind of record in it."""
        key = KEYS.get(table, "number")
        found = [values[key] for values in self.records[table]]
        return min(found), max(found)


class Written(NamedTuple):
    """What a step did: the head after it, whether anything was new, and keys that were dropped."""

    head: int
    changed: bool
    dropped: tuple[int, ...] = ()
    """Seqs of messages whose key names another message."""


class Apply:
    """The unit. `columns` and `facts` say what the conversation is."""

    def __init__(
        self, kit: Kit, profile: str, facts: Facts, columns: Mapping[str, Value], step: Step
    ) -> None:
        self._kit, self._profile, self._facts = kit, profile, facts
        self._columns, self._step = columns, step
        self.nth = 0
        """Number in the transaction of the first message."""
        # What a first run did, whose commit was in doubt, a second one finds done.
        self._changed = False
        self._dropped: list[int] = []

    @property
    def size(self) -> int:
        """Messages, at most."""
        return len(self._step.messages)

    def __call__(self, tx: Transaction) -> Written:
        row, made = self._place(tx)
        if row.holder is not None:
            raise TurnOpen(row.id, row.turn or 0, row.holder)
        found = tx.row("copy_conversation_one", no=row.no)
        assert found is not None
        columns: Fields = dict(zip(COLUMNS, found[2:], strict=True))
        before = dict(columns)
        if columns["affinity"] != self._facts.affinity:
            raise KeyReused(row.id, None, "conversation")
        self._prompts(tx, row)
        blobs = [{"no": row.no, "hash": h, "bytes": data} for h, data in self._step.blobs.items()]
        tx.batch(TABLES["blob"].insert, blobs)
        head = self._messages(tx, row)
        changed = {
            table: done
            for table in self._step.records
            if (done := self._records(tx, row, table, made))
        }
        if self._aliases(tx, row):
            changed["alias"] = []
        given = fitting(self._columns, row.base, head)
        if made:
            columns |= {**given, **_NEW}
        self._counts(tx, row, columns, head, changed, made)
        longer = head > row.head
        self._prompt_now(tx, row.no, columns, made or longer)
        if not made:
            columns |= news(columns, given, longer, longer or "cut" in changed)
        moved = made or columns != before
        if moved:
            origin = self._origin(tx) if made else row.origin
            update_conversation(tx, row.no, origin, columns)
        if not made:
            self._tell(tx, row, changed)
        self._changed = self._changed or moved or bool(changed)
        return Written(head, self._changed, tuple(self._dropped))

    # ------------------------------------------------------------------ the row

    def _place(self, tx: Transaction) -> tuple[Locked, bool]:
        """The conversation, locked, and whether it was made just now."""
        id = self._facts.conversation
        made = False
        if tx.row("conversation_no", id=id) is None:
            columns = {**self._columns, "profile": self._profile, "base": self._facts.base}
            made = insert_conversation(tx, columns)
        found = tx.row("conversation_no", id=id)
        if found is None:
            raise Refused(
                f"{id} is in the bin, or being deleted: `clew bin` and `clew doctor` say more"
            )
        if found[1] != self._profile:
            raise KeyReused(id, None, "conversation")
        if made:
            note(tx, id, self._profile, "created", self._facts.created_at)
        return conversations.lock(tx, found[0], id), made

    def _origin(self, tx: Transaction) -> int | None:
        """The number of the origin, which is held where messages of it are inherited."""
        facts = self._facts
        if facts.origin is None or facts.kind == "root":
            return None
        found = tx.row("conversation_no", id=facts.origin)
        if found is None or found[1] != self._profile:
            if facts.base:
                raise Refused(f"its origin {facts.origin} is not here; import that first")
            return None
        if facts.base:
            tx.row("conversation_base_hold", no=found[0])
            origin = conversations.peek(tx, found[0])
            if origin is None or origin.head < facts.base:
                raise Refused(f"it begins behind seq {facts.base}, which its origin does not have")
        return found[0] if facts.base or facts.kind == "delegate" else None

    def _counts(
        self, tx: Transaction, row: Locked, columns: Fields, head: int,
        changed: Mapping[str, list[Fields]], made: bool,
    ) -> None:  # fmt: skip
        """Counters, as the rows are now."""
        if made or "cut" in changed:
            base, origin = self._facts.base, self._origin(tx) if made else row.origin
            parts = log.segments(tx, row.no, base if made else row.base, origin, head)
            columns["message_count"] = cuts.visible_count(tx, parts, cuts.all_of(tx, row.no), head)
        else:
            new = [values for values in self._step.messages if values["seq"] > row.head]
            columns["message_count"] += sum(values["replaces"] is None for values in new)
        if "cut" in changed and row.kind != "branch":
            moves = sum(1 if cut.in_force else 2 for cut in cuts.all_of(tx, row.no))
            columns["view"] = max(columns["view"], moves)
        generations = (values["generation"] for values in changed.get("compaction", ()))
        columns["generation"] = max(columns["generation"], *generations, 0)
        for turn in changed.get("turn", ()):
            columns["fence"] = max(columns["fence"], 1)
            if turn["state"] == "waiting":
                columns["turn"] = turn["number"]
            elif columns["turn"] == turn["number"]:
                columns["turn"] = None

    def _prompt_now(self, tx: Transaction, no: int, columns: Fields, longer: bool) -> None:
        """The prompt and tool set that the file says, if they came with it."""
        used = {row[1] for row in tx.rows("copy_prompt_use_rows", first=no, last=no)}
        for name in ("prompt", "toolset"):
            said: str | None = getattr(self._facts, name)
            digest = None if said is None else bytes.fromhex(said)
            if digest in used and (longer or columns[f"{name}_hash"] is None):
                columns[f"{name}_hash"] = digest

    def _tell(self, tx: Transaction, row: Locked, changed: Mapping[str, list[Fields]]) -> None:
        """Followers and the search index see that more than messages is new."""
        for table in changed.keys() & _NOTES.keys():
            note(tx, row.id, row.profile, _NOTES[table], self._kit.clock.now())

    # ------------------------------------------------------------------ what it holds

    def _prompts(self, tx: Transaction, row: Locked) -> None:
        for text in self._step.prompts:
            prompts.use(tx, row.no, prompts.store(tx, self._kit, text, None)[0])
        for schemas in self._step.toolsets:
            prompts.use(tx, row.no, prompts.store(tx, self._kit, None, schemas)[1])

    def _messages(self, tx: Transaction, row: Locked) -> int:
        """Insert those above the head; gives the head."""
        there = [values for values in self._step.messages if values["seq"] <= row.head]
        new = self._step.messages[len(there) :]
        if there:
            first, last = there[0]["seq"], there[-1]["seq"]
            rows = tx.rows("message_uids", no=row.no, after=first - 1, last=last)
            if [found[1] for found in rows] != [values["uid"] for values in there]:
                raise changed_meanwhile(row.id)
        if not new:
            return row.head
        if new[0]["seq"] != row.head + 1:
            raise changed_meanwhile(row.id)
        self._check_keys(tx, row, new)
        insert_messages(tx, row.no, row.base, new, self.nth)
        return new[-1]["seq"]

    def _check_keys(self, tx: Transaction, row: Locked, new: list[Fields]) -> None:
        """A key names one message (I-05): a second one goes without."""
        keyed = [values for values in new if values["key"] is not None]
        if not keyed:
            return
        origin = row.origin
        if origin is None and row.head == self._facts.base:  # made just now
            origin = self._origin(tx)
        parts = log.segments(tx, row.no, row.base, origin, row.head)
        seen: set[str] = set()
        for values in keyed:
            key = values["key"]
            if key in seen or any(
                tx.row("message_by_key", no=no, key=key, last=last) for no, _, last in parts
            ):
                values["key"] = None
                self._dropped.append(values["seq"])
            seen.add(key)

    def _records(self, tx: Transaction, row: Locked, table: str, made: bool) -> list[Fields]:
        """Insert what is missing, replace what went on in the file. Gives what is new."""
        here = {} if made else existing(tx, row.no, table, *self._step.numbers(table))
        new: list[Fields] = []
        for values in self._step.records[table]:
            there = here.get(values[KEYS.get(table, "number")])
            if there is not None and not went_on(self._kit, table, values, there):
                continue
            if there is not None:
                key = KEYS.get(table, "number")
                tx.run(TABLES[table].delete, no=row.no, **{key: values[key]})
            self._known_prompts(tx, row, values)
            tx.run(TABLES[table].insert, no=row.no, **values)
            new.append(values)
        return new

    def _known_prompts(self, tx: Transaction, row: Locked, values: Fields) -> None:
        """A call names a prompt or tool set only if it has come with the file."""
        if "prompt_hash" in values:
            used = {
                found[1] for found in tx.rows("copy_prompt_use_rows", first=row.no, last=row.no)
            }
            for name in ("prompt_hash", "toolset_hash"):
                if values[name] not in used:
                    values[name] = None

    def _aliases(self, tx: Transaction, row: Locked) -> bool:
        """Claim them as the file has them, as far as nobody else has. Whether there was any."""
        new = False
        for values in self._step.aliases:
            key = {"foreign_id": values["foreign_id"], "source": values["source"]}
            known = tx.rows("alias_find", profile=row.profile, **key)
            mine = [state for _, id, _, _, state in known if id == row.id]
            if mine and mine[0] != "deleted":
                continue
            taken = any(state == "claimed" for *_, state in known)
            state = "ambiguous" if taken else values["state"]
            place = {**key, "profile": row.profile, "conversation": row.id}
            if mine:
                tx.run(ALIAS.delete, **place)
            rest = {name: values[name] for name in ("from_seq", "kind", "at")}
            if not tx.changed(ALIAS.insert, **place, **rest, state=state):  # claimed meanwhile
                tx.run(ALIAS.insert, **place, **rest, state="ambiguous")
            new = True
        return new


class Together:
    """Units of several conversations in one transaction. In it each message has a number of its
    own, whatever its seq: ids are made of it."""

    def __init__(self, units: Sequence[Apply]) -> None:
        self._units = units

    def __call__(self, tx: Transaction) -> list[Written]:
        nth = 0
        written: list[Written] = []
        for unit in self._units:
            unit.nth = nth
            nth += unit.size
            written.append(unit(tx))
        return written


def changed_meanwhile(id: str) -> Refused:
    """Somebody writes to the conversation while it is imported."""
    return Refused(f"{id} was written to while it was imported; import again")


def diverged(id: str, where: str) -> Refused:
    """The conversation here is not the beginning of the one in the file."""
    return Refused(
        f"{id} is here and differs from the file ({where}): it went on in both. Nothing of it was "
        f"imported; delete it first, or import into another profile of another store"
    )


def existing(
    tx: Transaction, no: int, table: str, first: int, last: int
) -> dict[int, Fields]:  # fmt: skip
    """Records of a kind that are there, by number."""
    known = TABLES[table]
    rows: list[Row]
    if table in _PAGED:
        rows = page(tx, no, table, first - 1, min(last - first + 1, 1 << 16))
    else:
        rows = tx.rows(known.rows, first=no, last=no)
    return {row[1]: named(known, row) for row in rows}


def went_on(kit: Kit, table: str, values: Fields, there: Fields) -> bool:
    """Whether a record of the file has gone on since it was stored here. Refused when it is
    another one."""
    if any(values[name] != there[name] for name in _CORES[table]) or (
        table == "compaction" and kit.codec.json(values["body"]) != kit.codec.json(there["body"])
    ):
        number = values[KEYS.get(table, "number")]
        raise Refused(f"{table.replace('_', ' ')} {number} is another one here")
    match table:
        case "cut" | "compaction":
            return there["undone_at"] is None and values["undone_at"] is not None
        case "attempt":
            return there["state"] == "open" and values["state"] != "open"
        case "turn":
            unsure = there["state"] in ("running", "waiting") or there["error"] == EXPORTED
            return unsure and values["error"] != EXPORTED and values["state"] != "waiting"
        case "model_call":
            done = there["state"] == "planned" and values["state"] != "planned"
            return done or (
                values["state"] == there["state"]
                and values["output_tokens"] > there["output_tokens"]
            )
        case "goal":
            return there["state"] == "active" and values["state"] != "active"
        case _:
            return values["at"] > there["at"]


def fitting(file: Mapping[str, Any], base: int, head: int) -> Fields:
    """The columns of a file for a conversation that has these messages so far."""
    reached = file["imported_to"]
    return {**file, "imported_to": None if reached is None else min(max(reached, base), head)}


def news(here: Fields, file: Mapping[str, Any], longer: bool, moved: bool) -> Fields:
    """What a file says that is new to a conversation that is here, by column. `longer`: it has more
    messages; `moved`: the newest that is visible may be another one."""
    found: Fields = {
        name: max(here[name], file[name]) for name in ("view", "fence", "active_at")
    } | {"imported_to": _later(here["imported_to"], file["imported_to"])}
    for name in ("title_user", "title_llm", "title_derived", "meta", "attribution"):
        found[name] = file[name] if here[name] is None else here[name]
    for name in ("cwd", "git_root", "git_branch", "model") if longer else ():
        found[name] = here[name] if file[name] is None else file[name]
    if moved:
        found["preview"] = file["preview"]
    ended = file["ended_at"]
    if ended and here["ended_at"] is None and ended > (here["reopened_at"] or 0):
        found |= {"ended_at": ended, "end_reason": file["end_reason"]}
    return {name: value for name, value in found.items() if value != here[name]}


def _later(here: int | None, there: int | None) -> int | None:
    if there is None:
        return here
    return there if here is None else max(here, there)
