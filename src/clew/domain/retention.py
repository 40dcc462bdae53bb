"""Retention: what may go, since when, by which rule. A policy is a value and decides nothing alone:
`due` is a pure function of it, of what a conversation's row says, and of the time.

By default only what machines made goes: it is closed when it was idle for a window, and goes into
the bin a full window later. What a person said, and what was imported, stays for ever unless a rule
names it; such a rule needs no end, and counts from the later of the last activity and the import.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import Struct

from clew.domain.conversations import Kind
from clew.errors import InputError

DAY = 86_400_000_000
"""Microseconds."""
LONGEST = 100 * 365 * DAY
"""The longest window; beyond it a rule says "keep"."""
MACHINES = frozenset({"cron", "review", "subagent", "tool"})
"""Sources of conversations that nobody had."""

Who = Literal["automation", "people", "imports"]
Act = Literal["close", "bin"]
Did = Literal["closed", "binned", "deleted", "announced"]


def check_window(what: str, micros: int | None) -> None:
    """Refuse a window that would match everything, or that is none. None: for ever."""
    fine = micros is None or (type(micros) is int and 0 < micros <= LONGEST)
    if not fine:
        raise InputError(
            f"{what} is {micros!r} microseconds; give one over 0 and of at most 100 years (for the "
            f"command line and the configuration such as 90d)"
        )


class Aged(Struct, frozen=True):
    """What a rule looks at. It is not pinned, archived, running or waiting: those never go."""

    no: int
    id: str
    profile: str
    kind: Kind
    source: str
    automation: bool
    active_at: int
    imported_at: int | None
    ended_at: int | None
    reopened_at: int | None
    messages: int

    @property
    def who(self) -> Who:
        """Whose it is. A branch is a person's doing, unless it is marked as an automation's."""
        if self.imported_at is not None:
            return "imports"
        made = self.kind == "root" and self.source in MACHINES
        return "automation" if self.automation or self.kind == "delegate" or made else "people"

    @property
    def last(self) -> int:
        """The last that happened: activity, import, reopening. Never the creation."""
        return max(self.active_at, self.imported_at or 0, self.reopened_at or 0)


class Rule(Struct, frozen=True, kw_only=True):
    """What all that is named has in common, and how long it stays. None names any.

    `age`: microseconds without activity; None: for ever. `ended`: only what has ended."""

    age: int | None
    who: Who | None = None
    source: str | None = None
    kind: Kind | None = None
    profile: str | None = None
    ended: bool = False

    def __post_init__(self) -> None:
        check_window("the age of a rule", self.age)

    def names(self, one: Aged) -> bool:
        """Whether this rule is about it."""
        wanted = (self.who, self.source, self.kind, self.profile)
        has = (one.who, one.source, one.kind, one.profile)
        return all(want in (None, it) for want, it in zip(wanted, has, strict=True))

    def __str__(self) -> str:
        named = [self.who or "", *(
            f"{name} {value}"
            for name in ("source", "kind", "profile")
            if (value := getattr(self, name)) is not None
        )]  # fmt: skip
        what = ", ".join(filter(None, named)) or "everything"
        what += " that ended" if self.ended else ""
        return f"{what}: {'kept' if self.age is None else window(self.age)}"


class Policy(Struct, frozen=True, kw_only=True):
    """Rules, of which the first that names a conversation decides; what none names stays.

    `bin`: microseconds from when something can only be restored no more."""

    rules: tuple[Rule, ...] = (Rule(who="automation", age=90 * DAY),)
    bin: int = 30 * DAY

    def __post_init__(self) -> None:
        check_window("the window of the bin", self.bin)

    def rule(self, one: Aged) -> Rule | None:
        """The rule that decides."""
        return next((rule for rule in self.rules if rule.names(one)), None)

    @property
    def shortest(self) -> int | None:
        """The shortest age of a rule; None: nothing ever goes."""
        return min((rule.age for rule in self.rules if rule.age is not None), default=None)

    @property
    def fingerprint(self) -> str:
        """Names the policy: another one has another."""
        return sha256(msgspec.json.encode(self)).hexdigest()[:16]

    def __str__(self) -> str:
        return "; ".join((*map(str, self.rules), f"bin: {window(self.bin)}"))


class Due(Struct, frozen=True):
    """That something is due, since when it is idle, and why."""

    act: Act
    since: int
    why: str


class Item(Struct, frozen=True, kw_only=True):
    """One conversation of a run. `since`: idle, or in the bin, since then. `bytes`: what its
    messages and blobs took, as they were stored; 0 for what is not deleted."""

    id: str
    profile: str
    kind: Kind
    source: str
    did: Did
    since: int
    messages: int
    why: str
    bytes: int = 0


class Pruned(Struct, frozen=True, kw_only=True):
    """What a run did or, with `dry_run`, would do.

    `held`: why a daily run did nothing but look. An item `announced` goes with the next daily run:
    the policy that names it is new."""

    items: tuple[Item, ...] = ()
    dry_run: bool = False
    held: str | None = None
    returned: int = 0
    """Bytes that the files became smaller by. 0 on a server, which does that by itself."""

    @property
    def closed(self) -> int:
        return self._count("closed")

    @property
    def binned(self) -> int:
        return self._count("binned")

    @property
    def deleted(self) -> int:
        return self._count("deleted")

    @property
    def announced(self) -> int:
        return self._count("announced")

    @property
    def bytes(self) -> int:
        """Of what was deleted."""
        return sum(item.bytes for item in self.items)

    def _count(self, did: Did) -> int:
        return sum(item.did == did for item in self.items)


class Binned(Struct, frozen=True, kw_only=True):
    """A conversation in the bin."""

    id: str
    title: str | None
    source: str
    kind: Kind
    origin: str | None
    messages: int
    active_at: int
    binned_at: int


def due(policy: Policy, one: Aged, now: int) -> Due | None:
    """What is due with a conversation. A time that lies ahead is never long ago."""
    rule = policy.rule(one)
    if rule is None or rule.age is None:
        return None
    machine = one.who == "automation"
    if one.ended_at is None and rule.ended:
        return None
    since = max(one.last, one.ended_at or 0) if machine else one.last
    if now - since < rule.age:
        return None
    closes = machine and one.ended_at is None
    return Due("close" if closes else "bin", since, str(rule))


def window(micros: int) -> str:
    """A span as people write it: 90d."""
    for unit, size in (("d", DAY), ("h", DAY // 24), ("m", DAY // 1440), ("s", 1_000_000)):
        if micros % size == 0:
            return f"{micros // size}{unit}"
    return f"{micros} microseconds"
