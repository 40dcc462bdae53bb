"""One conversation of a chat, as it will be when all that is planned has landed."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator

from clew.domain.conversations import TitleOrigin
from clew.domain.turns import Spent, Usage
from clew.importers.drafting import label
from clew.importers.fields import COUNT
from clew.store.drafts import Prepared
from clew.store.importing import StoredLine
from clew.store.landing import (
    Append,
    CutFrom,
    Landing,
    Name,
    NewLine,
    Retitle,
    Settle,
    Spend,
    Step,
)

CHILD, SEEN, HIDDEN = 1, 2, 4
"""Flags of a record: it follows the one before it (and is no part of the same API message); the
source has shown it in this run; a cut hides it."""

_NONE = frozenset[str]()
"""For all lines together: there may be thousands."""


class Line:
    """The plan for one conversation, and what placing further records needs to know of it.

    Two numbers a message (flags, api_group) are all that is held of it, so that a chat of a million
    messages can be planned.
    """

    def __init__(
        self, id: str, index: int, name: str, base: int, head: int, new: NewLine | None
    ) -> None:
        self.id, self.index, self.name, self.base, self.head = id, index, name, base, head
        self.new = new
        self.is_changed = new is not None
        """Whether anything is planned that was not handed out."""
        self.ours = False
        """Whether something here came from elsewhere since the import."""
        self.dropped = False
        """Deleted here: what the source has for it is left out."""
        self.imported_to: int | None = None
        self.stored: StoredLine | None = None
        self.cuts: list[tuple[int, int]] = []
        self._ends: dict[int, int] = {}
        """Where cuts end, by where they begin."""
        self._own_cuts = 0
        self.compactions = _NONE
        self.names = _NONE
        self.titles: dict[TitleOrigin, str | None] = {}
        self._wanted: dict[TitleOrigin, str] = {}
        self._given = _NONE
        """Titles of persons that the source has given: they may be replaced by its next one."""
        self.seen_to = base
        self.cwd: str | None = None
        self.git_branch: str | None = None
        self.model: str | None = None
        self._flags = array("b", bytes(head - base))
        self._groups = array("q", bytes(8 * (head - base)))
        self._steps: list[Step] = []
        self._messages: list[Prepared] = []
        self._spent: dict[str, Spend] = {}
        self._settled: tuple[str | None, str | None, str | None] = (None, None, None)
        self._from: tuple[int, int | None, int] = (head, None, 0)

    @classmethod
    def of(cls, stored: StoredLine, index: int) -> Line:
        """A line that is here already."""
        line = cls(stored.id, index, stored.name, stored.base, stored.head, None)
        line.stored = stored
        line.imported_to = stored.imported_to
        for first, last in stored.cuts:
            line._hide(first, last)
        line.compactions = frozenset(stored.compactions)
        line.names = frozenset(stored.names)
        line.titles = dict(stored.titles)
        line.ours = stored.imported_to != stored.head or not stored.free
        line._from = (stored.head, stored.imported_to, line._own_cuts)
        return line

    # ------------------------------------------------------------------ what it shows

    def visible(self, seq: int) -> bool:
        """Whether no cut hides this seq."""
        if seq > self.base:
            return not self.has(seq, HIDDEN)
        return not any(first <= seq <= last for first, last in self.cuts)

    def ends_at(self, seq: int) -> bool:
        """Whether this seq is visible, and one cut hides all that follows it."""
        return self._ends.get(seq + 1) == self.head and self.visible(seq)

    def has(self, seq: int, flag: int) -> bool:
        at = seq - self.base - 1
        return 0 <= at < len(self._flags) and bool(self._flags[at] & flag)

    def mark(self, seq: int, flag: int) -> None:
        at = seq - self.base - 1
        if 0 <= at < len(self._flags):
            self._flags[at] |= flag

    def group(self, seq: int) -> int:
        """The api_group of a message, as a number; 0 for none."""
        at = seq - self.base - 1
        return self._groups[at] if 0 <= at < len(self._groups) else 0

    def set_group(self, seq: int, group: int) -> None:
        at = seq - self.base - 1
        if 0 <= at < len(self._groups):
            self._groups[at] = group

    # ------------------------------------------------------------------ what it gets

    def append(self, prepared: Prepared) -> int:
        """Plan a message; gives its seq."""
        self.is_changed = True
        self._messages.append(prepared)
        self.head += 1
        self._flags.append(0)
        self._groups.append(0)
        self.seen_to = self.head
        return self.head

    def cut(self, from_seq: int, by: str, uid: bytes, at: int) -> None:
        """Plan to hide from_seq and all after it."""
        self.step(CutFrom(from_seq, by, uid, at))
        self._hide(from_seq, self.head)

    def _hide(self, first: int, last: int) -> None:
        self.cuts.append((first, last))
        self._ends[first] = last
        if last > self.base:
            self._own_cuts += 1
        for seq in range(max(first, self.base + 1), last + 1):
            self._flags[seq - self.base - 1] |= HIDDEN

    def step(self, step: Step) -> None:
        """Plan something that comes after all that is planned so far."""
        self.is_changed = True
        self._close_messages()
        self._steps.append(step)

    def settled(self) -> None:
        """Folder, branch and model are as they are made."""
        self._settled = (self.cwd, self.git_branch, self.model)

    def retitle(self, title: str, origin: TitleOrigin) -> None:
        """Plan a title; the last one counts."""
        self.is_changed = True
        self._wanted[origin] = title
        if origin == "user":
            self._given |= {title}

    def call(self, name: Name) -> None:
        """Plan another foreign id."""
        if name.foreign_id not in self.names:
            self.names |= {name.foreign_id}
            self.step(name)

    def _retitled(self) -> Iterator[Retitle]:
        """What is to become of the titles. A person's title that was given here stays."""
        for origin, title in self._wanted.items():
            was = self.titles.get(origin)
            ours = origin == "user" and was is not None and was not in self._given
            if title != was and not ours:
                self.titles[origin] = title
                yield Retitle(title, origin, was, is_first=self.new is not None)
        self._wanted = {}

    def spend(self, group: str, spent: Spent, at: int) -> None:
        """Plan the usage of a model call; of one group the larger counts."""
        self.is_changed = True
        spent = _countable(spent)
        known = self._spent.get(group)
        self._spent[group] = Spend(
            group, spent if known is None else _larger(known.spent, spent),
            self.head if known is None else known.up_to_seq, at if known is None else known.at,
        )  # fmt: skip

    def _close_messages(self) -> None:
        if self._messages:
            self._steps.append(Append(tuple(self._messages)))
            self._messages = []

    def seal(self, source: str) -> Iterator[Landing]:
        """The plan so far as a landing, if there is any; planning then goes on behind it."""
        self.is_changed = False
        self._close_messages()
        self._steps[:0] = self._retitled()  # before a first message gives one
        place = (self.cwd, self.git_branch, self.model)
        if place != self._settled and (self._steps or self._spent or self.new):
            self._steps.append(Settle(*place))
            self._settled = place
        self._steps.extend(self._spent.values())
        self._spent = {}
        if not self._steps and self.new is None:
            return
        head, imported_to, cuts = self._from
        reached = imported_to if self.ours else self.head
        yield Landing(
            self.id, source, tuple(self._steps), self.new, head, imported_to, reached, cuts
        )
        self._steps, self.new = [], None
        self._from = (self.head, reached, self._own_cuts)
        self.imported_to = reached


def _countable(spent: Spent) -> Spent:
    """As a store takes it: sums of a source's counts may be over what it adds up."""
    usage, cost = spent.usage, spent.cost
    if max(usage.input, usage.output, usage.cached, usage.reasoning) > COUNT:
        usage = Usage(
            min(usage.input, COUNT), min(usage.output, COUNT),
            min(usage.cached, COUNT), min(usage.reasoning, COUNT),
        )  # fmt: skip
    if cost is not None and not 0 <= cost < math.inf:
        cost = None
    model = label(spent.model) or "unknown"
    return Spent(model=model, usage=usage, cost=cost, latency=spent.latency)


def _larger(a: Spent, b: Spent) -> Spent:
    usage = Usage(
        max(a.usage.input, b.usage.input), max(a.usage.output, b.usage.output),
        max(a.usage.cached, b.usage.cached), max(a.usage.reasoning, b.usage.reasoning),
    )  # fmt: skip
    cost = b.cost if a.cost is None else max(a.cost, b.cost or 0)
    return Spent(model=a.model, usage=usage, cost=cost, latency=a.latency or b.latency)
