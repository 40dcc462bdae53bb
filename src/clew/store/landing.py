"""Landing what an import brings: new lines of a chat and their messages, cuts and compactions.

An importer reads the lines of a chat as they are, plans what the source adds to them, and lands the
plan. Planning takes no lock. What makes that safe: each landing names the head and the mark
`imported_to` that its plan began at, and the unit compares both under the conversation's lock, so
of two importers, or of an importer and a person who writes, the second gets ImportOvertaken,
having
written nothing, and plans again. A new line claims its names in the transaction that makes it, at
the unique index on claimed aliases. Invariant: I-19.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from clew.domain.compactions import BodyItem
from clew.domain.conversations import NewConversation, TitleOrigin, Workspace
from clew.domain.turns import Spent
from clew.errors import ImportOvertaken, NotFound
from clew.store import aliases, calls, compactions, conversations, cuts, log
from clew.store.backend import Transaction
from clew.store.branches import BranchAt, Delegate
from clew.store.conversations import Locked
from clew.store.drafts import Prepared
from clew.store.kit import Kit


class Name(Struct, frozen=True):
    """A foreign id that a line is to have, for messages from `from_seq` on."""

    foreign_id: str
    from_seq: int = 1
    kind: Literal["segment", "foreign"] = "foreign"


class Append(Struct, frozen=True):
    """Messages, at head + 1 and following."""

    prepared: tuple[Prepared, ...]


class CutFrom(Struct, frozen=True):
    """Hide from_seq..head as it is at this step. `uid` names the cut."""

    from_seq: int
    by: str
    uid: bytes
    at: int


class Compact(Struct, frozen=True):
    """A compaction of the source; covers_to is lowered where it would split a call from its
    results."""

    covers_to: int
    body: tuple[BodyItem, ...]
    tokens_before: int | None
    tokens_after: int | None
    receipt: dict[str, Any]
    at: int


class Spend(Struct, frozen=True):
    """The usage of a model call, counted once for each group."""

    group: str
    spent: Spent
    up_to_seq: int
    at: int


class Retitle(Struct, frozen=True):
    """A title that the source gives. One that is not `was` was given here meanwhile, and stays."""

    title: str
    origin: TitleOrigin
    was: str | None = None
    is_first: bool = False
    """The line is made with it: what it has inherited gives way."""


class Settle(Struct, frozen=True):
    """Where the agent works now and with which model; None leaves it."""

    cwd: str | None
    git_branch: str | None
    model: str | None


ORIGINS: tuple[TitleOrigin, ...] = ("user", "llm", "derived")
Single = Append | Compact | Retitle | Settle | Name
Step = Single | CutFrom | Spend


class NewLine(Struct, frozen=True):
    """A conversation to make; `new.id` is the landing's."""

    new: NewConversation
    kind: Literal["root", "branch", "delegate"] = "root"
    origin: str | None = None
    """Id of the conversation it comes from."""
    at: int = 0
    """Of a branch: the last seq it inherits; it may be one that a cut hides."""


class Landing(Struct, frozen=True):
    """What one conversation gets, in this order, in one transaction."""

    id: str
    source: str
    steps: tuple[Step, ...]
    new: NewLine | None
    head: int
    """The head that the plan began at; of a new line its base."""
    imported_to: int | None
    reached: int | None
    """The seq that is the last imported one afterwards."""
    cuts: int = 0
    """Cuts in force above the base that the plan began with."""


class Land:
    """The unit that lands several conversations in one transaction, or none of them."""

    def __init__(self, kit: Kit, profile: str, landings: Sequence[Landing]) -> None:
        self._kit, self._profile, self._landings = kit, profile, landings
        self._ran = False

    def __call__(self, tx: Transaction) -> None:
        """A later run (a commit was in doubt) first looks whether the first one is stored: its
        marks are there, and only it could have set them from where the plan began."""
        if self._ran and all(self._is_stored(tx, landing) for landing in self._landings):
            return
        self._ran = True
        for landing in self._landings:
            self._land(tx, landing)

    def _is_stored(self, tx: Transaction, landing: Landing) -> bool:
        found = tx.row("conversation_no", id=landing.id)
        if found is None:
            return False
        conversations.lock(tx, found[0], landing.id)
        imported_to = tx.rows("import_row", no=found[0])[0][0]
        return landing.reached is None or (
            imported_to is not None and imported_to >= landing.reached
        )

    def _land(self, tx: Transaction, landing: Landing) -> None:
        kit, new = self._kit, landing.new
        no = self._make(tx, landing, new) if new else self._number(tx, landing.id)
        row = conversations.lock(tx, no, landing.id)
        if new is None and not self._is_as_planned(tx, row, landing):
            raise ImportOvertaken(landing.id)
        spent: list[Spend] = []
        hides = cuts.LandedCuts(tx, kit, row)
        for step in landing.steps:
            match step:
                case Spend():
                    spent.append(step)
                case CutFrom():
                    hides.store(row, step.from_seq, step.by, step.uid, step.at)
                case _:
                    row = self._step(tx, row, landing.source, step)
        row = hides.count(row)
        if spent:  # many, at the end
            calls.land(tx, kit, no, [(s.group, s.spent, s.up_to_seq, s.at) for s in spent])
        if new is not None or landing.reached != landing.imported_to:
            conversations.imported(tx, no, landing.reached, kit.clock.now())

    def _is_as_planned(self, tx: Transaction, row: Locked, landing: Landing) -> bool:
        """Whether the line is as it was when the plan began; if it gets messages, also whether it
        takes them, and shows the same."""
        imported_to = tx.rows("import_row", no=row.no)[0][0]
        if (row.head, imported_to) != (landing.head, landing.imported_to):
            return False
        if not any(isinstance(step, Append | CutFrom) for step in landing.steps):
            return True
        shown = sum(cut.in_force and cut.to_seq > row.base for cut in cuts.all_of(tx, row.no))
        busy = row.turn is not None or row.waiting or row.read_only or row.ended_at is not None
        return shown == landing.cuts and not busy

    def _number(self, tx: Transaction, id: str) -> int:
        try:
            return conversations.number_of(tx, self._profile, id)
        except NotFound:
            raise ImportOvertaken(id) from None

    def _make(self, tx: Transaction, landing: Landing, new: NewLine) -> int:
        if new.kind == "root" or new.origin is None:
            return conversations.create(tx, self._kit, self._profile, new.new, id=landing.id)
        origin = self._number(tx, new.origin)
        if new.kind == "branch":
            return BranchAt(self._kit, origin, new.origin, new.new, new.at).run(tx)
        return Delegate(self._kit, origin, new.origin, new.new).run(tx)

    def _step(self, tx: Transaction, row: Locked, source: str, step: Single) -> Locked:
        match step:
            case Append(prepared=prepared):
                return log.insert(tx, row, prepared)
            case Compact():
                return compactions.land(
                    tx, self._kit, row, step.covers_to, step.body, step.receipt, step.at,
                    (step.tokens_before, step.tokens_after),
                )  # fmt: skip
            case Retitle():
                self._retitle(tx, row, step)
            case Settle():
                _settle(tx, self._kit, row, step)
            case Name():
                self._name(tx, row, source, step)
        return row

    def _name(self, tx: Transaction, row: Locked, source: str, name: Name) -> None:
        state = aliases.claim(
            tx, self._kit, row, source, name.foreign_id, from_seq=name.from_seq, kind=name.kind
        )
        if state == "ambiguous" and name.kind == "foreign":
            raise ImportOvertaken(name.foreign_id)

    def _retitle(self, tx: Transaction, row: Locked, step: Retitle) -> None:
        now = dict(zip(ORIGINS, tx.rows("import_row", no=row.no)[0][1:], strict=True))
        if step.is_first or now[step.origin] == step.was:
            conversations.set_title(tx, row, step.title, step.origin, self._kit.clock.now())


def _settle(tx: Transaction, kit: Kit, row: Locked, step: Settle) -> None:
    info = conversations.info(tx, row.no)
    place = Workspace(step.cwd or info.cwd, info.git_root, step.git_branch or info.git_branch)
    if (place.cwd, place.git_branch, step.model or info.model) != (
        info.cwd, info.git_branch, info.model,
    ):  # fmt: skip
        conversations.set_workspace(tx, kit, row, place, step.model)
