"""Branches and delegates: conversations that come from another.

A branch continues its origin's numbers: seqs 1..base are the origin's own rows, read there. It
copies records, not messages: the cuts in force, the compaction in effect, open todos, prompt and
tool set; never a binding, a goal or an open turn. A delegate starts empty.
"""

from __future__ import annotations

from msgspec.structs import replace

from clew.domain.compactions import Compaction
from clew.domain.conversations import NewConversation, Workspace
from clew.domain.cuts import Cut, hidden
from clew.errors import InputError, KeyReused, NotFound, Stale
from clew.store import compactions, conversations, cuts, log, todos
from clew.store.backend import Transaction
from clew.store.conversations import Locked
from clew.store.kit import Kit
from clew.store.unit import Once

NO_CUT = 1 << 62


class Branch(Once[int]):
    """Branch at a message (by uid), at the head, or of the line that a cut hides.

    Locks the origin too: a cut or deletion of it cannot slip between reading and copying.
    """

    def __init__(
        self, kit: Kit, no: int, name: str, new: NewConversation, *, uid: str | None,
        at_cut: int | None, head: int | None,
    ) -> None:  # fmt: skip
        if uid is not None and at_cut is not None:
            raise InputError("give a message or a cut to branch from, not both")
        self._kit, self._no, self._name, self._new = kit, no, name, new
        self._uid, self._at_cut, self._head = uid, at_cut, head
        self.id = new.id or kit.ids.conversation()

    def run(self, tx: Transaction) -> int:
        origin = conversations.lock(tx, self._no, self._name)
        all_cuts = cuts.all_of(tx, origin.no)
        existing = tx.row("conversation_no", id=self.id)
        if existing is not None and existing[1] == origin.profile:
            return self._again(tx, origin, all_cuts, existing[0])
        if self._head is not None and self._head != origin.head:
            raise Stale("head", self._head, origin.head)
        base, below = self._point(tx, origin, all_cuts)
        kept = [c for c in all_cuts if c.in_force and c.number < below and c.from_seq <= base]
        parts = log.segments(tx, origin.no, origin.base, origin.origin, base, hold=True)
        clipped = [replace(c, to_seq=min(c.to_seq, base)) for c in kept]
        count = cuts.visible_count(tx, parts, clipped, base)
        preview = log.last_preview(tx, self._kit.codec, log.ranges(parts, clipped, 1, base))
        inherited = compactions.effective(tx, self._kit, origin.no, clipped, base)
        no = conversations.create(
            tx, self._kit, origin.profile, self._inheriting(tx, origin), id=self.id,
            kind="branch" if base else "root", origin=origin if base else None, base=base,
            generation=int(inherited is not None), message_count=count, preview=preview,
        )  # fmt: skip
        cuts.copy(tx, origin.no, no, base, below)
        if inherited is not None:
            compactions.inherit(tx, self._kit, no, inherited, self._date(inherited))
        todos.copy_open(tx, origin.no, no)
        conversations.inherit_records(tx, origin.no, no)
        return no

    def _again(self, tx: Transaction, origin: Locked, all_cuts: list[Cut], no: int) -> int:
        """The first branch of this id, if it is this one; the origin may have moved on since."""
        base: int | None
        if self._uid is not None:
            base = log.seq_of(tx, log.segments_of(tx, origin), self._uid)
        elif self._at_cut is not None:
            base = self._point(tx, origin, all_cuts)[0]
        else:
            base = None if origin.head else 0
        kind, place = ("root", None) if base == 0 else ("branch", origin)
        if not conversations.is_made(tx, no, kind, place, base):
            raise KeyReused(self.id, None, "conversation")
        return no

    def _point(self, tx: Transaction, origin: Locked, all_cuts: list[Cut]) -> tuple[int, int]:
        """The last inherited seq, and the number below which cuts are copied."""
        if self._at_cut is not None:
            for cut in all_cuts:
                if cut.number == self._at_cut:
                    return cut.to_seq, cut.number
            raise NotFound("cut", str(self._at_cut))
        if self._uid is None:
            return origin.head, NO_CUT
        seq = log.seq_of(tx, log.segments_of(tx, origin), self._uid)
        if hidden(all_cuts, seq):
            raise InputError(
                f"the message at seq {seq} is hidden by a cut; open its line with at_cut"
            )
        return seq, NO_CUT

    def _date(self, inherited: Compaction) -> int:
        """When the compaction that is inherited was made here."""
        return self._kit.clock.now()

    def _inheriting(self, tx: Transaction, origin: Locked) -> NewConversation:
        """The new conversation's facts, the origin's where the caller gives none."""
        given, source = self._new, conversations.info(tx, origin.no)
        place = given.workspace
        return replace(
            given,
            workspace=Workspace(
                place.cwd or source.cwd,
                place.git_root or source.git_root,
                place.git_branch or source.git_branch,
            ),
            model=given.model or source.model,
            source=source.source if given.source is None else given.source,
        )


class BranchAt(Branch):
    """Branch at a seq, hidden or not: of the line that the first cut to hide it hides."""

    def __init__(self, kit: Kit, no: int, name: str, new: NewConversation, seq: int) -> None:
        super().__init__(kit, no, name, new, uid=None, at_cut=None, head=None)
        self._seq = seq

    def _point(self, tx: Transaction, origin: Locked, all_cuts: list[Cut]) -> tuple[int, int]:
        if not 0 < self._seq <= origin.head:
            raise NotFound("message", str(self._seq))
        hiding = [c.number for c in all_cuts if c.in_force and c.from_seq <= self._seq <= c.to_seq]
        return self._seq, min(hiding, default=NO_CUT)

    def _date(self, inherited: Compaction) -> int:
        """What another tool did has the time of that."""
        return inherited.created_at


class Delegate(Once[int]):
    """A sub-agent's conversation: empty, its own affinity, its origin's as attribution."""

    def __init__(self, kit: Kit, no: int, name: str, new: NewConversation) -> None:
        self._kit, self._no, self._name, self._new = kit, no, name, new
        self.id = new.id or kit.ids.conversation()

    def run(self, tx: Transaction) -> int:
        origin = conversations.lock(tx, self._no, self._name)
        source = conversations.info(tx, origin.no)
        given = self._new.source
        new = replace(self._new, source=source.source if given is None else given)
        return conversations.create(
            tx, self._kit, origin.profile, new, id=self.id, kind="delegate", origin=origin,
            attribution=source.affinity,
        )  # fmt: skip
